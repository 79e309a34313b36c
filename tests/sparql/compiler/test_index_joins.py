"""Index joins: which compiled queries they can answer, and what is left to the engine."""

from __future__ import annotations

import pytest

from triplewire.model.terms import XSD
from triplewire.sparql import Statistics, TripleCounts, compile_query, parse_query
from triplewire.sparql.algebra import Family
from triplewire.sparql.compiler.index_joins import INDEX_JOIN_SCANS, IndexJoin
from triplewire.sparql.statistics import PredicateKind

P, Q = "<urn:p>", "<urn:q>"
COUNTS = TripleCounts(9, 9, 9, 9)
KNOWN = Statistics(
    {P: COUNTS, Q: COUNTS},
    COUNTS,
    {
        P: PredicateKind(frozenset({Family.IRI}), short=True, unique=True),
        Q: PredicateKind(frozenset({Family.DOUBLE}), short=True, unique=True),
    },
    {P: 0, Q: 1},
    identified=True,
    complete=True,
    blank=False,
    single=True,
)


def find(text: str, known: Statistics = KNOWN) -> IndexJoin | None:
    return compile_query(parse_query(text), "duckdb", known).index_join


INDEXABLE = {
    f"SELECT * {{ <urn:a> {P} ?o }}": 1,
    "SELECT * { GRAPH <urn:e> { ?s ?p ?o } }": 1,
    f"SELECT * {{ ?s {P} ?o }} LIMIT 3": 1,
    f"SELECT ?s {{ ?s {P} <urn:b> ; {Q} ?v FILTER(?v > 3) }}": 2,
    f"SELECT ?g {{ GRAPH ?g {{ ?s {P} ?o . ?o {P} ?s . ?s {Q} ?v }} }}": 3,
    f"SELECT * {{ <urn:a> {P} <urn:b> }}": 1,
    f"ASK {{ ?s {P} ?o . ?o {P} <urn:b> }}": 2,
}
LEFT = (
    f"SELECT DISTINCT ?o {{ <urn:a> {P} ?o }}",
    f"SELECT * {{ <urn:a> {P} ?o }} OFFSET 1",
    f"SELECT * {{ <urn:a> {P} ?o }} ORDER BY ?o",
    f"SELECT * {{ <urn:a> {P} ?o OPTIONAL {{ ?o {Q} ?v }} }}",
    f"SELECT * {{ {{ <urn:a> {P} ?o }} UNION {{ <urn:b> {P} ?o }} }}",
    f"SELECT * {{ <urn:a> {P}+ ?o }}",
    f"SELECT (COUNT(*) AS ?n) {{ <urn:a> {P} ?o }}",
    f"SELECT (1 AS ?n) {{ <urn:a> {P} ?o }}",
    f"SELECT (STR(?o) AS ?t) {{ <urn:a> {P} ?o }}",
    f"SELECT * {{ <urn:a> {P} ?o FILTER(?o != <urn:b>) }}",
    f"SELECT * {{ <urn:a> {P} ?o FILTER(REGEX(STR(?o), 'x')) }}",
    f"SELECT * {{ <urn:a> {P} ?o FILTER NOT EXISTS {{ ?o {Q} ?v }} }}",
    f"SELECT * {{ <urn:a> {P} ?o FILTER(?o = <urn:b> || ?o = <urn:c>) }}",
    f"SELECT * {{ VALUES ?o {{ <urn:b> }} <urn:a> {P} ?o }}",
    "SELECT * { <urn:a> ?p ?o . ?o ?p ?x }",
    "SELECT * { ?e <https://triplewire.dev/ns#stream> 'home' }",
    f"SELECT * {{ {' '.join(f'?v{n} {P} ?v{n + 1} .' for n in range(INDEX_JOIN_SCANS + 1))} }}",
    "SELECT * { <urn:a> <urn:unheard> ?o }",
    f"CONSTRUCT WHERE {{ <urn:a> {P} ?o }}",
    "DESCRIBE <urn:a>",
)


@pytest.mark.parametrize("text", INDEXABLE)
def test_a_conjunction_of_scans_is_an_index_join(text: str) -> None:
    found = find(text)
    assert found is not None
    assert len(found.scans) == INDEXABLE[text]


@pytest.mark.parametrize("text", LEFT)
def test_whatever_does_more_is_left_to_the_engine(text: str) -> None:
    assert find(text) is None


def test_data_without_ids_or_with_duplicates_are_left_to_the_engine() -> None:
    text = f"SELECT * {{ ?s {P} ?o . ?o {P} <urn:b> }}"
    assert find(text) is not None
    assert find(text, Statistics()) is None
    assert find(text, KNOWN.without({P})) is None


def test_an_index_join_says_all_that_the_query_asks() -> None:
    found = find(f"SELECT ?s {{ ?s {P} <urn:b> ; {Q} ?v FILTER(?v >= 3.5) }} LIMIT 7")
    assert found is not None
    (first, second), limit = found.scans, found.limit
    assert limit == 7
    assert (first.predicate, second.predicate) == (0, 1)
    assert [(each.column, each.operator, each.constant.text) for each in first.comparisons] == [
        ("object", "=", "<urn:b>")
    ]
    assert {(each.column, each.operator, each.constant.text) for each in second.comparisons} >= {
        ("object_number", ">=", "3.5"),
        ("object_number", "is not NaN", "0"),
    }
    assert found.ties == ((("q1", "subject_id"), ("q2", "subject_id")),)
    assert found.outputs == (("q1", "subject_id"),)


def test_times_are_compared_as_they_are_stored() -> None:
    dated = Statistics(
        {P: COUNTS},
        COUNTS,
        {P: PredicateKind(frozenset({Family.DATETIME}), short=True, unique=True, zoned=True)},
        {P: 0},
        identified=True,
        complete=True,
        blank=False,
    )
    found = find(f'SELECT * {{ <urn:a> {P} ?t FILTER(?t < "2026-01-01T00:00:00Z"^^<{XSD}dateTime>) }}', dated)
    assert found is not None
    assert ("object_time", "<", "2026-01-01 00:00:00") in [
        (each.column, each.operator, each.constant.text) for each in found.scans[0].comparisons
    ]
