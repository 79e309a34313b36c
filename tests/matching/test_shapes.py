"""Shapes: what two subscriptions have in common."""

from __future__ import annotations

import json

from triplewire.matching.shapes import Shape, lift
from triplewire.sparql import parse_query

PREFIX = "PREFIX : <http://example.org/> "


def test_constants_are_lifted_and_predicates_stay() -> None:
    lifted = lift(
        parse_query(PREFIX + 'SELECT * { ?s :by :a ; :value ?v FILTER(?v > 7 && STR(?s) != "x") }'), solutions=True
    )
    assert lifted.constants == (
        "<http://example.org/a>",
        '"7"^^<http://www.w3.org/2001/XMLSchema#integer>',
        '"x"',
    )
    assert "example.org/by" in json.dumps(lifted.shape.to_value())
    assert "example.org/a" not in json.dumps(lifted.shape.to_value())


def test_queries_that_differ_in_constants_share_a_shape() -> None:
    one = lift(parse_query(PREFIX + "SELECT ?v { ?s :by :a ; :value ?v FILTER(?v > 7) }"), solutions=True)
    other = lift(parse_query(PREFIX + "SELECT ?v { ?x :by :b ; :value ?v FILTER(?v > 8.5) }"), solutions=True)
    assert one.shape == other.shape
    assert one.shape.key == other.shape.key


def test_who_asks_for_no_bindings_shares_a_shape_whatever_the_names() -> None:
    one = lift(parse_query(PREFIX + "SELECT ?v { ?s :by :a ; :value ?v }"), solutions=False)
    other = lift(parse_query(PREFIX + "SELECT DISTINCT ?y ?x { ?x :by :b ; :value ?y }"), solutions=False)
    assert one.shape.key == other.shape.key


def test_structures_are_told_apart() -> None:
    texts = (
        "SELECT ?v { ?s :by :a ; :value ?v }",
        "SELECT ?v { ?s :of :a ; :value ?v }",
        "SELECT ?v { ?s :by :a . ?t :value ?v }",
        "SELECT ?v { ?s :by :a ; :value ?v FILTER(?v > 7) }",
        "SELECT ?v { ?s :by :a ; :value ?v FILTER(?v < 7) }",
        "SELECT DISTINCT ?v { ?s :by :a ; :value ?v }",
        'SELECT ?v { ?s :by :a ; :value ?v FILTER(REGEX(?v, "a")) }',
        'SELECT ?v { ?s :by :a ; :value ?v FILTER(REGEX(?v, "b")) }',
    )
    assert len({lift(parse_query(PREFIX + text), solutions=True).shape.key for text in texts}) == len(texts)


def test_a_shape_survives_json() -> None:
    shape = lift(
        parse_query(PREFIX + "SELECT ?v { GRAPH ?g { ?s :by :a ; :value ?v } FILTER(?v > 7 || !BOUND(?v)) }"),
        solutions=True,
    ).shape
    assert Shape.from_value(json.loads(json.dumps(shape.to_value()))) == shape
