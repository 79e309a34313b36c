"""Pools: whatever becomes of a process, its query is told, and the next one is answered."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import orjson
import psutil
import pytest

from tests.history import scripted
from tests.history.scripted import query
from triplewire.config.workers import CHUNK_BYTES, WorkerCommand
from triplewire.history.pool import QueryAnswer, QueryWorkerPool
from triplewire.history.requests import HistoryRequest, QueryLimits
from triplewire.model.errors import BadRequest, QueryLimit, SparqlSyntax, TriplewireError, Unavailable


@asynccontextmanager
async def pool(
    *, processes: int = 1, waiting: int = 8, seconds: float = 60, grace: float = 5, counter: Path | None = None
) -> AsyncIterator[QueryWorkerPool]:
    bounds = QueryLimits(seconds=seconds, memory=scripted.MEMORY)
    found = QueryWorkerPool(scripted.launch(counter), bounds, processes=processes, waiting=waiting, grace=grace)
    try:
        async with asyncio.timeout(60):
            yield found
    finally:
        found.close()


async def taken(answer: QueryAnswer) -> bytes:
    return b"".join([piece async for piece in answer])


async def pid(asked: QueryWorkerPool) -> int:
    """Which process answers now."""
    answer = await asked.ask(HistoryRequest(query("")))
    document = orjson.loads(await taken(answer))
    return int(document["results"]["bindings"][0]["s"]["value"].rpartition(":")[2])


async def test_a_process_is_kept_from_query_to_query() -> None:
    async with pool() as asked:
        first = await pid(asked)
        assert {await pid(asked) for _ in range(5)} == {first}
        assert asked.pids == [first]


async def test_errors_come_over_with_what_they_know() -> None:
    async with pool() as asked:
        with pytest.raises(SparqlSyntax) as refused:
            await asked.ask(HistoryRequest("SELECT * {\n ?s ?p }"))
        assert refused.value.place is not None
        assert refused.value.place.line == 2
        with pytest.raises(BadRequest, match="there are json"):
            await asked.ask(HistoryRequest(query(""), format="pdf"))
        await pid(asked)


@pytest.mark.parametrize("marker", ["DIE", "EAT"])
async def test_a_process_that_cannot_go_on_costs_its_query_alone(marker: str) -> None:
    async with pool() as asked:
        with pytest.raises(QueryLimit, match="memory"):
            await asked.ask(HistoryRequest(query(marker)))
        await pid(asked)


async def test_a_process_that_is_killed_in_the_middle_ends_its_answer_with_an_error() -> None:
    async with pool() as asked:
        first = await pid(asked)
        answer = await asked.ask(HistoryRequest(query("FLOOD")))
        assert await anext(answer)
        os.kill(first, signal.SIGKILL)
        with pytest.raises(QueryLimit, match="signal 9"):
            await taken(answer)
        assert await pid(asked) != first


async def test_a_process_that_is_killed_while_idle_is_replaced() -> None:
    async with pool() as asked:
        first = await pid(asked)
        os.kill(first, signal.SIGKILL)
        psutil.Process(first).wait()
        with suppress(QueryLimit):
            await pid(asked)
        assert await pid(asked) != first


async def test_an_unforeseen_error_says_nothing_of_the_inside() -> None:
    async with pool() as asked:
        with pytest.raises(TriplewireError, match="failed unexpectedly") as refused:
            await asked.ask(HistoryRequest(query("STUMBLE")))
        assert "division" not in str(refused.value)
        await pid(asked)


async def test_an_error_after_the_beginning_is_raised_where_the_answer_is_taken() -> None:
    async with pool() as asked:
        for marker in ("FAIL LATER", "DIE LATER"):
            answer = await asked.ask(HistoryRequest(query(marker)))
            with pytest.raises(QueryLimit):
                await taken(answer)
        await pid(asked)


@pytest.mark.parametrize("marker", ["FLOOD", "WAIT"])
async def test_time_over_is_told_and_the_process_lives_on(marker: str) -> None:
    async with pool() as asked:
        first = await pid(asked)
        with pytest.raises(QueryLimit, match=r"more than 0\.1 s; ask for less"):
            await taken(await asked.ask(HistoryRequest(query(marker), seconds=0.1)))
        assert await pid(asked) == first


async def test_who_does_not_obey_when_the_time_is_over_is_killed() -> None:
    async with pool(grace=0.1) as asked:
        first = await pid(asked)
        with pytest.raises(QueryLimit, match="more than"):
            await asked.ask(HistoryRequest(query("HANG"), seconds=0.1))
        assert await pid(asked) != first
        assert not psutil.pid_exists(first)


async def test_a_query_that_nobody_waits_for_is_cancelled() -> None:
    async with pool() as asked:
        first = await pid(asked)
        answer = await asked.ask(HistoryRequest(query("FLOOD")))
        assert await anext(answer)
        answer.close()
        assert await pid(asked) == first
        asking = asyncio.create_task(asked.ask(HistoryRequest(query("WAIT"))))
        await asyncio.sleep(0)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert await pid(asked) == first


async def test_who_is_cancelled_and_does_not_obey_is_killed() -> None:
    async with pool(grace=0.1) as asked:
        first = await pid(asked)
        asking = asyncio.create_task(asked.ask(HistoryRequest(query("HANG"))))
        await asyncio.sleep(0)
        asking.cancel()
        assert await pid(asked) != first


async def test_a_slow_reader_stops_the_worker(tmp_path: Path) -> None:
    """What is made ahead of a reader is what sockets and buffers hold, however long it takes."""
    counter = tmp_path / "batches"
    async with pool(processes=2, counter=counter) as asked:
        answer = await asked.ask(HistoryRequest(query("FLOOD"), format="tsv"))
        assert await anext(answer)
        for _ in range(20):
            await pid(asked)
        made = counter.stat().st_size * scripted.BATCH_BYTES
        assert made < 40 * CHUNK_BYTES
        for _ in range(100):
            await anext(answer)
        assert counter.stat().st_size * scripted.BATCH_BYTES > made
        answer.close()


async def test_when_too_many_wait_the_next_is_turned_away() -> None:
    async with pool(waiting=1) as asked:
        running = await asked.ask(HistoryRequest(query("FLOOD")))
        waiting = asyncio.create_task(asked.ask(HistoryRequest(query(""))))
        await asyncio.sleep(0)
        assert asked.waiting == 1
        with pytest.raises(Unavailable, match="1 queries wait already; try again later"):
            await asked.ask(HistoryRequest(query("")))
        running.close()
        assert await taken(await waiting)
        assert asked.waiting == 0


async def test_a_place_in_the_queue_is_given_up_with_its_query() -> None:
    async with pool(waiting=1) as asked:
        running = await asked.ask(HistoryRequest(query("FLOOD")))
        for _ in range(3):
            waiting = asyncio.create_task(asked.ask(HistoryRequest(query(""))))
            await asyncio.sleep(0)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
        running.close()
        await pid(asked)


async def test_a_process_that_does_not_start_is_told() -> None:
    asked = QueryWorkerPool(WorkerCommand((sys.executable, "-c", "pass")), QueryLimits(), processes=1)
    for _ in range(2):
        with pytest.raises(Unavailable, match="does not start"):
            await asked.ask(HistoryRequest(query("")))
    asked.close()


async def test_all_end_with_the_pool() -> None:
    async with pool(processes=2) as asked:
        answers = [await asked.ask(HistoryRequest(query(marker))) for marker in ("FLOOD", "FLOOD")]
        pids = asked.pids
        assert len(pids) == 2
    assert [each for each in pids if psutil.pid_exists(each)] == []
    for answer in answers:
        with suppress(TriplewireError):
            await taken(answer)


OWNER = """
import asyncio, sys
from tests.history import scripted
from triplewire.history.pool import QueryWorkerPool
from triplewire.history.requests import HistoryRequest, QueryLimits

async def main():
    pool = QueryWorkerPool(scripted.launch(), QueryLimits(), processes=1)
    await pool.ask(HistoryRequest(scripted.query("FLOOD")))
    print(pool.pids[0], flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


def test_workers_end_when_their_edge_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        worker = psutil.Process(int(owner.stdout.readline()))
        owner.kill()
    worker.wait(timeout=30)
