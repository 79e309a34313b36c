"""History: SPARQL over the lake's files, as an independent engine would answer it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pytest

from tests import generated, oracle
from tests.history.lakes import Growing, triple
from tests.storage.lake.test_delta import entries
from triplewire.history.duckdb import DuckDbEngine
from triplewire.history.engines import WrongEngine
from triplewire.history.executor import HistoryExecutor, QueryCompiler
from triplewire.history.requests import HistoryRequest, QueryLimits
from triplewire.model import Event
from triplewire.model.errors import AnswerTooLarge, NotFound, QueryLimit, SparqlSyntax, Unsupported
from triplewire.model.terms import TW
from triplewire.sparql import CompiledQuery
from triplewire.storage.lake.data_files import FileWriter
from triplewire.storage.lake.delta import DeltaLake
from triplewire.storage.lake.ports import CommitBatch
from triplewire.testing import event
from triplewire.testing.samples import EXAMPLE


def history(
    path: Path, *events: Event, bounds: QueryLimits | None = None, compiler: QueryCompiler | None = None
) -> HistoryExecutor:
    """Over a lake that holds the events, in two files."""
    lake, half = DeltaLake(path), len(events) // 2
    for number, part in enumerate((events[:half], events[half:])):
        files = [FileWriter(path).write(entries(*part, first=1 + number * half))] if part else []
        lake.commit(CommitBatch("q", number, len(events) if number else half), files)
    return over(lake, path, bounds, compiler)


def over(
    lake: DeltaLake, path: Path, bounds: QueryLimits | None = None, compiler: QueryCompiler | None = None
) -> HistoryExecutor:
    bounds = bounds or QueryLimits()
    return HistoryExecutor(lake, DuckDbEngine(path, bounds), bounds, compiler=compiler)


def test_an_empty_lake_answers(tmp_path: Path) -> None:
    asked = over(DeltaLake(tmp_path), tmp_path)
    assert asked.answer_now("SELECT * { ?s ?p ?o }")["results"]["bindings"] == []
    assert asked.answer_now("ASK { ?s ?p ?o }") == {"head": {}, "boolean": False}


def test_files_are_one_table(tmp_path: Path) -> None:
    asked = history(tmp_path, *(event(number) for number in range(4)))
    found = asked.answer_now(f"SELECT ?v {{ ?o <{EXAMPLE}result> ?v FILTER(?v >= 1 && ?v < 3) }}")
    assert sorted(row["v"]["value"] for row in found["results"]["bindings"]) == ["1", "2"]
    assert asked.answer_now(f"ASK {{ <{EXAMPLE}observation/3> ?p ?o }}")["boolean"]


def test_each_event_is_a_named_graph_and_the_default_graph_is_their_union(tmp_path: Path) -> None:
    same = f"<{EXAMPLE}s>\t<{EXAMPLE}p>\t<{EXAMPLE}o>"
    asked = history(tmp_path, Event(f"{EXAMPLE}1", same), Event(f"{EXAMPLE}2", same))
    assert len(asked.answer_now("SELECT * { GRAPH ?g { ?s ?p ?o } }")["results"]["bindings"]) == 2
    assert len(asked.answer_now("SELECT * { ?s ?p ?o }")["results"]["bindings"]) == 1


def test_what_was_said_of_an_event_can_be_asked_for(tmp_path: Path) -> None:
    asked = history(tmp_path, event(1), event(2))
    found = asked.answer_now(
        f"""PREFIX tw: <{TW}> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
        SELECT ?e ?t {{ ?e tw:stream "test" ; tw:source "source" ; tw:time ?t
                        FILTER(?t < "1970-01-01T00:00:02Z"^^xsd:dateTime) }}"""
    )
    assert {row["t"]["value"] for row in found["results"]["bindings"]} == {"1970-01-01T00:00:01Z"}
    assert {row["e"]["value"] for row in found["results"]["bindings"]} == {event(1).id, event(2).id}


def test_generated_queries_agree_with_the_oracle(tmp_path: Path) -> None:
    random = Random(7)
    events = [generated.event(random, number) for number in range(40)]
    asked = history(tmp_path, *events)
    for _ in range(60):
        text = generated.sparql(random)
        if "GRAPH" not in text:
            text = text.replace("{", "{ GRAPH ?e {", 1) + " }"
        assert oracle.bag(asked.answer_now(text)) == oracle.solutions(events, text), text


def test_limits_end_a_query_by_name(tmp_path: Path) -> None:
    events = [event(number) for number in range(200)]
    everything = "SELECT * { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l FILTER(STR(?c) > STR(?l)) }"
    with pytest.raises(QueryLimit, match="more than 10 rows"):
        history(tmp_path / "rows", *events, bounds=QueryLimits(rows=10)).answer_now("SELECT * { ?s ?p ?o }")
    with pytest.raises(QueryLimit, match="more than"):
        history(tmp_path / "time", *events, bounds=QueryLimits(seconds=0.2)).answer_now(everything)
    with pytest.raises(QueryLimit, match="more than"):
        history(tmp_path / "memory", *events, bounds=QueryLimits(memory="20MB", seconds=20)).answer_now(
            "SELECT DISTINCT * { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i }"
        )


def test_refusals_say_what_and_where(tmp_path: Path) -> None:
    asked = over(DeltaLake(tmp_path), tmp_path)
    with pytest.raises(SparqlSyntax) as syntax:
        asked.answer_now("SELECT * {\n ?s ?p }")
    assert syntax.value.place is not None
    assert syntax.value.place.line == 2
    with pytest.raises(Unsupported, match="SERVICE <urn:x>"):
        asked.answer_now("SELECT * { SERVICE <urn:x> { ?s ?p ?o } }")
    with pytest.raises(Unsupported, match="entailment=owl"):
        take(asked, HistoryRequest("ASK {}", entailment="owl"))


def test_a_new_commit_is_seen_by_the_next_query(tmp_path: Path) -> None:
    lake = DeltaLake(tmp_path)
    asked = over(lake, tmp_path)
    for number in range(3):
        assert len(asked.answer_now("SELECT * { GRAPH ?g { ?s ?p ?o } }")["results"]["bindings"]) == 2 * number
        lake.commit(
            CommitBatch("q", number, 1 + number), [FileWriter(tmp_path).write(entries(event(number), first=1 + number))]
        )


def test_the_lake_is_asked_as_it_was(tmp_path: Path) -> None:
    lake = Growing(tmp_path)
    versions = [lake.grow([triple("s", "p", f"o{number}")]).version for number in range(3)]
    versions.append(lake.compact().version)
    asked = over(DeltaLake(tmp_path), tmp_path)

    def count(**at: Any) -> int:  # noqa: ANN401
        request = HistoryRequest("SELECT (COUNT(*) AS ?n) { ?s ?p ?o }", format="csv", **at)
        return int(take(asked, request).split()[-1])

    assert count() == 3
    assert [count(version=version) for version in versions] == [1, 2, 3, 3]
    assert count(as_of=(datetime.now(UTC) + timedelta(days=1)).isoformat()) == 3
    for never in ({"as_of": "2001-01-01T00:00:00Z"}, {"version": versions[-1] + 1}):
        with pytest.raises(NotFound, match=f"the newest version is {versions[-1]}"):
            count(**never)


def test_after_a_limit_the_next_query_is_answered(tmp_path: Path) -> None:
    asked = history(tmp_path, *(event(number) for number in range(200)), bounds=QueryLimits(seconds=0.2))
    for _ in range(2):
        with pytest.raises(QueryLimit, match="ask for less"):
            asked.answer_now("SELECT * { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l FILTER(STR(?c) > STR(?l)) }")
        assert asked.answer_now(f"ASK {{ <{EXAMPLE}observation/3> ?p ?o }}")["boolean"]


def test_an_answer_over_its_bytes_is_too_large(tmp_path: Path) -> None:
    asked = history(tmp_path, event(1), bounds=QueryLimits(bytes=50))
    with pytest.raises(AnswerTooLarge, match="50 bytes; add a LIMIT"):
        asked.answer_now("SELECT * { ?s ?p ?o }")


def test_much_to_read_is_for_the_other_engine_unless_the_query_says_otherwise(tmp_path: Path) -> None:
    history(tmp_path, event(1))
    asked = HistoryExecutor(DeltaLake(tmp_path), DuckDbEngine(tmp_path), spark_bytes=10)
    for engine in ("auto", "spark"):
        with pytest.raises(WrongEngine):
            take(asked, HistoryRequest("ASK { ?s ?p ?o }", engine=engine))
    assert b"true" in take(asked, HistoryRequest("ASK { ?s ?p ?o }", engine="duckdb"))


def take(asked: HistoryExecutor, request: HistoryRequest) -> bytes:
    with asked.start_deadline(request) as deadline:
        return b"".join(asked.answer(request, deadline).chunks)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_text('/etc/hostname')",
        "COPY (SELECT 1) TO '{directory}/../out.csv'",
        "ATTACH '{directory}/../other.db'",
        "INSTALL httpfs",
        "SET memory_limit = '100GB'",
        "SET enable_external_access = true",
        "SELECT * FROM snapshot",
    ],
)
def test_no_sql_leaves_the_lake(tmp_path: Path, sql: str) -> None:
    """Should a query ever become SQL that it must not be, then files, settings and our own variables stay closed."""
    lake = tmp_path / "lake"
    snapshot = DeltaLake(lake).files()
    with pytest.raises((duckdb.Error, AttributeError)):
        list(
            DuckDbEngine(lake).batches(
                CompiledQuery("select", ("x",), sql.format(directory=lake)), snapshot, QueryLimits()
            )
        )
