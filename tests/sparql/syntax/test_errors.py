"""Errors of the parser: position, excerpt, and syntax errors before refusals."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sparql.test_refusals import cases
from triplewire.model.errors import SparqlSyntax, TextPosition, Unsupported
from triplewire.sparql import parse_query


@pytest.mark.parametrize("case", cases("rules.toml"))
def test_a_rule_that_is_broken_is_named_with_its_place(case: dict[str, Any]) -> None:
    with pytest.raises(SparqlSyntax) as refused:
        parse_query(case["query"])
    assert case["expected"] in str(refused.value)
    assert refused.value.place == TextPosition(*case["place"])


@pytest.mark.parametrize(
    ("text", "construct"),
    [
        ("SELECT * { << ?s ?p ?o >> ?q [] }", "triple term"),
        ("SELECT * { << ?s ?p << ?a ?b ?c >> >> }", "triple term"),
        ("SELECT * { ?s ?p ?o ~ ?r {| ?q 1 |} , 2 }", "triple term"),
        ("SELECT * { VALUES ?t { <<( <x:s> <x:p> 1 )>> } }", "triple term"),
        ("SELECT * { BIND(<<( ?s ?p ?o )>> AS ?t) }", "triple term"),
        ("SELECT * { ?s ?p 'a'@ar--rtl }", "base direction"),
        ("VERSION '1.2' ASK {}", "VERSION 1.2"),
        ("ASK { FILTER(isTriple(?t)) }", "function ISTRIPLE"),
        ("ASK { FILTER <x:f>(1, 2) }", "function <x:f>"),
        ("SELECT (<x:f>(DISTINCT ?a) AS ?b) {}", "function <x:f>"),
        ("ASK { FILTER(one(two(?t))) }", "function TWO"),
        ("DELETE { ?s ?p ?o } WHERE { ?s ?p ?o }", "SPARQL Update"),
        ("PREFIX a: <x:a> CLEAR ALL", "SPARQL Update"),
    ],
)
def test_what_is_understood_but_not_run_is_named(text: str, construct: str) -> None:
    with pytest.raises(Unsupported) as refused:
        parse_query(text)
    assert refused.value.construct == construct
    assert refused.value.place


def test_an_unknown_function_is_told_with_those_that_are_known() -> None:
    with pytest.raises(Unsupported, match=r"known functions are ABS, .*, YEAR$"):
        parse_query("ASK { FILTER(nosuch()) }")


def test_an_error_after_a_refusal_is_said_first() -> None:
    with pytest.raises(SparqlSyntax):
        parse_query("SELECT * { ?s ?p <<( ?a ?b ?c )>> FILTER(nosuch(?s) }")


@pytest.mark.parametrize(
    ("text", "excerpt"),
    [
        ("ASK {\r\n\t?s ?p ] }\n", "\t?s ?p ] }\n\t      ^"),
        ("SELECT *", "SELECT *\n        ^"),
        (r"ASK { \u003Fs ?p ] }", "ASK { \\u003Fs ?p ] }\n                 ^"),
        ("ASK {" + " " * 60 + "] " + "#" * 200, " " * 50 + "] " + "#" * 48 + "\n" + " " * 50 + "^"),
    ],
)
def test_the_line_is_shown_with_a_caret(text: str, excerpt: str) -> None:
    with pytest.raises(SparqlSyntax) as refused:
        parse_query(text)
    assert refused.value.excerpt == excerpt


def test_a_refusal_shows_the_line_too() -> None:
    with pytest.raises(Unsupported) as refused:
        parse_query("ASK {\n FILTER(nosuch(1)) }")
    assert refused.value.excerpt == " FILTER(nosuch(1)) }\n        ^"


@pytest.mark.parametrize("text", ["_:b <x:p> 1 FILTER(true) _:b <x:p> 2", "_:b <x:p>* 1 . _:b <x:p> 2"])
def test_filters_and_paths_do_not_part_blank_nodes(text: str) -> None:
    assert parse_query(f"ASK {{ {text} }}").form == "ask"


def test_labels_of_a_template_are_its_own() -> None:
    assert parse_query("CONSTRUCT { _:b <x:p> ?o } { ?s <x:p> ?o . _:b <x:q> ?s }").form == "construct"
