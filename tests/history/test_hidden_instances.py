"""Hidden instances as the lake grows, loses rows, and is read as it was; and the files read under a visibility."""

from __future__ import annotations

from pathlib import Path

import duckdb
import orjson
import pytest

from tests.history.lakes import E, Growing, asked, iri, triple, typed
from triplewire.history.duckdb import DuckDbEngine
from triplewire.history.executor import HistoryExecutor
from triplewire.history.requests import HistoryRequest, QueryLimits
from triplewire.history.visibility import HiddenInstances
from triplewire.model.errors import NotFound
from triplewire.model.terms import RDF_TYPE
from triplewire.security import Visibility
from triplewire.security.visibility import PatternSet
from triplewire.sparql import compile_query, parse_query
from triplewire.storage.lake.delta import DeltaLake
from triplewire.storage.lake.ports import Snapshot

SECRET = Visibility(classes=PatternSet.of(["*"], [iri("Secret")]))


def a(subject: str, class_: str) -> str:
    return f"{iri(subject)}\t{RDF_TYPE}\t{iri(class_)}"


def hidden(
    duck: duckdb.DuckDBPyConnection, tables: HiddenInstances, visible: Visibility, snapshot: Snapshot
) -> list[tuple[int, str]]:
    table = tables.find_table(visible, snapshot)
    found = duck.execute(f"FROM {table} ORDER BY ALL").fetchall()
    return [(position, node.removeprefix(f"<{E}").removesuffix(">")) for position, node in found]


def test_instances_are_found_as_the_lake_grows(tmp_path: Path) -> None:
    lake, duck = Growing(tmp_path), duckdb.connect()
    tables = HiddenInstances(duck)
    first = lake.grow([a("x", "Secret"), triple("x", "p", "y")], [a("y", "Open")])
    assert hidden(duck, tables, SECRET, first) == [(1, "x")]
    second = lake.grow([a("y", "Secret"), a("y", "Open"), a("x", "Open")])
    assert hidden(duck, tables, SECRET, second) == [(1, "x"), (3, "y")]
    assert hidden(duck, tables, SECRET, lake.compact()) == [(1, "x"), (3, "y")]
    assert hidden(duck, tables, SECRET, first) == [(1, "x")]
    assert hidden(duck, tables, SECRET, Snapshot.empty(str(tmp_path))) == []
    assert hidden(duck, tables, SECRET, lake.files()) == [(1, "x"), (3, "y")]
    only = Visibility(classes=PatternSet.of([iri("Open")]))
    assert hidden(duck, tables, only, second) == [(1, "x"), (3, "y")]
    assert tables.find_table(Visibility(predicates=PatternSet.of([])), second) is None


def test_rows_that_went_are_forgotten(tmp_path: Path) -> None:
    lake, duck = Growing(tmp_path), duckdb.connect()
    tables = HiddenInstances(duck)
    before = lake.grow([a("x", "Secret"), triple("x", "p", "y")])
    assert hidden(duck, tables, SECRET, before) == [(1, "x")]
    after = lake.lose_type()
    assert hidden(duck, tables, SECRET, after) == []
    assert hidden(duck, tables, SECRET, before) == [(1, "x")]


def test_those_used_least_recently_make_room(tmp_path: Path) -> None:
    lake, duck = Growing(tmp_path), duckdb.connect()
    tables, found = HiddenInstances(duck, 2), lake.grow([a("x", "C0"), a("y", "C1"), a("z", "C2")])
    for number in (0, 1, 0, 2, 1, 2, 0):
        visible = Visibility(classes=PatternSet.of(["*"], [iri(f"C{number}")]))
        assert hidden(duck, tables, visible, found) == [(1, "xyz"[number])]
    assert len(duck.execute("SHOW TABLES").fetchall()) == 2


def test_an_older_version_is_seen_as_it_was(tmp_path: Path) -> None:
    lake = Growing(tmp_path)
    old = lake.grow([a("x", "Secret"), triple("x", "p", "y"), triple("y", "p", "z")])
    lake.lose_type()
    at = HistoryExecutor(DeltaLake(tmp_path), DuckDbEngine(tmp_path))

    def counted(version: int | None) -> bytes:
        request = HistoryRequest("SELECT * { ?s ?p ?o }", format="csv", version=version, visibility=SECRET)
        with at.start_deadline(request) as deadline:
            return b"".join(at.answer(request, deadline).chunks)

    assert counted(None).count(b"\r\n") == 1 + 2
    assert counted(old.version).count(b"\r\n") == 1 + 1
    assert counted(None).count(b"\r\n") == 1 + 2
    with pytest.raises(NotFound) as caught:
        counted(99)
    assert "newest" not in str(caught.value)


@pytest.mark.parametrize(
    ("visible", "files"),
    [
        (Visibility(predicates=PatternSet.of(["*"], [iri("p")])), 3),
        (Visibility(predicates=PatternSet.of([iri("p")])), 1),
        (Visibility(graphs=PatternSet.of([f"<{E}event/1>"])), 1),
        (Visibility(graphs=PatternSet.of([f"<{E}event/*"], [f"<{E}event/0>"])), 3),
        (Visibility(streams=PatternSet.of(["nowhere"])), 0),
        (Visibility(streams=PatternSet.of(["t*"])), 3),
    ],
)
def test_files_without_anything_visible_are_not_read(tmp_path: Path, visible: Visibility, files: int) -> None:
    lake = Growing(tmp_path)
    for name in ("p", "q", "r"):
        found = lake.grow([triple("x", name, typed("1", "integer"))])
    engine = DuckDbEngine(tmp_path, copies=False)
    compiled = compile_query(parse_query("SELECT * { ?s ?p ?o }"), "duckdb")
    _, scanned = engine._rewrite(compiled, found, visible)
    assert len(scanned.files) == files


def test_triple_terms_are_hidden_where_a_predicate_is(tmp_path: Path) -> None:
    lake = Growing(tmp_path)
    quoted = f"{iri('x')}\t{iri('p')}\t<<( {iri('y')} {iri('q')} {iri('z')} )>>"
    found, engine = lake.grow([quoted, triple("x", "p", "y")]), DuckDbEngine(tmp_path)
    compiled = compile_query(parse_query("SELECT ?o { ?s ?p ?o }"), "duckdb")

    def rows(visible: Visibility | None) -> int:
        return sum(each.num_rows for each in engine.batches(compiled, found, QueryLimits(), visible))

    assert rows(None) == rows(Visibility(streams=PatternSet.of(["test"]))) == 2
    assert rows(Visibility(predicates=PatternSet.of(["*"], [iri("r")]))) == rows(SECRET) == 1
    assert len(asked(engine, found, "SELECT ?o { ?s ?p ?o }")) == 2


def test_a_request_takes_its_visibility_to_another_process() -> None:
    visible = Visibility(streams=PatternSet.of(["a", "b*"], ["bc"]), classes=PatternSet.of(["*"], [iri("Secret")]))
    request = HistoryRequest("ASK {}", default_graphs=("urn:g",), visibility=visible)
    assert HistoryRequest.from_json(orjson.loads(orjson.dumps(request.to_json()))) == request
    assert "visibility" not in HistoryRequest("ASK {}").to_json()
