"""The real processes: whatever they are asked, the next query is answered as usual."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import orjson
import pytest

from tests.storage.lake.test_delta import entries
from triplewire.config import Settings
from triplewire.config.settings import to_environment
from triplewire.config.workers import WorkerCommand
from triplewire.history.pool import HistoryService, QueryWorkerPool
from triplewire.history.requests import HistoryRequest, QueryLimits
from triplewire.model.errors import AnswerTooLarge, InputError, QueryLimit
from triplewire.storage.lake.data_files import FileWriter
from triplewire.storage.lake.delta import DeltaLake
from triplewire.storage.lake.ports import CommitBatch
from triplewire.testing import event
from triplewire.testing.samples import EXAMPLE

RESULTS = f"SELECT ?v {{ ?o <{EXAMPLE}result> ?v }} ORDER BY ?v"
ENDLESS = "SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l . ?m ?o ?p FILTER(STR(?c) > STR(?l)) }"


@asynccontextmanager
async def queries(
    path: Path, events: int = 3, *, spark: bool = False, **given: float | str
) -> AsyncIterator[HistoryService]:
    settings = Settings(data=path, query_processes=1, query_seconds=60, **given)  # type: ignore[arg-type]
    written = FileWriter(settings.lake).write(entries(*(event(number) for number in range(events))))
    DeltaLake(settings.lake).commit(CommitBatch("q", 0, events), [written])
    pools = [
        QueryWorkerPool(
            WorkerCommand(
                (sys.executable, "-m", "triplewire.service.query_process", engine), to_environment(settings), 120
            ),
            QueryLimits.from_settings(settings),
            processes=1,
            grace=5,
        )
        for engine in ("duckdb", "spark")
    ]
    found = HistoryService(pools[0], pools[1] if spark else None)
    try:
        async with asyncio.timeout(200):
            yield found
    finally:
        found.close()


async def taken(asked: HistoryService, text: str, **said: str) -> bytes:
    answer = await asked.ask(HistoryRequest(text, **said))  # type: ignore[arg-type]
    return b"".join([piece async for piece in answer])


async def values(asked: HistoryService, **said: str) -> list[str]:
    document = orjson.loads(await taken(asked, RESULTS, **said))
    return [row["v"]["value"] for row in document["results"]["bindings"]]


async def test_every_form_is_answered(tmp_path: Path) -> None:
    async with queries(tmp_path) as asked:
        assert await values(asked) == ["0", "1", "2"]
        assert b"true" in await taken(asked, "ASK { ?s ?p ?o }")
        built = await taken(asked, "CONSTRUCT { ?s <urn:p> [] } WHERE { ?s ?p ?o }", format="ntriples")
        assert len(set(built.splitlines())) == 6
        described = await taken(asked, f"DESCRIBE <{EXAMPLE}observation/1>", accept="text/turtle")
        assert b"/result>" in described


async def test_the_dataset_of_the_request_goes_before_that_of_the_query(tmp_path: Path) -> None:
    async with queries(tmp_path) as asked:
        text = f"SELECT ?v FROM <{EXAMPLE}event/2> {{ ?o <{EXAMPLE}result> ?v }}"
        assert b'"2"' in await taken(asked, text)
        request = HistoryRequest(text, format="tsv", default_graphs=(f"{EXAMPLE}event/1",))
        assert b"".join([piece async for piece in await asked.ask(request)]).count(b'"1"') == 1
        request = HistoryRequest(text, format="tsv", named_graphs=(f"{EXAMPLE}event/1",))
        assert b"".join([piece async for piece in await asked.ask(request)]) == b"?v\n"


async def test_limits_of_the_settings_hold(tmp_path: Path) -> None:
    async with queries(tmp_path, events=300, query_memory="100MB", query_rows=100) as asked:
        with pytest.raises(AnswerTooLarge, match="more than 100 rows; add a LIMIT"):
            await taken(asked, "SELECT * { ?s ?p ?o }")
        with pytest.raises(QueryLimit, match="more than 100MB of memory"):
            await taken(asked, "SELECT (COUNT(*) AS ?n) { SELECT DISTINCT * { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i } }")
        assert b"true" in await taken(asked, "ASK { ?s ?p ?o }")


async def test_the_time_of_the_request_holds(tmp_path: Path) -> None:
    async with queries(tmp_path, events=300) as asked:
        with pytest.raises(QueryLimit, match=r"more than 0\.2 s"):
            await asked.ask(HistoryRequest(ENDLESS, seconds=0.2))
        assert b"true" in await taken(asked, "ASK { ?s ?p ?o }")


async def test_without_spark_who_asks_for_it_is_told(tmp_path: Path) -> None:
    async with queries(tmp_path) as asked:
        with pytest.raises(InputError, match="engine=spark is not supported"):
            await taken(asked, RESULTS, engine="spark")


@pytest.mark.spark
async def test_spark_answers_on_request_and_where_there_is_much_to_read(tmp_path: Path) -> None:
    async with queries(tmp_path, 300, spark=True, spark_bytes=10) as asked:
        for engine in ("spark", "auto", "duckdb"):
            assert (await values(asked, engine=engine))[:3] == ["0", "1", "2"]
        with pytest.raises(QueryLimit, match="more than 3 s"):
            await asked.ask(HistoryRequest(ENDLESS, engine="spark", seconds=3))
        assert len(await values(asked, engine="spark")) == 300
