"""Prunings: a query opens the files that its constants and ranges touch, and no others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from tests.history.lakes import E, Growing, iri, triple, typed
from triplewire.history.duckdb import DuckDbEngine
from triplewire.history.pruning import ZoneMaps, prune_joins
from triplewire.history.requests import QueryLimits
from triplewire.sparql import CompiledQuery, compile_query, parse_query
from triplewire.sparql.compiler.scan_predicates import (
    ColumnBound,
    ConstantKind,
    ScanPredicate,
    SemiJoinTie,
    SqlConstant,
    ValueInterval,
)
from triplewire.storage.lake.ports import DataFile, Snapshot

PREFIXES = f"PREFIX : <{E}> PREFIX tw: <https://triplewire.dev/ns#> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> "


def value(number: int) -> list[str]:
    """An event of one file."""
    return [triple(f"s{number}", "v", typed(str(number), "integer")), triple(f"s{number}", "in", f"r{number // 2}")]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    """Files 0 to 5 hold an event each, with what follows from its number; 6 and 7 are of other things."""
    made = Growing(tmp_path_factory.mktemp("lake"))
    for number in range(6):
        made.grow(value(number))
    made.grow([triple("day", "at", typed(f"2020-01-0{day}T00:00:00Z", "dateTime")) for day in (1, 2)])
    return made.grow([triple("r0", "within", "r1"), triple("r1", "within", "r2")])


@pytest.fixture(scope="module")
def duck(lake: Snapshot) -> Iterator[DuckDbEngine]:
    with closing(DuckDbEngine(Path(lake.table), copies=False)) as made:
        yield made


CASES = {
    "SELECT * { :s3 ?p ?o }": {3},
    "SELECT * { ?s :at ?o }": {6},
    "SELECT * { ?s ?p :r1 }": {2, 3, 4, 5, 7},
    "SELECT * { GRAPH <http://example.org/event/4> { ?s ?p ?o } }": {4},
    "SELECT * FROM <http://example.org/event/2> { ?s ?p ?o }": {2},
    "SELECT * { ?s :zzz ?o }": {*()},
    "SELECT * { VALUES ?s { :s1 :s5 } ?s :v ?v }": {1, 5},
    "SELECT * { ?s :v ?v FILTER(?s IN (:s0, :s1)) }": {0, 1},
    "SELECT * { ?s :v ?v FILTER(?v > 3) }": {3, 4, 5},
    "SELECT * { ?s :v ?v FILTER(?v > 3.5 && ?v <= 4.0) }": {4},
    "SELECT * { ?s :v ?v FILTER(?v = 2.0e0 || ?v = 5) }": {2, 5},
    "SELECT * { ?s :at ?t FILTER(?t > '2020-01-02T15:00:00Z'^^xsd:dateTime) }": {*()},
    "SELECT * { ?s :at ?t FILTER(?t > '2020-01-02T00:00:00Z'^^xsd:dateTime) }": {6},
    f"SELECT * {{ ?s ?p ?o FILTER(STRSTARTS(STR(?s), '{E}s4')) }}": {4},
    "SELECT * { ?s :v ?v OPTIONAL { ?s :at ?t } FILTER(?v < 1) }": {0, 1, 6},
    "SELECT * { ?s :at ?t MINUS { ?s :v 3 } }": {3, 6},
    "SELECT * { ?s :at ?t FILTER NOT EXISTS { ?s :within :r2 } }": {6, 7},
    "SELECT * { { ?s :v 1 } UNION { ?s :v 4 } }": {1, 4},
    "SELECT * { ?s :in ?r . ?s :v ?v FILTER(?s = :s2) }": {2},
    "SELECT * { :r0 :within+ ?r }": {7},
    "SELECT * { { SELECT ?s (MAX(?v) AS ?m) { ?s :v ?v FILTER(?v > 4) } GROUP BY ?s } }": {4, 5},
    "SELECT * { { SELECT DISTINCT ?s { ?s :v ?v } } FILTER(?s = :s1) }": {1},
    "SELECT * { { SELECT ?s { ?s :v ?v } ORDER BY ?v LIMIT 1 } FILTER(?s = :s1) }": {0, 1, 2, 3, 4, 5},
    "SELECT * { ?s ?p 4 }": {4},
    "SELECT * { ?s ?p '2020-01-01T00:00:00Z'^^xsd:dateTime }": {6},
    "SELECT * { ?s ?p '2021-01-01T00:00:00Z'^^xsd:dateTime }": {*()},
    "ASK { :s3 :v ?x }": {3},
    "CONSTRUCT { ?s :x ?v } WHERE { ?s :v ?v FILTER(?v >= 5) }": {5},
    "DESCRIBE :s2": {2},
    "SELECT * { ?e tw:stream 'nothing' }": {*()},
    "SELECT * { ?e tw:received ?t FILTER(?t < '1900-01-01T00:00:00Z'^^xsd:dateTime) GRAPH ?e { ?s :v ?v } }": {*()},
    "SELECT * { ?s ?p ?o }": {0, 1, 2, 3, 4, 5, 6, 7},
    "SELECT * { ?s :v 3 ; :in ?r }": {3},
    "SELECT * { ?s :v 2 ; :in ?r . ?r :within ?w }": {2, 7},
    "SELECT * { :r0 :within ?r . ?s :in ?r }": {2, 3, 4, 5, 7},
    "SELECT * { GRAPH ?g { ?s :v 3 } GRAPH ?g { ?t :in ?r } }": {3},
    "SELECT * { ?e tw:stream ?x . GRAPH ?e { ?s :v 3 } }": {3},
    "SELECT * { ?s :v ?v OPTIONAL { ?s :in ?r } FILTER(?v > 4) }": {4, 5},
    "SELECT * { ?s :v 3 FILTER NOT EXISTS { ?s :in ?r } }": {3},
    "SELECT * { ?s :v 3 OPTIONAL { ?s :in ?r . ?r :within ?w } }": {3, 7},
    "SELECT * { ?s :v 3 { ?s :in ?r } UNION { ?s :at ?r } }": {3, 6},
    "SELECT * { ?s :in|:at ?r { SELECT ?s { ?s :v 3 } LIMIT 1 } }": {3, 6},
    "SELECT * { ?s :v 3 { SELECT ?s { ?s :in ?r } ORDER BY ?r ?s LIMIT 1 } }": {0, 1, 2, 3, 4, 5},
    "SELECT * { ?s :in ?r OPTIONAL { ?s :v 3 } }": {0, 1, 2, 3, 4, 5},
    "SELECT * { ?s :in ?r MINUS { ?s :v 3 } }": {0, 1, 2, 3, 4, 5},
    "SELECT * { ?s :in ?r OPTIONAL { ?s :v 3 } OPTIONAL { ?s :in ?x } }": {0, 1, 2, 3, 4, 5},
    "SELECT * { { ?s :v 3 } UNION { ?s :in ?r } }": {0, 1, 2, 3, 4, 5},
}


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("text", CASES)
def test_files_that_hold_nothing_for_it_are_not_read(
    duck: DuckDbEngine, lake: Snapshot, text: str, known: bool
) -> None:
    statistics = duck.statistics(lake) if known else None
    compiled = compile_query(parse_query(PREFIXES + text), "duckdb", statistics)
    read = {number for numbers in duck.scanned(compiled, lake).scans.values() for number in numbers}
    if known or "GRAPH ?e" not in text:
        assert read == CASES[text]
    assert rows(duck, compiled, lake) == rows(duck, replace(compiled, scan_predicates=()), lake)


def rows(duck: DuckDbEngine, compiled: CompiledQuery, lake: Snapshot) -> list[str]:
    found = duck.batches(compiled, lake, QueryLimits())
    return sorted(str(row) for batch in found for row in batch.to_pylist())


def test_a_text_that_names_a_relation_stays_what_it_is(duck: DuckDbEngine, lake: Snapshot) -> None:
    query = "SELECT ('quads AS q1 events' AS ?x) { :s3 :v ?v FILTER(?v != \"it's quads AS q1\") }"
    assert rows(duck, compile_query(parse_query(PREFIXES + query), "duckdb"), lake) == [
        "{'v0': '\"quads AS q1 events\"'}"
    ]


def test_events_of_one_id_are_not_taken_for_one(tmp_path: Path) -> None:
    """The headers of the one go with the quads of the other, so that these must be read, too."""
    lake = Growing(tmp_path)
    lake.grow([triple("a", "v", "b")])
    lake.events = 0
    snapshot = lake.grow([triple("c", "v", "d")])
    duck = DuckDbEngine(tmp_path, copies=False)
    text = "SELECT ?s { ?e tw:stream 'readings' . GRAPH ?e { ?s :v ?o } FILTER(?s = :a) }"
    compiled = compile_query(parse_query(PREFIXES + text), "duckdb", duck.statistics(snapshot))
    assert rows(duck, compiled, snapshot) == rows(duck, replace(compiled, scan_predicates=()), snapshot)
    assert not duck.statistics(snapshot).single


def of(column: str, *intervals: tuple[str | None, str | None]) -> ScanPredicate:
    kind: ConstantKind = "number" if column == "object_number" else "text"
    made = tuple(
        ValueInterval(*(() if end is None else (SqlConstant(kind, end),) for end in each)) for each in intervals
    )
    return ScanPredicate("quads", "q1", ((ColumnBound(column, made),),))


def test_of_many_intervals_one_is_enough() -> None:
    files = [DataFile(str(n), 1, 1, {"subject": (iri(f"s{n:02}"), iri(f"s{n + 2:02}"))}) for n in range(0, 30, 3)]
    points = [(iri(f"s{n:02}"),) * 2 for n in (4, 5, 14, 29)]
    assert ZoneMaps(files).select_files(of("subject", *points)) == {1, 4, 9}
    assert ZoneMaps(files).select_files(of("subject")) == set()
    assert ZoneMaps(files).select_files(of("subject", (iri("s25"), None), (None, iri("s02")))) == {0, 8, 9}


def test_a_scan_is_narrowed_by_where_the_files_of_another_lie() -> None:
    spread = [{"subject": (iri(f"s{n}"), iri(f"s{n}")), "predicate": (iri("p"), iri("p"))} for n in range(8)]
    files = [DataFile(str(n), 1, 1, ranges) for n, ranges in enumerate([*spread, {"predicate": (iri("q"), iri("q"))}])]
    few, all_ = of("subject", (iri("s2"), iri("s3"))), of("predicate", (iri("p"), iri("p")))
    tied = replace(all_, alias="q2", ties=(SemiJoinTie("subject", "q1", "subject"),))
    assert prune_joins([tied, few], ZoneMaps(files[:8])) == {"q1": (2, 3), "q2": (2, 3)}
    # A file of which nothing is known may have any subject, and may be joined with any.
    assert prune_joins([tied, few], ZoneMaps(files))["q2"] == tuple(range(8))
    further = replace(
        of("predicate", (iri("p"), iri("q"))), alias="q3", ties=(SemiJoinTie("subject", "q2", "subject"),)
    )
    assert prune_joins([further, tied, few], ZoneMaps(files[:8]))["q3"] == (2, 3)
    assert prune_joins([tied, of("subject", (iri("t"), None))], ZoneMaps(files[:8]))["q2"] == ()


def test_a_file_of_which_nothing_is_known_is_read_and_one_without_values_is_not() -> None:
    files = [DataFile("a", 1, 1, {}), DataFile("b", 1, 1, {"object_number": (None, None)})]
    assert ZoneMaps(files).select_files(of("object_number", ("1.0", None))) == {0}
    assert ZoneMaps(files).select_files(of("object_number", ("nan", "nan"))) == {0}
