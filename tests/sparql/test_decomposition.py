"""Decomposition of unbounded queries, and the constructs that only windows support."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sparql.test_refusals import cases
from triplewire.model.errors import TextPosition, Unsupported
from triplewire.sparql import (
    UNBOUND,
    Apply,
    Bind,
    Check,
    Const,
    Pattern,
    UnboundedQuery,
    Var,
    parse_query,
    parse_registration,
    split_unbounded,
)

A, B, P, Q = (Const(f"<urn:{name}>") for name in "abpq")
S, V, X = Var("s"), Var("o"), Var("x")
ONE = Const('"1"^^<http://www.w3.org/2001/XMLSchema#integer>')
TWO = Const('"2"^^<http://www.w3.org/2001/XMLSchema#integer>')


def split(text: str) -> UnboundedQuery:
    prefixed = text.replace(":a", "<urn:a>").replace(":b", "<urn:b>").replace(":p", "<urn:p>").replace(":q", "<urn:q>")
    return split_unbounded(parse_registration(prefixed))


@pytest.mark.parametrize("case", cases("bounded.toml"))
def test_what_only_windows_answer_is_named_with_its_place(case: dict[str, Any]) -> None:
    with pytest.raises(Unsupported, match="in a window it is") as refused:
        split_unbounded(parse_registration(case["query"]))
    assert (refused.value.construct, refused.value.place) == (case["construct"], TextPosition(*case["place"]))
    assert "^" in refused.value.excerpt


def test_of_an_algebra_alone_the_place_is_not_known() -> None:
    with pytest.raises(Unsupported) as refused:
        split_unbounded(parse_query("SELECT * { ?s ?p ?o OPTIONAL { ?s ?q 1 } }"))
    assert (refused.value.construct, refused.value.place) == ("OPTIONAL", None)


def test_windows_are_not_split() -> None:
    text = "SELECT * FROM NAMED WINDOW <w> ON <home> [RANGE 1s] { WINDOW <w> { ?s ?p ?o } }"
    with pytest.raises(Unsupported, match="WINDOW is not supported at line 1, column 55"):
        split_unbounded(parse_registration(text))


def test_forms() -> None:
    pattern = (Pattern(S, P, V),)
    assert split("SELECT DISTINCT ?o { ?s :p ?o }") == UnboundedQuery("select", pattern, (), ("o",), distinct=True)
    assert split("SELECT REDUCED ?o { ?s :p ?o }") == UnboundedQuery("select", pattern, (), ("o",))
    assert split("ASK { ?s :p ?o }") == UnboundedQuery("ask", pattern)
    made = (Pattern(V, Q, Var("_:z")),)
    assert split("CONSTRUCT { ?o :q _:z } { ?s :p ?o }") == UnboundedQuery(
        "construct", pattern, (), ("o",), template=made
    )


def test_groups_are_one_and_steps_keep_their_order() -> None:
    found = split("SELECT ?x { ?s :p ?o FILTER(?o > 1 && ?o != 2) { ?o :q ?z BIND(?z + 1 AS ?x) } FILTER(?x > ?o) }")
    assert found.patterns == (Pattern(S, P, V), Pattern(V, Q, Var("z")))
    assert found.steps == (
        Bind("x", Apply("+", (Var("z"), ONE))),
        Check(Apply(">", (V, ONE))),
        Check(Apply("!=", (V, TWO))),
        Check(Apply(">", (X, V))),
    )
    assert found.names == ("o", "z")


def test_a_filter_does_not_see_what_is_outside_of_its_group() -> None:
    found = split("SELECT * { ?s :p ?o { ?s :q ?x FILTER(?o > ?x) } }")
    assert found.steps == (Check(Apply(">", (UNBOUND, X))),)


def test_paths_are_patterns_with_variables_that_nobody_named() -> None:
    found = split("SELECT * { ?s :p/^:q ?o }")
    between = Var(".u0")
    assert found.patterns == (Pattern(S, P, between), Pattern(V, Q, between))
    assert found.projection == ("s", "o")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * { ?s :p ?o FILTER(?s = :a) }",
        "SELECT * { ?s :p ?o FILTER(:a = ?s) }",
        "SELECT * { ?s :p ?o FILTER(sameTerm(?s, :a)) }",
        "SELECT ?s ?o { BIND(:a AS ?s) ?s :p ?o }",
        "SELECT ?s ?o { VALUES ?s { :a } ?s :p ?o }",
        "SELECT ?s ?o { ?s :p ?o } VALUES ?s { :a }",
    ],
)
def test_what_can_be_one_constant_is_that_in_the_patterns(text: str) -> None:
    assert split(text) == UnboundedQuery("select", (Pattern(A, P, V),), (Bind("s", A),), ("s", "o"))


def test_equal_numbers_are_not_one_term() -> None:
    found = split("SELECT * { ?s :p ?o FILTER(?o = 1) }")
    assert (found.patterns, found.steps) == ((Pattern(S, P, V),), (Check(Apply("=", (V, ONE))),))
    found = split("SELECT * { ?s :p ?o FILTER(sameTerm(?o, 1)) }")
    assert (found.patterns, found.steps) == ((Pattern(S, P, ONE),), (Bind("o", ONE),))


def test_of_two_constants_one_is_compared() -> None:
    found = split("SELECT * { ?s :p ?o FILTER(?s = :a) FILTER(?s = :b) }")
    assert found == UnboundedQuery("select", (Pattern(A, P, V),), (Bind("s", A), Check(Apply("=", (S, B)))), ("s", "o"))


def test_a_literal_is_no_subject() -> None:
    found = split("SELECT * { ?s :p ?o FILTER(sameTerm(?s, 1)) }")
    assert found.patterns == (Pattern(S, P, V),)


def test_values_are_a_choice() -> None:
    assert split("SELECT * { ?s :p ?o VALUES ?s { :a :b } }").steps == (Check(Apply("in", (S, A, B))),)
    found = split("SELECT * { ?s :p ?o VALUES (?s ?o) { (:a 1) (:b 2) } }")
    rows = [Apply("&&", (Apply("sameterm", (S, s)), Apply("sameterm", (V, o)))) for s, o in ((A, ONE), (B, TWO))]
    assert found.steps == (Check(Apply("||", tuple(rows))),)


def test_a_value_that_two_groups_bind_must_agree_where_both_have_one() -> None:
    found = split("SELECT ?x { { ?s :p ?o BIND(?o + 1 AS ?x) } { ?s :q ?z BIND(?z + 2 AS ?x) } }")
    one, other = Var(".u0"), Var(".u1")
    unbound = [Apply("!", (Apply("bound", (each,)),)) for each in (one, other)]
    assert found.steps == (
        Bind(".u0", Apply("+", (V, ONE))),
        Bind(".u1", Apply("+", (Var("z"), TWO))),
        Check(Apply("||", (*unbound, Apply("sameterm", (one, other))))),
        Bind("x", Apply("coalesce", (one, other))),
    )
