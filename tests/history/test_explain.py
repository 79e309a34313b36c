"""Explanations: how a query is answered, for people and for programs, in the process and over HTTP."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.history.lakes import PREFIXES, Growing, triple, typed
from tests.http.harness import Said, house, run
from triplewire.history.duckdb import DuckDbEngine
from triplewire.history.engines import QueryProfile
from triplewire.history.executor import HistoryExecutor
from triplewire.history.explain import QueryExplain
from triplewire.history.pruning import ScannedFiles
from triplewire.history.requests import HistoryRequest, QueryLimits
from triplewire.http.app import EdgeParts
from triplewire.model.errors import BadRequest, QueryLimit
from triplewire.sparql import compile_query, parse_query
from triplewire.storage.lake.delta import DeltaLake
from triplewire.storage.lake.ports import DataFile, Snapshot

QUERY = PREFIXES + "SELECT ?s { ?s :q|:p ?x FILTER(?x > 1) }"
FILES = (
    [[triple("a", "p", typed("1", "integer")), triple("a", "z", "a")], [triple("b", "p", typed("2", "integer"))]],
    [[triple("c", "q", typed("3", "integer")), triple("a", "z", "b")]],
)


@pytest.fixture
def history(tmp_path: Path) -> HistoryExecutor:
    lake = Growing(tmp_path)
    for file in FILES:
        lake.grow(*file)
    return HistoryExecutor(DeltaLake(tmp_path), DuckDbEngine(tmp_path))


def explained(history: HistoryExecutor, text: str, form: str, **said: Any) -> Said:  # noqa: ANN401
    request = HistoryRequest(text, explain=form, **said)
    with history.start_deadline(request) as deadline:
        answer = history.answer(request, deadline)
        return Said([*answer.chunks], answer.content_type)


def document(history: HistoryExecutor, text: str) -> dict[str, Any]:
    (piece,) = explained(history, text, "json").pieces
    assert isinstance(piece, bytes)
    found: dict[str, Any] = orjson.loads(piece)
    return found


def test_for_people_it_is_text(history: HistoryExecutor) -> None:
    said = explained(history, QUERY, "text")
    assert said.content_type == "text/plain; charset=utf-8"
    (piece,) = said.pieces
    assert isinstance(piece, bytes)
    parts = piece.decode().split("\n\n")
    titles = [part.strip("\n").splitlines()[0] for part in parts[:5]]
    assert titles == ["Algebra", "Plan", "SQL for duckdb", "Run", "What duckdb did"]
    assert "  Filter (?x > " in parts[0]
    assert "    Reach ?s (<http://example.org/q>|<http://example.org/p>) ?x" in parts[0]
    assert "  Union\n    Filter (?x > " in parts[1]
    assert "\n  FROM quads AS " in parts[2]
    assert "2 rows, 0 of 2 files read, but their copy in memory, " in parts[3]


def test_for_programs_it_is_json_and_says_the_same(history: HistoryExecutor) -> None:
    found = document(history, QUERY)
    assert found["engine"] == "duckdb"
    assert [found[name]["inside"][0]["operator"] for name in ("algebra", "plan")] == ["Filter", "Union"]
    assert "FROM quads AS " in found["sql"]
    assert (found["rows"], found["steps"]) == (2, [])
    assert found["files"] == {"read": 0, "of": 2, "copied": True}
    assert not found["indexed"]
    assert found["compile_ms"] > 0
    assert found["run_ms"] >= 0
    assert "cached_quads" in found["engine_plan"]
    assert explained(history, QUERY, "json").content_type == "application/json"


def test_files_that_were_read_are_told_of_how_many_there_are(history: HistoryExecutor, tmp_path: Path) -> None:
    history = HistoryExecutor(DeltaLake(tmp_path), DuckDbEngine(tmp_path, copies=False))
    every = document(history, PREFIXES + "SELECT * { ?s :z ?o }")
    assert (every["files"], every["rows"]) == ({"read": 2, "of": 2, "copied": False}, 2)
    one = document(history, PREFIXES + "SELECT * { ?s :p ?o }")
    assert (one["files"], one["rows"]) == ({"read": 1, "of": 2, "copied": False}, 2)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("ASK { ?s :p ?o }", 1),
        ("CONSTRUCT { ?s :made ?o } WHERE { ?s :p ?o }", 2),
        ("DESCRIBE :a", 3),
        ("SELECT * { ?s ?p ?o } ORDER BY ?o LIMIT 4", 4),
        ("SELECT (COUNT(*) AS ?n) { ?s ?p ?o }", 1),
        ("SELECT * { ?s :z+ ?o }", 2),
        ("SELECT * { ?s :nowhere ?o }", 0),
        ("SELECT * { ?s :p|:q|:z ?o FILTER EXISTS { { ?s :p ?x } UNION { ?o :q ?x } } }", 4),
        ("SELECT * { VALUES ?x { 1 2 3 } }", 3),
        ("SELECT * {}", 1),
        ("SELECT * { FILTER(1 = 2) }", 0),
        ("SELECT (COUNT(*) AS ?n) {}", 1),
        ("ASK {}", 1),
    ],
)
def test_all_forms_are_explained_with_their_rows(history: HistoryExecutor, text: str, rows: int) -> None:
    assert document(history, PREFIXES + text)["rows"] == rows


def test_an_explanation_ends_with_its_time(tmp_path: Path) -> None:
    lake = Growing(tmp_path)
    lake.grow([triple(f"s{number}", "p", f"o{number}") for number in range(200)])
    history = HistoryExecutor(DeltaLake(tmp_path), DuckDbEngine(tmp_path), QueryLimits(seconds=0.2))
    with pytest.raises(QueryLimit, match="ask for less"):
        explained(history, "SELECT * { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l FILTER(STR(?c) > STR(?l)) }", "json")


def test_steps_of_the_other_engine_are_parts_of_it() -> None:
    query = parse_query(PREFIXES + "SELECT * { ?s :p+ ?o }")
    compiled = compile_query(query, "spark")
    files = tuple(DataFile(f"{number}.parquet", 1, 1, {}, zone) for number, zone in enumerate((None, "a", "a", "b")))
    scanned = ScannedFiles(Snapshot("lake", 1, 1, 0, 0, files), {"q1": (0, 2), "q2": (0,)})
    said = QueryExplain("spark", query, compiled, query, 0.001, QueryProfile(3, 0.002, scanned, "as it liked"))
    assert [step["name"] for step in said.value()["steps"]] == [step.name for step in compiled.steps]
    assert len(compiled.steps) == said.text().count("\nStep ") > 0
    assert "3 rows, 2 of 4 files and 1 of 2 zones read (q1 2, q2 1), 2.0 ms, compiled in 1.0 ms" in said.text()
    assert said.value()["files"] == {"read": 2, "of": 4, "copied": False}
    assert said.value()["zones"] == {"read": 1, "of": 2}
    assert said.value()["scans"] == {"q1": 2, "q2": 1}


def test_a_form_that_nobody_knows_is_refused() -> None:
    with pytest.raises(BadRequest, match="text or json"):
        HistoryRequest(QUERY, explain="yaml")


class Real:
    """History itself, asked by the edge."""

    def __init__(self, history: HistoryExecutor) -> None:
        self.history = history

    async def ask(self, request: HistoryRequest) -> Said:
        assert request.explain is not None
        return explained(self.history, request.text, request.explain)


def test_over_http_it_is_a_parameter(history: HistoryExecutor) -> None:
    def change(parts: EdgeParts) -> EdgeParts:
        return replace(parts, answers=Real(history))

    async def scene() -> None:
        async with house(change=change) as at:
            parameters = {"query": QUERY, "explain": "json"}
            async with at.session.get(at.url + "/sparql", params=parameters) as response:
                assert (response.status, response.content_type) == (200, "application/json")
                assert (await response.json())["rows"] == 2
            refused = await at.problem("GET", "/sparql", params={"query": QUERY, "explain": "yaml"})
            assert (refused["status"], "text or json" in refused["detail"]) == (400, True)

    run(scene())


def test_a_look_up_is_answered_from_the_index(history: HistoryExecutor) -> None:
    text = PREFIXES + "SELECT * { :a :p ?o }"
    assert document(history, text)["indexed"]
    (piece,) = explained(history, text, "text").pieces
    assert isinstance(piece, bytes)
    assert "read, but the index of their copy, " in piece.decode()
