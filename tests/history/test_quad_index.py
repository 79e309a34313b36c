"""The index of the copy: look-ups are answered as the files answer them, whatever happened to the lake."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from tests.history.lakes import PREFIXES, E, Growing, Rows, asked, iri, triple, typed
from tests.storage.lake.test_delta import entries
from triplewire.history.duckdb import DuckDbEngine, IndexLimits
from triplewire.history.requests import QueryLimits
from triplewire.model import Event
from triplewire.security.visibility import ALL_VISIBLE, PatternSet
from triplewire.sparql import compile_query, parse_query
from triplewire.sparql.compiler.index_joins import IndexJoin
from triplewire.storage.lake.data_files import FileWriter
from triplewire.storage.lake.delta import DeltaLake
from triplewire.storage.lake.ports import CommitBatch, Snapshot

EVENTS = 40
LOOK_UPS = (
    *(f"SELECT * {{ GRAPH <{E}event/{number}> {{ ?s ?p ?o }} }}" for number in (0, 7, 31, EVENTS)),
    "SELECT * { :s3 ?p ?o }",
    "SELECT * { ?s :of :k1 }",
    "SELECT * { ?s :of :k1 } LIMIT 3",
    "SELECT * { ?s :of :k1 ; :v ?v ; :at ?t FILTER(?v > 9) }",
    "SELECT * { ?s :of :k2 ; :v ?v FILTER(?v <= 20 && ?v > 8) }",
    "SELECT * { ?s :of :k0 ; :at ?t FILTER(?t >= '2020-01-15T00:00:00Z'^^xsd:dateTime) }",
    "SELECT * { ?s :of ?k . ?k :in :hall }",
    "SELECT ?g ?s { GRAPH ?g { ?s :of :k2 ; :v ?v } }",
    "SELECT * { :s5 :of :k2 }",
    "SELECT * { :s5 :of :k1 }",
    "SELECT * { :unheard ?p ?o }",
    "ASK { :s5 :of :k2 }",
    "ASK { :s5 :of :k1 }",
)


def event(number: int) -> list[str]:
    name = f"s{number}"
    value = "NaN" if number % 10 == 9 else str(number)
    return [
        triple(name, "of", f"k{number % 3}"),
        triple(name, "v", typed(value, "double")),
        triple(name, "at", typed(f"2020-01-{number % 28 + 1:02}T00:00:00Z", "dateTime")),
        *([triple(f"k{number}", "in", "hall")] if number < 2 else []),
    ]


@pytest.fixture
def lake(tmp_path: Path) -> Growing:
    return Growing(tmp_path)


@pytest.fixture
def duck(lake: Growing) -> DuckDbEngine:
    return DuckDbEngine(lake.path, limits=IndexLimits(portion_quads=0))


def find_join(duck: DuckDbEngine, snapshot: Snapshot, text: str) -> IndexJoin | None:
    return compile_query(parse_query(PREFIXES + text), "duckdb", duck.statistics(snapshot)).index_join


def of_files(lake: Growing, snapshot: Snapshot) -> dict[str, Rows]:
    with closing(DuckDbEngine(lake.path, copies=False)) as fresh:
        return {text: asked(fresh, snapshot, text) for text in LOOK_UPS}


def without_limit(found: dict[str, Rows]) -> dict[str, Rows]:
    return {text: rows for text, rows in found.items() if "LIMIT" not in text}


def test_look_ups_are_answered_as_files_answer_them_while_the_lake_grows(lake: Growing, duck: DuckDbEngine) -> None:
    for start in range(0, EVENTS, 5):
        snapshot = lake.grow(*map(event, range(start, start + 5)))
        found = {text: asked(duck, snapshot, text) for text in LOOK_UPS}
        expected = of_files(lake, snapshot)
        assert without_limit(found) == without_limit(expected)
        assert all(found[text].total() == expected[text].total() for text in LOOK_UPS)
    assert all(find_join(duck, snapshot, text) is not None for text in LOOK_UPS)
    assert sum(1 for text in LOOK_UPS if not found[text]) == 3
    assert found["SELECT * { ?s :of :k1 } LIMIT 3"].total() == 3


def test_an_event_is_found_as_soon_as_it_is_committed(lake: Growing, duck: DuckDbEngine) -> None:
    for number in range(12):
        snapshot = lake.grow(event(number))
        assert asked(duck, snapshot, f"SELECT ?s {{ GRAPH <{E}event/{number}> {{ ?s :v ?v }} }}").total() == 1
        assert asked(duck, snapshot, f"SELECT ?v {{ :s{number} :v ?v }}").total() == 1
        assert asked(duck, snapshot, f"ASK {{ :s{number + 1} :v ?v }}") == {(False,): 1}


def test_rows_that_were_removed_are_found_no_more(lake: Growing, duck: DuckDbEngine) -> None:
    lake.grow(*map(event, range(5)))
    before = lake.grow(*map(event, range(5, 9)))
    assert asked(duck, before, "SELECT * { :s5 ?p ?o }").total() == 3
    after = lake.lose("v")
    assert asked(duck, after, "SELECT * { :s5 ?p ?o }").total() == 2
    assert asked(duck, after, "ASK { :s5 :v ?v }") == {(False,): 1}
    # An older version is read from its files.
    assert asked(duck, before, "SELECT * { :s5 ?p ?o }").total() == 3


def test_compacted_files_have_the_same_rows(lake: Growing, duck: DuckDbEngine) -> None:
    for start in range(0, 15, 5):
        lake.grow(*map(event, range(start, start + 5)))
        snapshot = lake.compact()
        found = {text: asked(duck, snapshot, text) for text in LOOK_UPS}
        assert without_limit(found) == without_limit(of_files(lake, snapshot))


def test_two_events_with_one_id_stay_two(lake: Growing, duck: DuckDbEngine) -> None:
    twice = [Event(f"{E}twice", triple("a", "p", "b")), Event(f"{E}twice", triple("c", "p", "d"))]
    for number, each in enumerate(twice, 1):
        written = FileWriter(lake.path).write(entries(each, first=number))
        DeltaLake(lake.path).commit(CommitBatch("q", number, number), [written])
    text = f"SELECT ?s ?x {{ GRAPH <{E}twice> {{ ?s :p ?o . ?x ?q ?y }} }}"
    assert find_join(duck, lake.files(), text) is not None
    assert asked(duck, lake.files(), text) == {(iri("a"), iri("a")): 1, (iri("c"), iri("c")): 1}


def test_what_is_hidden_from_a_caller_is_not_looked_up(lake: Growing, duck: DuckDbEngine) -> None:
    snapshot = lake.grow(*map(event, range(9)))
    compiled = compile_query(parse_query(f"{PREFIXES} SELECT * {{ :s5 ?p ?o }}"), "duckdb", duck.statistics(snapshot))
    hidden = replace(ALL_VISIBLE, predicates=PatternSet(denied=(iri("v"),)))
    rows = [sum(each.num_rows for each in duck.batches(compiled, snapshot, QueryLimits(), by)) for by in (None, hidden)]
    assert rows == [3, 2]
    assert [sum(each.num_rows for each in duck.batches(compiled, snapshot, QueryLimits())) for _ in range(2)] == [3, 3]


@pytest.mark.parametrize("limits", [{"index_bytes": 0}, {"index_join_rows": 0}, {"index_join_rows": 5}])
def test_what_the_index_leaves_to_the_engine_is_answered_by_it(lake: Growing, limits: dict[str, int]) -> None:
    duck = DuckDbEngine(lake.path, limits=replace(IndexLimits(portion_quads=0), **limits))
    for start in range(0, EVENTS, 10):
        snapshot = lake.grow(*map(event, range(start, start + 10)))
        found = {text: asked(duck, snapshot, text) for text in LOOK_UPS}
        assert without_limit(found) == without_limit(of_files(lake, snapshot))
