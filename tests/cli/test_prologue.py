"""What is read of a query before it is sent."""

from __future__ import annotations

import pytest

from triplewire.cli.result_table import QueryPrologue, read_prologue


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("SELECT * {}", "select"),
        ("ask{}", "ask"),
        ("# SELECT\r\n  Construct { ?s ?p ?o } {}", "construct"),
        ("BASE <urn:x> PREFIX : <urn:select> prefix ex:<urn:y>DESCRIBE ex:a", "describe"),
        ('VERSION "1.2" PREFIX a-b.c: <urn:z> # ask\nSELECT ?ask {}', "select"),
        ("", ""),
        ("PREFIX broken SELECT * {}", "prefix"),
    ],
)
def test_the_form_is_the_first_word_behind_declarations(text: str, form: str) -> None:
    assert read_prologue(text).form == form


def test_only_declarations_declare() -> None:
    text = "PREFIX ex: <http://e.org/> # PREFIX no: <http://n.org/>\nSELECT * { ?s ?p 'PREFIX no: <http://n.org/>' }"
    assert read_prologue(text).short("http://e.org/a") == "ex:a"
    assert read_prologue(text).short("http://n.org/a") == "<http://n.org/a>"


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("http://www.w3.org/ns/sosa/Sensor", "sosa:Sensor"),
        ("http://e.org/city/a-1.b", "city:a-1.b"),
        ("http://e.org/", ":"),
        ("http://e.org/b", ":b"),
        ("http://e.org/b/c", "<http://e.org/b/c>"),
        ("http://e.org/b.", "<http://e.org/b.>"),
        ("urn:x", "<urn:x>"),
    ],
)
def test_an_address_gets_the_prefix_that_leaves_the_least(address: str, shown: str) -> None:
    said = read_prologue("PREFIX : <http://e.org/> PREFIX city: <http://e.org/city/> PREFIX none: <> SELECT * {}")
    assert said.short(address) == shown


def test_what_the_query_calls_it_goes_first() -> None:
    assert read_prologue("PREFIX sosa: <urn:mine:> ASK {}").short("urn:mine:a") == "sosa:a"
    assert QueryPrologue().short("http://www.w3.org/2001/XMLSchema#date") == "xsd:date"
