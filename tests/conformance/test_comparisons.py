"""Comparisons: what is the same answer, and what only looks like it."""

from __future__ import annotations

import pyoxigraph as ox
import pytest

from tests.conformance.comparisons import difference
from tests.conformance.graphs import Term
from tests.conformance.results import Answer, Cells, Expected, Rows, Triples


def rows(*texts: str, ordered: bool = False) -> Rows:
    """Rows of terms in Turtle, for the variables a, b, … in order; `-` is unbound."""
    found = [tuple(None if text == "-" else term(text) for text in line.split()) for line in texts]
    return Rows(tuple("abcd"[: max(map(len, found), default=0)]), tuple(found), ordered)


def term(text: str) -> Term:
    prefix = "@prefix xsd: <http://www.w3.org/2001/XMLSchema#> . @prefix : <http://example.org/> ."
    quads: list[ox.Quad] = list(ox.parse(f"{prefix} :s :p {text} .", format=ox.RdfFormat.TURTLE))
    return quads[0].object


def graph(*texts: str) -> Triples:
    found = (tuple(map(term, line.split())) for line in texts)
    return Triples(frozenset(ox.Triple(*each) for each in found))  # type: ignore[arg-type]


SAME: dict[str, tuple[Expected, Answer]] = {
    "the same rows in another order": (rows("1 2", "3 4"), rows("3 4", "1 2")),
    "blank nodes by other names": (rows("_:x _:y", "_:y :b"), rows("_:n _:m", "_:m :b")),
    "blank nodes that a symmetry tells apart": (
        rows("_:a _:b", "_:b _:c", "_:c _:a"),
        rows("_:z _:y", "_:y _:x", "_:x _:z"),
    ),
    "equal rows, twice each": (rows("_:x :a", "_:x :a"), rows("_:y :a", "_:y :a")),
    "decimals by value": (rows("2.0", "0.5"), rows('"2"^^xsd:decimal', '"+00.500"^^xsd:decimal')),
    "integers by value": (rows('"01"^^xsd:integer', '"-0"^^xsd:int'), rows("1", '"0"^^xsd:int')),
    "doubles by value": (rows("1.5e3", '"INF"^^xsd:double'), rows('"1500"^^xsd:double', '"INF"^^xsd:double')),
    "a sum of doubles": (rows("0.3e0"), rows("0.30000000000000004e0")),
    "booleans by value": (rows('"1"^^xsd:boolean'), rows("true")),
    "language tags in another case": (rows('"a"@en-GB'), rows('"a"@en-gb')),
    "unbound in the same place": (rows(":a -"), rows(":a -")),
    "nothing": (Rows((), ()), Rows((), ())),
    "places of rows": (rows(":a", ":b", ordered=True), rows(":a", ":b")),
    "graphs": (graph(":a :p _:x", "_:x :p 1.0"), graph(":a :p _:y", "_:y :p 1.00")),
    "truth": (True, True),
    "cells": (
        Cells(("a", "b"), (("http://example.org/x", "1.50"), ("_:q", ""))),
        rows(":x 1.5", "_:n -"),
    ),
}

DIFFERENT: dict[str, tuple[Expected, Answer]] = {
    "a row is missing": (rows(":a", ":b"), rows(":a")),
    "a row too many": (rows(":a"), rows(":a", ":b")),
    "another count of duplicates": (rows(":a", ":a", ":b"), rows(":a", ":b", ":b")),
    "one blank node for two": (rows("_:x", "_:y"), rows("_:x", "_:x")),
    "two blank nodes for one": (rows("_:x :a", "_:x :b"), rows("_:x :a", "_:y :b")),
    "one row's blank nodes are one": (rows("_:x _:x"), rows("_:x _:y")),
    "a blank node is not an IRI": (rows("_:x"), rows(":x")),
    "a cycle of three is not two of other lengths": (
        rows("_:a _:b", "_:b _:c", "_:c _:a"),
        rows("_:a _:b", "_:b _:a", "_:c _:c"),
    ),
    "two cycles of three are not one of six": (
        rows("_:a _:b", "_:b _:c", "_:c _:a", "_:d _:e", "_:e _:f", "_:f _:d"),
        rows("_:a _:b", "_:b _:c", "_:c _:d", "_:d _:e", "_:e _:f", "_:f _:a"),
    ),
    "numbers of two datatypes": (rows("1"), rows("1.0")),
    "other numbers": (rows("1.0e0"), rows("1.1e0")),
    "many digits": (rows("1.0000000000000000000000000000001"), rows("1.0000000000000000000000000000002")),
    "ill-typed numbers are texts": (rows('"x"^^xsd:integer'), rows('"y"^^xsd:integer')),
    "strings that look like numbers": (rows('"1"'), rows('"1.0"')),
    "another language": (rows('"a"@en'), rows('"a"@de')),
    "bound elsewhere": (rows(":a -"), rows("- :a")),
    "other variables": (Rows(("x",), ()), Rows(("y",), ())),
    "another order": (rows(":a", ":b", ordered=True), rows(":b", ":a")),
    "another order of blank nodes": (rows("_:x", "_:y", "_:x", ordered=True), rows("_:x", "_:x", "_:y")),
    "graphs": (graph(":a :p _:x", ":b :p _:x"), graph(":a :p _:x", ":b :p _:y")),
    "truth": (True, False),
    "a truth for rows": (rows(":a"), True),
    "a graph for rows": (rows(":a"), graph(":a :p :b")),
    "cells": (Cells(("a",), (("x",),)), rows('"y"')),
}


@pytest.mark.parametrize("name", SAME)
def test_the_same(name: str) -> None:
    expected, actual = SAME[name]
    assert difference(expected, actual) is None


@pytest.mark.parametrize("name", DIFFERENT)
def test_different(name: str) -> None:
    expected, actual = DIFFERENT[name]
    assert difference(expected, actual)


def test_lax_lets_duplicates_be_missing_and_nothing_else() -> None:
    expected = rows(":a", ":a", "_:x")
    assert difference(expected, rows(":a", "_:y"), lax=True) is None
    assert difference(expected, rows(":a", ":a", "_:y"), lax=True) is None
    assert difference(expected, rows(":a", ":a"), lax=True)
    assert difference(expected, rows(":a", "_:y", "_:z"), lax=True)
    assert difference(expected, rows(":a", ":a", ":a", "_:y"), lax=True)


def test_the_reason_shows_what_differs() -> None:
    reason = difference(rows(":a", ":b"), rows(":a", ":c"))
    assert reason == "missing [?a=<http://example.org/b>]; not expected [?a=<http://example.org/c>]"
