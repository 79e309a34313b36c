"""Statistics of the lake: what plans rely on is exact, whatever comes later; the rest is about right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.history.lakes import PREFIXES, E, Growing, asked, iri, triple, typed
from tests.storage.lake.test_delta import entries
from triplewire.history.dataset_statistics import StatisticsFile
from triplewire.history.duckdb import DuckDbEngine, IndexLimits
from triplewire.model import Event
from triplewire.sparql import Family, Statistics, compile_query, parse_query
from triplewire.sparql.statistics import PredicateKind
from triplewire.storage.lake.data_files import FileWriter
from triplewire.storage.lake.delta import DeltaLake
from triplewire.storage.lake.ports import CommitBatch, Snapshot

ONE, TWO = typed("1", "integer"), typed("2", "integer")

Triple: TypeAlias = tuple[str, str, str]


def counted(duck: DuckDbEngine, snapshot: Snapshot) -> Statistics:
    return replace(duck.statistics(snapshot), numbers={}, identified=False)


@pytest.fixture
def counting(lake: Growing) -> Iterator[DuckDbEngine]:
    """A file at a time, however small."""
    with closing(DuckDbEngine(lake.path, limits=IndexLimits(portion_quads=0))) as made:
        yield made


@pytest.fixture
def lake(tmp_path: Path) -> Growing:
    return Growing(tmp_path)


@pytest.mark.parametrize(
    ("object_", "families", "short"),
    [
        ("o", {Family.IRI}, True),
        ("_:b", {Family.IRI, Family.BLANK}, True),
        ('"a"', {Family.STRING}, True),
        ('"a"@en', {Family.TAGGED}, True),
        (ONE, {Family.EXACT}, True),
        (typed("2.5", "decimal"), {Family.EXACT}, True),
        (typed("1" * 30, "integer"), {Family.EXACT}, False),
        (typed("x", "integer"), {Family.EXACT, Family.OTHER}, True),
        (typed("NaN", "double"), {Family.DOUBLE}, True),
        (typed("1e400", "float"), {Family.FLOAT}, True),
        (typed("2020-01-01T00:00:00Z", "dateTime"), {Family.DATETIME}, True),
        (typed("2020-13-01T00:00:00Z", "dateTime"), {Family.DATETIME, Family.OTHER}, True),
        ('"a"^^<urn:type>', {Family.OTHER}, True),
    ],
)
def test_objects_are_of_no_other_family(
    counting: DuckDbEngine, lake: Growing, object_: str, families: set[Family], short: bool
) -> None:
    found = counted(counting, lake.grow([triple("s", "p", object_)]))
    assert found.kind(iri("p")) == PredicateKind(frozenset(families), short=short, unique=True, zoned=True)


def test_a_value_of_another_datatype_in_a_later_file_widens_what_objects_are(
    counting: DuckDbEngine, lake: Growing
) -> None:
    first = counted(counting, lake.grow([triple("s", "p", ONE), triple("s", "q", "o")]))
    assert first.kind(iri("p")).families == {Family.EXACT}
    assert first.kind(None).families == {Family.EXACT, Family.IRI}
    later = counted(counting, lake.grow([triple("s", "p", '"a"'), triple("s", "p", typed("9" * 30, "integer"))]))
    assert later.kind(iri("p")) == PredicateKind(
        frozenset({Family.EXACT, Family.STRING}), short=False, unique=True, zoned=True
    )
    assert later.kind(iri("q")) == PredicateKind(frozenset({Family.IRI}), short=True, unique=True, zoned=True)


def test_a_triple_that_comes_again_ends_that_all_are_unique(counting: DuckDbEngine, lake: Growing) -> None:
    first = counted(counting, lake.grow([triple("s", "p", "o"), triple("s", "q", "o")]))
    assert first.kind(iri("p")).unique
    assert first.kind(None).unique
    later = counted(counting, lake.grow([triple("s", "p", "o2"), triple("s", "p", "o")]))
    assert not later.kind(iri("p")).unique
    assert later.kind(iri("q")).unique
    assert not later.kind(None).unique


def test_a_triple_of_two_events_in_one_file_is_not_unique(counting: DuckDbEngine, lake: Growing) -> None:
    found = counted(counting, lake.grow([triple("s", "p", "o")], [triple("s", "p", "o")]))
    assert not found.kind(iri("p")).unique


def test_names_in_the_order_of_time_stay_unique_whatever_is_forgotten(lake: Growing) -> None:
    counting = DuckDbEngine(lake.path, limits=IndexLimits(portion_quads=0, hashed_quads=6))
    for number in range(10, 30):
        found = counted(counting, lake.grow([triple(f"s{number}", "p", "a"), triple("s", "q", f"o{number}")]))
        assert found.kind(iri("p")).unique
    assert not found.kind(iri("q")).unique


@pytest.mark.parametrize("object_", ["a", "new"])
def test_a_name_of_what_was_forgotten_may_have_been_there(lake: Growing, object_: str) -> None:
    counting = DuckDbEngine(lake.path, limits=IndexLimits(portion_quads=0, hashed_quads=6))
    for number in range(10, 20):
        lake.grow([triple(f"s{number}", "p", "a"), triple(f"s{number}", "q", "a")])
        counting.statistics(lake.files())
    found = counted(counting, lake.grow([triple("s10", "p", object_)]))
    assert not found.kind(iri("p")).unique
    assert found.kind(iri("q")).unique


TRIPLES = st.tuples(st.sampled_from("abcdef"), st.sampled_from("pq"), st.sampled_from("xyz"))


@given(st.lists(st.lists(st.frozensets(TRIPLES, min_size=1, max_size=3), min_size=1, max_size=3), max_size=6))
@settings(max_examples=40, deadline=None)
def test_what_is_said_to_be_unique_is_however_little_is_remembered(files: list[list[frozenset[Triple]]]) -> None:
    with TemporaryDirectory() as folder:
        lake, seen = Growing(Path(folder)), Counter[Triple]()
        with closing(DuckDbEngine(lake.path, limits=IndexLimits(portion_quads=0, hashed_quads=8))) as duck:
            for events in files:
                found = counted(duck, lake.grow(*([triple(*each) for each in event] for event in events)))
                seen.update(each for event in events for each in event)
                twice = {each[1] for each, times in seen.items() if times > 1}
                for predicate in twice:
                    assert not found.kind(iri(predicate)).unique


def test_rows_that_are_gone_begin_everything_anew(counting: DuckDbEngine, lake: Growing) -> None:
    whole = [lake.grow([triple("s", "p", object_)]) for object_ in ("o", '"a"', "o")][-1]
    assert counted(counting, whole).kind(iri("p")).families == {Family.IRI, Family.STRING}
    rest = replace(whole, version=whole.version + 1, removals=1, files=whole.files[:1])
    found = counted(counting, rest)
    assert found.kind(iri("p")) == PredicateKind(frozenset({Family.IRI}), short=True, unique=True, zoned=True)
    assert found.predicates[iri("p")].rows == 1


def test_files_that_hold_the_same_rows_change_nothing(counting: DuckDbEngine, lake: Growing) -> None:
    for object_ in ("o", '"a"', "b"):
        before = lake.grow([triple("s", "p", object_)])
    known = counting.statistics(before)
    assert counting.statistics(lake.compact()) is known
    lake.grow([triple("s", "p", "c")])
    later = counting.statistics(lake.compact()).kind(iri("p"))
    assert later.unique
    assert later.families == {Family.IRI, Family.STRING}
    lake.grow([triple("s", "p", "o")])
    assert not counting.statistics(lake.compact()).kind(iri("p")).unique


def test_files_that_change_while_they_are_counted_do_not_count_twice(lake: Growing) -> None:
    counting = DuckDbEngine(lake.path, limits=IndexLimits(portion_quads=0, catch_up_quads=0))
    for object_ in "abc":
        snapshot = lake.grow([triple("s", "p", object_)])
    assert counting.prepare(snapshot)
    compacted = lake.compact()
    assert not counting.statistics(compacted).complete
    while counting.prepare(compacted):
        pass
    found = counting.statistics(compacted)
    assert (found.total.rows, found.kind(iri("p")).unique) == (3, True)


def test_an_older_version_is_not_answered_for(counting: DuckDbEngine, lake: Growing) -> None:
    """What it holds may have changed since: erasure reaches there, too."""
    old = lake.grow([triple("s", "p", "a")])
    assert counting.statistics(old).complete
    assert counting.statistics(lake.compact()).complete
    assert not counting.known(old).complete


def test_plans_stay_while_statistics_say_the_same(counting: DuckDbEngine, lake: Growing) -> None:
    known = counting.statistics(lake.grow(*[[triple("s", "p", f"o{n}")] for n in range(20)]))
    assert counting.statistics(lake.grow([triple("s", "p", "x")])) is known
    assert counting.statistics(lake.grow([triple("s", "p", '"x"')])) is not known


def test_events_of_one_id_are_told(counting: DuckDbEngine, lake: Growing) -> None:
    assert counted(counting, lake.grow([triple("s", "p", "a")], [triple("s", "p", "b")])).single
    lake.events = 0
    assert not counted(counting, lake.grow([triple("s", "p", "c")])).single


@pytest.mark.parametrize("ids", [("a", "b"), ("a", "a")])
@pytest.mark.parametrize("graph", ["?g", ":a"])
def test_a_graph_says_a_triple_once_however_many_events_have_its_name(
    counting: DuckDbEngine, lake: Growing, ids: tuple[str, str], graph: str
) -> None:
    said = [Event(f"{E}{name}", triple("s", "p", "o")) for name in ids]
    made = DeltaLake(lake.path)
    made.commit(CommitBatch("q", 1, 2), [FileWriter(lake.path).write(entries(*said))])
    text = f"SELECT * {{ GRAPH {graph} {{ ?s ?p ?o }} }}"
    assert set(asked(counting, made.files(), text).values()) == {1}
    compiled = compile_query(parse_query(PREFIXES + text), "duckdb", counting.statistics(made.files()))
    assert ("DISTINCT" in compiled.sql) == (ids == ("a", "a"))


@pytest.fixture
def records(tmp_path: Path) -> StatisticsFile:
    return StatisticsFile(tmp_path / "statistics.json", least_growth=1)


def test_another_process_goes_on_from_what_was_counted(lake: Growing, records: StatisticsFile, tmp_path: Path) -> None:
    many = [[triple(f"s{n % 10}", "p", f"o{n}"), triple("s", "q", ONE)] for n in range(50)]
    first = DuckDbEngine(lake.path, records=records, copies=False)
    known = first.statistics(lake.grow(*many))
    later = lake.grow([triple("s", "p", '"x"')])
    for path in later.paths[:1]:
        # What was counted is not looked at again, but for what repeats, which begins anew when a file is gone.
        Path(path).unlink()
    next_ = DuckDbEngine(lake.path, records=StatisticsFile(tmp_path / "statistics.json", least_growth=1), copies=False)
    found = next_.statistics(later)
    assert found.kind(iri("p")).families == {Family.IRI, Family.STRING}
    assert (found.total.rows, found.predicates[iri("q")]) == (101, known.predicates[iri("q")])
    assert found.predicates[iri("p")].subjects == pytest.approx(10, abs=2)


def test_a_record_of_rows_that_are_gone_is_replaced(lake: Growing, records: StatisticsFile, tmp_path: Path) -> None:
    whole = lake.grow([triple("s", "p", "a")], [triple("s", "secret", ONE)])
    DuckDbEngine(lake.path, records=records, copies=False).statistics(whole)
    assert b"secret" in (tmp_path / "statistics.json").read_bytes()
    rest = lake.lose("secret")
    DuckDbEngine(
        lake.path, records=StatisticsFile(tmp_path / "statistics.json", least_growth=1), copies=False
    ).statistics(rest)
    assert b"secret" not in (tmp_path / "statistics.json").read_bytes()


@pytest.mark.parametrize(
    "spoilt",
    [
        b"",
        b"{",
        b"[]",
        b'{"position": 1}',
        b'{"position": 1, "removals": 0, "rows": 9, "facts": [["p"]], "sketches": {}}',
        b'{"position": 1, "removals": 0, "rows": 9, "facts": [], "sketches": {"p": ["zz"]}}',
        b'{"position": 1, "removals": 7, "rows": 9, "facts": [], "sketches": {}}',
        b'{"position": 99, "removals": 0, "rows": 9, "facts": [], "sketches": {}}',
    ],
)
def test_a_record_that_is_torn_or_of_another_table_is_as_if_there_was_none(
    lake: Growing, records: StatisticsFile, tmp_path: Path, spoilt: bytes
) -> None:
    (tmp_path / "statistics.json").write_bytes(spoilt)
    snapshot = lake.grow([triple("s", "p", "a")], [triple("s", "p", ONE)], [triple("s", "p", "b")])
    duck = DuckDbEngine(lake.path, records=records, copies=False)
    assert duck.statistics(snapshot).kind(iri("p")).families == {Family.IRI, Family.EXACT}
    assert duck.statistics(snapshot).total.rows == 3


def test_estimates_are_about_right_and_follow_the_lake(counting: DuckDbEngine, lake: Growing) -> None:
    many = [[triple(f"s{n % 10}", "p", f"o{n}"), triple("s", "q", "o")] for n in range(200)]
    found = counted(counting, lake.grow(*many))
    p, q = found.predicates[iri("p")], found.predicates[iri("q")]
    assert (p.rows, q.rows, q.triples, q.subjects, q.objects) == (200, 200, 1, 1, 1)
    assert p.triples == pytest.approx(200, rel=0.2)
    assert p.subjects == pytest.approx(10, abs=2)
    assert found.repeated(iri("q"))
    assert not found.repeated(iri("p"))
    assert found.total.rows == 400
    assert found.matches(iri("p"), subject=True, object_=False) == pytest.approx(20, rel=0.3)
    assert counted(counting, lake.grow([triple("s", "p", "x")])).total.rows == 400
    assert counted(counting, lake.grow(*[[triple("s", "r", f"o{n}")] for n in range(100)])).total.rows == 501


def test_blank_subjects_are_told(counting: DuckDbEngine, lake: Growing) -> None:
    assert not counted(counting, lake.grow([triple("s", "p", "o")])).blank
    assert counted(counting, lake.grow([f"_:b\t{iri('p')}\t{iri('o')}"])).blank


def test_an_engine_knows_nothing_of_what_is_too_much_to_wait_for(lake: Growing) -> None:
    duck = DuckDbEngine(lake.path, limits=IndexLimits(catch_up_quads=1))
    first = lake.grow([triple("s", "p", "o")])
    assert duck.statistics(first).complete
    snapshot = lake.grow([triple("s", "p", "o"), triple("s", "q", "o")])
    known = [duck.statistics(snapshot).complete]
    while duck.prepare(snapshot):
        known.append(duck.statistics(snapshot).complete)
        assert sum(asked(duck, snapshot, "SELECT * { ?s :p ?o }").values()) == 1
    assert known == [False, True, True, True]


PREDICATES = ("p", "q", "r")
OBJECTS = ("a", "b", ONE, TWO, typed("1.0", "decimal"), typed("1", "double"), '"1"', '"1"@en', typed("x", "integer"))
triples = st.tuples(st.sampled_from("ab"), st.sampled_from(PREDICATES), st.sampled_from(OBJECTS))
events = st.lists(triples.map(lambda parts: triple(*parts)), min_size=1, max_size=4, unique=True)
files = st.lists(st.lists(events, min_size=1, max_size=2), min_size=1, max_size=3)
QUERIES = (
    "SELECT * { ?s ?p ?o }",
    "SELECT ?s { ?s :p ?o }",
    "SELECT ?s ?o { ?s :p ?o FILTER(?o = 1) }",
    "SELECT ?o { ?s ?p ?o FILTER(?o > 1) }",
    "SELECT ?o (COUNT(*) AS ?n) (SUM(?o) AS ?m) { ?s ?p ?o } GROUP BY ?o",
    "SELECT * { ?s :p ?o . ?s :q ?x FILTER(?o = ?x) }",
    "SELECT * { ?s :p ?o OPTIONAL { ?o :q ?x FILTER(?x != ?s) } }",
    "SELECT * { ?s :p|:q ?o MINUS { ?s :r ?o } }",
    "SELECT * { GRAPH ?g { ?s :p ?o } FILTER(isIRI(?o) || isNumeric(?o)) }",
    "SELECT * { ?s :p ?o FILTER NOT EXISTS { ?o :p ?x } BIND(?o + 1 AS ?y) }",
)


@settings(deadline=None, max_examples=8, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(files)
def test_answers_are_those_without_statistics(
    tmp_path_factory: pytest.TempPathFactory, given: list[list[list[str]]]
) -> None:
    lake = Growing(tmp_path_factory.mktemp("lake"))
    duck = DuckDbEngine(lake.path)
    for file in given:
        snapshot = lake.grow(*file)
        assert duck.statistics(snapshot).complete
        for text in QUERIES:
            assert asked(duck, snapshot, text) == asked(duck, snapshot, text, Statistics()), text
    duck.close()


def test_a_time_without_a_zone_ends_that_all_have_one(counting: DuckDbEngine, lake: Growing) -> None:
    early = typed("2020-01-01T00:00:00+02:00", "dateTime")
    assert counted(counting, lake.grow([triple("s", "p", early)])).kind(iri("p")).zoned
    late = lake.grow([triple("s", "p", typed("2020-01-01T00:00:00", "dateTime"))])
    assert not counted(counting, late).kind(iri("p")).zoned
