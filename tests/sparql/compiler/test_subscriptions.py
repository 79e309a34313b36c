"""Subscriptions on one event at a time: the columns that they read and return."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.sparql.worlds import Shape, World, conjunctive, lift, matches, run, subscribed, with_headers
from triplewire.sparql import Family, Param, compile_event, facets_used, params_with_facets, to_sql


def shape(where: str, *, typed: bool = True) -> Shape:
    return lift(conjunctive(f"SELECT * {{ {where} }}"), typed=typed)


def world() -> World:
    read = World.read(":e1 { :s :p 1 , 2 ; :q 3 } :e2 { :s :p 2 . :t :p 2 }")
    first, second = read.events
    return World((with_headers(first, "door", None), second), ("city", "farm"))


def test_a_solution_is_the_numbers_of_its_quads_in_the_order_of_the_patterns() -> None:
    assert matches(world(), shape("?s :q ?y ; :p ?x")) == {1: Counter({(2, 0): 1, (2, 1): 1})}


def test_solutions_come_in_ascending_order() -> None:
    [(_, _, numbers)] = run(world().relations(), subscribed(shape("?a :p ?x . ?b :p ?y . ?b :q ?z"), solutions=True))
    assert numbers == [0, 0, 2, 0, 1, 2, 1, 0, 2, 1, 1, 2]


def test_without_solutions_each_pair_comes_once() -> None:
    rows = run(world().relations(), subscribed(shape("?s :p ?x"), solutions=False))
    assert sorted(rows) == [(1, 7), (2, 7)]


def test_patterns_meet_inside_one_event_only() -> None:
    assert matches(world(), shape("?s :q 3 . :t :p ?x")) == {}


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ('?e tw:stream "farm"', {2: Counter({(-1,): 1})}),
        ("?e tw:source ?x", {1: Counter({(-2,): 1})}),
        ("?e tw:application ?x", {}),
        ('?e tw:time "2023-11-14T22:13:22Z"^^xsd:dateTime', {2: Counter({(-4,): 1})}),
        ("?e tw:received ?x ; tw:stream ?y . ?s :q ?z", {1: Counter({(-5, -1, 2): 1})}),
        ("GRAPH ?e { ?s :q ?z } ?e tw:source 'door'", {1: Counter({(2, -2): 1})}),
        ("GRAPH :e2 { ?s :p ?z } FILTER(?z = 2)", {2: Counter({(0,): 1, (1,): 1})}),
        ("?e tw:time ?x FILTER(?x > '2023-11-14T22:13:21Z'^^xsd:dateTime)", {2: Counter({(-4,): 1})}),
        ("", {1: Counter(), 2: Counter()}),
        ("FILTER(1 = 2)", {}),
    ],
)
@pytest.mark.parametrize("typed", [True, False], ids=["typed", "untyped"])
def test_headers_and_graphs(where: str, found: dict[int, Counter[tuple[int, ...]]], typed: bool) -> None:
    given = shape(where, typed=typed)
    if not given.query.patterns:
        positions = [row[0] for row in run(world().relations(), subscribed(given, solutions=True))]
        assert sorted(positions) == sorted(found)
    else:
        assert matches(world(), given) == found


def test_only_the_facets_that_are_read_are_asked_for() -> None:
    lifted = shape("?s :p ?x ; :q :o FILTER(?x > 20)")
    assert [each.object for each in lifted.query.patterns][1] == Param(0, Family.IRI)
    compiled = compile_event(lifted.query, solutions=True)
    assert params_with_facets(compiled) == {0: {"term"}, 1: {"term", "number"}}
    assert facets_used(compiled) == {"position", "quad", "subject", "predicate", "object", "object_number"}


def test_facets_that_arithmetic_reads_are_found_inside_it() -> None:
    compiled = compile_event(shape("?s :p ?x FILTER(?x * 2e0 > 1)").query, solutions=False)
    assert "object_number" in facets_used(compiled)
    assert params_with_facets(compiled)[0] == {"number"}


def test_a_range_over_parameters_is_a_plain_comparison_of_columns() -> None:
    sql = to_sql(compile_event(shape("?s :p ?x FILTER(?x > 20)").query, solutions=False), "duckdb")
    assert "q0.object_number >= c.k0_number AND " in sql


def test_equal_times_over_parameters_are_joined_by_the_instant() -> None:
    text = "?s :p ?x FILTER(?x = '2020-01-01T00:00:00Z'^^xsd:dateTime)"
    sql = to_sql(compile_event(shape(text).query, solutions=False), "duckdb")
    assert "q0.object_time = c.k0_time AND " in sql
