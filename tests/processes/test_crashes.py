"""kill -9 at the worst moments: nothing that was acknowledged is lost, nothing is told or stored twice."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from bench.processes import free_port
from tests.processes.faulty_pipeline import WORKER_KILLS
from tests.processes.hearing import LOOK_SECONDS, hear_all, until_stored
from triplewire.client import AsyncClient
from triplewire.config import Settings
from triplewire.config.settings import to_environment
from triplewire.model.clock import SystemClock
from triplewire.model.errors import TriplewireError
from triplewire.service.processes import ChildProcess
from triplewire.storage.log.sqlite import SqliteLog
from triplewire.storage.outbox import PART_POSITIONS
from triplewire.storage.registry.sqlite import SqliteRegistry
from triplewire.storage.registry.subscriptions import LANE, SUBSCRIPTION
from triplewire.testing import event
from triplewire.testing.samples import EXAMPLE

pytestmark = pytest.mark.processes

EVERYTHING = f"SELECT * {{ ?o a <{EXAMPLE}Observation> ; <{EXAMPLE}result> ?v }}"
EXPENSIVE = f"SELECT * {{ ?o a <{EXAMPLE}Observation> OPTIONAL {{ ?o <urn:none> ?n }} }}"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data=tmp_path, port=free_port())


@asynccontextmanager
async def edge(settings: Settings) -> AsyncIterator[tuple[ChildProcess, AsyncClient]]:
    child = ChildProcess("edge", settings, SystemClock())
    child.start()
    async with AsyncClient(settings.url) as client:
        try:
            await until_answering(client)
            yield child, client
        finally:
            child.ask_to_stop()
            child.wait()


async def until_answering(client: AsyncClient) -> None:
    while True:
        try:
            await client.health()
        except TriplewireError:
            await asyncio.sleep(LOOK_SECONDS)
            continue
        return


async def faulty_pipeline(settings: Settings, point: str) -> asyncio.subprocess.Process:
    with (settings.data / "pipeline.out").open("ab") as output:
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.processes.faulty_pipeline", point),
            env={**os.environ, **to_environment(settings)},
            stdout=output,
            stderr=subprocess.STDOUT,
        )


@pytest.mark.timeout(400)
async def test_a_pipeline_that_is_killed_repeats_nothing_and_leaves_nothing_out(settings: Settings) -> None:
    """Each time it is started with another number of tasks."""
    async with edge(settings) as (_, client):
        made = await client.subscribe(EVERYTHING, kind="bindings")
        number = 0
        for point, tasks in (("before-fast", 1), ("after-fast", 3), ("before-lake", 2), ("after-lake", 1)):
            count = 50 + 3 * PART_POSITIONS * (tasks > 1)
            await client.publish("crash", [event(each) for each in range(number, number + count)])
            number += count
            pipeline = await faulty_pipeline(replace(settings, match_tasks=tasks), point)
            assert await pipeline.wait() == -signal.SIGKILL, point
        receipt = await client.publish("crash", [event(number)])
        pipeline = await faulty_pipeline(settings, "never")
        await until_stored(client, receipt["last"])
        (heard,) = await hear_all(settings.url, [made["id"]])
        assert [each["event"] for each in heard] == [event(each).id for each in range(number + 1)]
        rows = (await client.query(f"SELECT ?e {{ GRAPH ?e {{ ?o <{EXAMPLE}result> ?v }} }}"))["results"]["bindings"]
        assert sorted(row["e"]["value"] for row in rows) == sorted(event(each).id for each in range(number + 1))
        pipeline.terminate()
        assert await pipeline.wait() == 0


@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    ("point", "tasks", "count"),
    [("worker-before-fast", 1, 50), ("worker-after-fast", 1, 50), ("worker-after-fast", 3, 3 * PART_POSITIONS)],
)
async def test_a_worker_that_is_killed_is_replaced_and_repeats_nothing(
    settings: Settings, point: str, tasks: int, count: int
) -> None:
    """The pipeline itself goes on: only its tasks are started again."""
    settings = replace(settings, match_tasks=tasks)
    async with edge(settings) as (_, client):
        made = await client.subscribe(EVERYTHING, kind="bindings")
        pipeline = await faulty_pipeline(settings, point)
        for number in range(0, 4 * count, count):
            receipt = await client.publish("crash", [event(each) for each in range(number, number + count)])
            await until_stored(client, receipt["last"])
        (heard,) = await hear_all(settings.url, [made["id"]])
        assert [each["event"] for each in heard] == [event(each).id for each in range(4 * count)]
        assert len([*settings.data.glob("killed-*")]) == WORKER_KILLS
        pipeline.terminate()
        assert await pipeline.wait() == 0


@pytest.mark.timeout(400)
async def test_a_lane_that_is_killed_and_lost_checkpoints_repeat_nothing(settings: Settings) -> None:
    """The subscription is moved while events wait, so that both lanes have their part of it. Then all checkpoints are
    lost."""
    async with edge(settings) as (_, client):
        dear, cheap = [await client.subscribe(text, kind="bindings") for text in (EXPENSIVE, EVERYTHING)]
        await client.publish("crash", [event(each) for each in range(20)])
        registry = SqliteRegistry(settings.log, SystemClock())
        shape = registry.get(SUBSCRIPTION, dear["id"])
        assert shape is not None
        assert shape.value is not None
        registry.put([(LANE, shape.value["shape"], {"cost": 0.25})])
        registry.close()
        await client.publish("crash", [event(each) for each in range(20, 40)])
        pipeline = await faulty_pipeline(settings, "after-slow")
        assert await pipeline.wait() == -signal.SIGKILL
        for number in (40, 60):
            receipt = await client.publish("crash", [event(each) for each in range(number, number + 20)])
            pipeline = await faulty_pipeline(settings, "never")
            await until_stored(client, receipt["last"])
            if number == 40:
                pipeline.terminate()
                assert await pipeline.wait() == 0
                shutil.rmtree(settings.checkpoints)
        heard = await hear_all(settings.url, [dear["id"], cheap["id"]])
        told = [event(each).id for each in range(80)]
        assert [[each["event"] for each in its] for its in heard] == [told, told]
        rows = (await client.query(f"SELECT ?e {{ GRAPH ?e {{ ?o <{EXAMPLE}result> ?v }} }}"))["results"]["bindings"]
        assert sorted(row["e"]["value"] for row in rows) == sorted(told)
        pipeline.terminate()
        assert await pipeline.wait() == 0


PUBLISHERS, ACKNOWLEDGED, KILLS = 8, 400, 3


async def test_an_edge_that_is_killed_keeps_what_it_acknowledged(settings: Settings) -> None:
    acknowledged: list[tuple[int, int]] = []
    for kill in range(KILLS):
        async with edge(settings) as (child, client):
            publishing = [asyncio.create_task(publish(client, who, kill, acknowledged)) for who in range(PUBLISHERS)]
            while len(acknowledged) < ACKNOWLEDGED * (kill + 1):
                await asyncio.sleep(0)
            assert child.pid is not None
            os.kill(child.pid, signal.SIGKILL)
            await asyncio.gather(*publishing)
    log = SqliteLog(settings.log, SystemClock())
    stored = [stream_and_number(row) for row in log.read(0, log.head(), log.head()).to_pylist()]
    log.close()
    assert len(stored) == len(set(stored))
    assert set(acknowledged) <= set(stored)
    for who in range(PUBLISHERS):
        mine = [number for publisher, number in stored if publisher == who]
        assert mine == sorted(mine)


async def publish(client: AsyncClient, who: int, kill: int, acknowledged: list[tuple[int, int]]) -> None:
    """One event after the other until the edge is gone. What was sent and not answered may be stored or not."""
    for number in range(kill * 1_000_000, (kill + 1) * 1_000_000):
        try:
            await client.publish(f"publisher-{who}", [event(number)])
        except TriplewireError:
            return
        acknowledged.append((who, number))


def stream_and_number(row: dict[str, str]) -> tuple[int, int]:
    return int(row["stream"].rpartition("-")[2]), int(row["event"].rpartition("/")[2])
