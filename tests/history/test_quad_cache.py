"""The copy of the lake in memory: answers are those of the files, and it keeps up with them."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from tests.history.lakes import Growing, Rows, asked, iri, triple, typed
from triplewire.history.duckdb import DuckDbEngine, IndexLimits
from triplewire.history.requests import QueryLimits
from triplewire.history.snapshots import PORTION_QUADS
from triplewire.sparql import compile_query, parse_query
from triplewire.storage.lake.ports import Snapshot

QUERIES = (
    "SELECT * { ?s ?p ?o }",
    "SELECT * { ?s :p ?o }",
    "SELECT * { ?s :new ?o }",
    "SELECT * { ?s :unheard ?o }",
    "SELECT ?p (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY ?p",
    "SELECT * { ?s ?p ?o FILTER(?p = :p) }",
    "SELECT * { ?s ?p ?o FILTER(?p IN (:p, :v)) }",
    "SELECT * { GRAPH ?g { ?s :p ?o . ?s :v ?v } }",
    "SELECT * { GRAPH :event\\/1 { ?s ?p ?o } }",
    "SELECT * FROM <http://example.org/event/0> { ?s ?p ?o }",
    "SELECT * { ?s :p+ ?o }",
    "SELECT * { :a (:p|:new)* ?o }",
    "SELECT * { ?s !:p ?o }",
    "SELECT * { ?s :v ?v FILTER(?v > 1) }",
    "SELECT * { ?s :v ?v OPTIONAL { ?s :new ?n } }",
    "SELECT * { ?s :p ?o MINUS { ?o :new ?x } }",
    "SELECT * { ?s :at ?t FILTER(?t < '2021-01-01T00:00:00Z'^^xsd:dateTime) }",
    "SELECT * { ?e <https://triplewire.dev/ns#stream> ?x ; <https://triplewire.dev/ns#received> ?t }",
    "SELECT * { GRAPH ?e { ?s :v ?v } ?e <https://triplewire.dev/ns#time> ?t }",
    "SELECT * { ?s :p ?o . ?o :p ?x . ?x ?p ?s }",
    "SELECT * { ?s :p ?o . ?x :p ?s . ?s :v ?v . ?o ?p ?y }",
    "SELECT * { ?s :p ?o OPTIONAL { ?o :new ?n . ?n ?q ?v OPTIONAL { ?s :v ?v } } }",
    "SELECT * { ?s :p ?o FILTER EXISTS { ?o :p ?x . ?x :p ?s } }",
    "SELECT * { ?s :p ?s2 . ?s2 :p ?s3 { SELECT ?s3 (COUNT(*) AS ?n) { ?s3 ?p ?o } GROUP BY ?s3 } }",
    "ASK { :c :p :a }",
)
FILES = (
    [[triple("a", "p", "b"), triple("a", "v", typed("1", "integer"))], [triple("b", "p", "c")]],
    [[triple("c", "p", "a"), triple("a", "p", "b"), triple("c", "v", typed("2.5", "decimal"))]],
    [
        [triple("c", "new", "d"), triple("d", "at", typed("2020-01-01T00:00:00Z", "dateTime"))],
        [triple("a", "v", '"x"')],
    ],
    [[triple("b", "another", "c"), triple("c", "new", "d"), triple("d", "v", typed("7", "double"))]],
)


@pytest.fixture
def lake(tmp_path: Path) -> Growing:
    return Growing(tmp_path)


@pytest.fixture
def duck(lake: Growing) -> DuckDbEngine:
    """Takes in a file at a time, however small, so that much can happen between two of them."""
    return DuckDbEngine(lake.path, limits=IndexLimits(portion_quads=0))


def copied(duck: DuckDbEngine, snapshot: Snapshot) -> bool:
    compiled = compile_query(parse_query("ASK { ?s ?p ?o }"), "duckdb")
    return duck.profile(compiled, snapshot, QueryLimits()).copied


def of_files(path: Path, snapshot: Snapshot) -> dict[str, Rows]:
    """The answers of an engine that keeps no copy."""
    with closing(DuckDbEngine(path, copies=False)) as fresh:
        found = {text: asked(fresh, snapshot, text) for text in QUERIES}
        assert not copied(fresh, snapshot)
    return found


def test_the_copy_answers_as_the_files_do_while_the_lake_grows(lake: Growing, duck: DuckDbEngine) -> None:
    for file in FILES:
        snapshot = lake.grow(*file)
        found = {text: asked(duck, snapshot, text) for text in QUERIES}
        assert copied(duck, snapshot)
        assert found == of_files(lake.path, snapshot)
    assert all(found[text] for text in QUERIES if "unheard" not in text)


def test_a_predicate_that_comes_later_has_a_number_of_its_own(lake: Growing, duck: DuckDbEngine) -> None:
    first = dict(duck.statistics(lake.grow(*FILES[0])).numbers)
    assert sorted(first.values()) == [0, 1]
    for file in FILES[1:]:
        later = dict(duck.statistics(lake.grow(*file)).numbers)
    assert later == {**first, **{iri("at"): 2, iri("new"): 3, iri("another"): 4}}


def test_statistics_of_the_same_data_are_one_value_so_that_plans_are_kept(lake: Growing, duck: DuckDbEngine) -> None:
    first = lake.grow(*FILES[0])
    known = duck.statistics(first)
    assert duck.statistics(first) is known
    assert duck.statistics(lake.grow(*FILES[1])) is not known


def test_a_plan_over_the_copy_goes_by_numbers_and_one_over_files_does_not(lake: Growing, duck: DuckDbEngine) -> None:
    query = parse_query("SELECT * { ?s <http://example.org/p> ?o }")
    snapshot = lake.grow(*FILES[0])
    assert "predicate_number = 0" in compile_query(query, "duckdb", duck.statistics(snapshot)).sql
    files = DuckDbEngine(lake.path, copies=False)
    assert "predicate_number" not in compile_query(query, "duckdb", files.statistics(snapshot)).sql


def test_a_lake_that_has_become_too_large_is_read_from_its_files(lake: Growing) -> None:
    first = lake.grow(*FILES[0])
    duck = DuckDbEngine(lake.path, limits=IndexLimits(cached_quads=first.quads, portion_quads=0))
    assert sum(asked(duck, first, "SELECT * { ?s ?p ?o }").values()) == 3
    assert copied(duck, first)
    second = lake.grow(*FILES[1])
    assert sum(asked(duck, second, "SELECT * { ?s ?p ?o }").values()) == 5
    assert not copied(duck, second)
    assert not duck.statistics(second).numbers
    assert duck.statistics(second).complete


def test_a_file_that_is_gone_is_gone_from_the_copy(lake: Growing, duck: DuckDbEngine) -> None:
    lake.grow(*FILES[0])
    whole = lake.grow(*FILES[2])
    assert sum(asked(duck, whole, QUERIES[0]).values()) == 6
    for removals, gone in enumerate(whole.files, 1):
        kept = tuple(each for each in whole.files if each != gone)
        rest = replace(whole, version=whole.version + removals, removals=removals, files=kept)
        assert sum(asked(duck, rest, QUERIES[0]).values()) == 3
        assert asked(duck, rest, QUERIES[1]) == asked(DuckDbEngine(lake.path), rest, QUERIES[1])
        assert copied(duck, rest)


def test_compaction_leaves_the_copy_as_it_is(lake: Growing, duck: DuckDbEngine) -> None:
    for file in FILES[:3]:
        before = lake.grow(*file)
    assert duck.statistics(before).complete
    compacted = lake.compact()
    assert not duck.prepare(compacted)
    assert copied(duck, compacted)
    lake.grow(*FILES[3])
    later = lake.compact()
    assert {text: asked(duck, later, text) for text in QUERIES} == of_files(lake.path, later)
    assert copied(duck, later)


def test_a_file_that_is_taken_away_meanwhile_begins_the_copy_anew(lake: Growing, duck: DuckDbEngine) -> None:
    for file in FILES[:3]:
        before = lake.grow(*file)
    assert duck.prepare(before)
    compacted = lake.compact()
    for path in before.paths:
        Path(path).unlink()
    while not copied(duck, compacted):
        duck.prepare(compacted)
    assert {text: asked(duck, compacted, text) for text in QUERIES} == of_files(lake.path, compacted)


@pytest.mark.parametrize(("most", "portions"), [(0, 3), (PORTION_QUADS, 1)])
def test_preparing_takes_a_portion_at_a_time_and_says_when_it_is_done(most: int, portions: int, lake: Growing) -> None:
    duck = DuckDbEngine(lake.path, limits=IndexLimits(portion_quads=most))
    for file in FILES[:3]:
        snapshot = lake.grow(*file)
    steps = [duck.prepare(snapshot) for _ in range(11)]
    assert steps == [True] * (3 * portions) + [False] * (11 - 3 * portions)
    assert copied(duck, snapshot)
    assert duck.statistics(snapshot).complete


def test_what_is_too_much_to_wait_for_is_read_from_files_until_it_is_ready(
    lake: Growing,
) -> None:
    duck = DuckDbEngine(lake.path, limits=IndexLimits(catch_up_quads=0, portion_quads=0))
    for file in FILES:
        snapshot = lake.grow(*file)
    found = of_files(lake.path, snapshot)
    states = []
    while True:
        assert {text: asked(duck, snapshot, text) for text in QUERIES} == found
        states.append(copied(duck, snapshot))
        if not duck.prepare(snapshot):
            break
    assert states == [False] * 12 + [True]


def test_an_empty_lake_is_ready(lake: Growing, duck: DuckDbEngine) -> None:
    assert not duck.prepare(Snapshot.empty())
    assert not asked(duck, Snapshot.empty(), "SELECT * { ?s ?p ?o }")
