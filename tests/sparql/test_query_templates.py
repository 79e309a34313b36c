"""SQL templates: filling one gives the SQL that would be compiled for the query."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings

from tests.differential.grammar import Question, questions
from triplewire.sparql import Statistics, TripleCounts, parse_query
from triplewire.sparql.algebra import Family, Query
from triplewire.sparql.queries import CompiledQuery, LiftedQuery, compile_query, compile_uncached, lift_constants
from triplewire.sparql.statistics import PredicateKind
from triplewire.sparql.syntax.queries import REMEMBERED_QUERY_CHARACTERS

P = "<http://example.org/p>"
KNOWN = Statistics(
    {P: TripleCounts(9, 9, 9, 9)},
    TripleCounts(9, 9, 9, 9),
    {P: PredicateKind(frozenset({Family.DOUBLE}), short=True, unique=True)},
    {P: 3},
)
PAIRS = (
    ("SELECT * { <urn:a> ?p ?o }", "SELECT * { <urn:b> ?p ?o }"),
    ("SELECT * { GRAPH <urn:a> { ?s ?p <urn:b> } }", "SELECT * { GRAPH <urn:c> { ?s ?p <urn:c> } }"),
    ("SELECT * { ?s ?p ?o FILTER(?o > 7) }", "SELECT * { ?s ?p ?o FILTER(?o > 1234567) }"),
    (f"SELECT * {{ ?s {P} ?o FILTER(?o > 7) }}", f"SELECT * {{ ?s {P} ?o FILTER(?o > 0) }}"),
    ("SELECT * { ?s ?p ?o FILTER(?o = 7.5) }", "SELECT * { ?s ?p ?o FILTER(?o = 12.5) }"),
    (
        "SELECT * { ?s ?p ?o FILTER(?s = <urn:a> || !(?o != <urn:b>)) }",
        "SELECT * { ?s ?p ?o FILTER(?s = <urn:b> || !(?o != <urn:b>)) }",
    ),
    (
        'SELECT * { ?s ?p ?o FILTER(?o < "2026-01-01T00:00:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>) }',
        'SELECT * { ?s ?p ?o FILTER(?o < "1999-12-31T23:59:59Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>) }',
    ),
    (
        "SELECT * { ?s ?p ?o FILTER EXISTS { ?s <urn:q> <urn:a> } }",
        "SELECT * { ?s ?p ?o FILTER EXISTS { ?s <urn:q> <urn:b> } }",
    ),
)
APART = (
    ("SELECT * { ?s <urn:p> ?o }", "SELECT * { ?s <urn:q> ?o }"),
    ("SELECT * { ?s ?p ?o FILTER(?o > 7) }", "SELECT * { ?s ?p ?o FILTER(?o > 7.5) }"),
    ("SELECT * { ?s ?p ?o FILTER(?o > 7) }", "SELECT * { ?s ?p ?o FILTER(?o > 16777217) }"),
    ("SELECT * { ?s ?p ?o FILTER(?o > 7.5) }", "SELECT * { ?s ?p ?o FILTER(?o > 7.1) }"),
    ("SELECT * { ?s ?p ?o FILTER(?o > 7) }", "SELECT * { ?s ?p ?o FILTER(?o > -7) }"),
    ("SELECT * { ?s ?p ?o } LIMIT 1", "SELECT * { ?s ?p ?o } LIMIT 2"),
    ('SELECT * { ?s ?p ?o FILTER(REGEX(?o, "a")) }', 'SELECT * { ?s ?p ?o FILTER(REGEX(?o, "b")) }'),
    ("SELECT * { ?s ?p ?o FILTER(SUBSTR(?o, 1) = ?p) }", "SELECT * { ?s ?p ?o FILTER(SUBSTR(?o, 2) = ?p) }"),
)


def lifted(text: str) -> LiftedQuery:
    found = lift_constants(parse_query(text))
    assert found is not None
    return found


def afresh(query: Query, statistics: Statistics) -> CompiledQuery:
    return compile_uncached(query, "duckdb", statistics, datetime.now(UTC))


@pytest.mark.parametrize(("one", "other"), PAIRS)
@pytest.mark.parametrize("statistics", [Statistics(), KNOWN])
def test_queries_of_one_structure_share_what_was_compiled(one: str, other: str, statistics: Statistics) -> None:
    assert lifted(one).structure == lifted(other).structure
    for text in (one, other, one):
        query = parse_query(text)
        assert compile_query(query, "duckdb", statistics) == afresh(query, statistics)


@pytest.mark.parametrize(("one", "other"), APART)
def test_what_shapes_the_plan_stays_in_the_structure(one: str, other: str) -> None:
    assert lifted(one).structure != lifted(other).structure


def test_a_constant_that_looks_like_a_stand_in_stays() -> None:
    text = "SELECT * { <urn:x-slot:0> ?p <urn:b> FILTER(?p = 1670000) }"
    query = parse_query(text)
    assert "urn:x-slot:0" in repr(lifted(text).structure)
    assert compile_query(query, "duckdb") == afresh(query, Statistics())


def test_a_query_that_would_fill_memory_is_not_remembered() -> None:
    texts = " ".join(f"<urn:{number}>" for number in range(REMEMBERED_QUERY_CHARACTERS // 2))
    query = parse_query(f"SELECT * {{ VALUES ?s {{ {texts} }} }}")
    assert lift_constants(query) is None
    assert compile_query(query, "duckdb") == afresh(query, Statistics())


@settings(max_examples=150, deadline=None, derandomize=True)
@given(questions)
def test_any_query_is_compiled_as_if_there_had_been_none_before(question: Question) -> None:
    query = parse_query(question.text)
    assert compile_query(query, "duckdb", KNOWN) == afresh(query, KNOWN)
