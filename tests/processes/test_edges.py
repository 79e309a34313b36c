"""Several edges on one port, real ones, and clients that go on while they are replaced. No pipeline is needed."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import orjson
import pytest

from triplewire.bench.broker import free_port
from triplewire.client import AsyncClient
from triplewire.clock import SystemClock
from triplewire.compose.edges import Edges
from triplewire.config import Settings
from triplewire.errors import Unavailable
from triplewire.telemetry.standings import told
from triplewire.testing import event

pytestmark = pytest.mark.processes

LISTENERS = 6
PUBLISHERS = 2
LOOK_SECONDS = 0.05


class Fleet:
    """Edges that are looked after while a test goes on."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.edges = Edges(settings, SystemClock())

    def pids(self) -> set[int]:
        return {child.pid for child in self.edges.children if child.pid}

    def names(self) -> set[str]:
        return {each.name for each in told(self.settings.standings, SystemClock()) if each.state == "ready"}

    async def until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            self.edges.look()
            await asyncio.sleep(LOOK_SECONDS)


@asynccontextmanager
async def fleet(folder: Path, edges: str) -> AsyncIterator[Fleet]:
    made = Fleet(Settings(data=folder, port=free_port(), edges=edges, query_processes=1))
    made.edges.start()
    try:
        await made.until(made.edges.ready)
        yield made
    finally:
        await asyncio.to_thread(made.edges.stop)


async def publish(url: str, who: int, stop: asyncio.Event, acknowledged: list[str]) -> None:
    """One event after the other; what is not acknowledged is published again, by the same key."""
    async with AsyncClient(url) as client:
        number = 0
        while not stop.is_set():
            name = f"{who}-{number}"
            try:
                receipt = await client.publish("news", [event(who * 100_000 + number)], key=name)
            except Unavailable:
                continue
            acknowledged.append(receipt["position"])
            number += 1


async def listen(url: str, heard: list[str], began: asyncio.Event) -> None:
    """Every position, as it comes, over as many connections as it takes."""
    async with AsyncClient(url) as client:
        async for told in client.consume("news", after="earliest"):
            heard.append(told["position"])
            began.set()


async def test_a_rolling_restart_loses_nobody(tmp_path: Path) -> None:
    async with fleet(tmp_path, "2") as at, asyncio.TaskGroup() as tasks:
        before, stop, acknowledged = at.pids(), asyncio.Event(), list[str]()
        heard = [list[str]() for _ in range(LISTENERS)]
        began = [asyncio.Event() for _ in range(LISTENERS)]
        publishing = [tasks.create_task(publish(at.settings.url, who, stop, acknowledged)) for who in range(PUBLISHERS)]
        listening = [tasks.create_task(listen(at.settings.url, *each)) for each in zip(heard, began, strict=True)]
        for each in began:
            await each.wait()
        async with AsyncClient(at.settings.url) as client:
            found = await client.edges()
            assert [each["name"] for each in found] == ["1", "2"]
            assert {each["pid"] for each in found} == before
        at.edges.restart()
        await at.until(lambda: not at.edges.restarting)
        assert len(at.pids()) == 2
        assert not at.pids() & before
        assert len(at.names()) == 2
        stop.set()
        await asyncio.gather(*publishing)
        while any(len(each) < len(acknowledged) for each in heard):
            await asyncio.sleep(LOOK_SECONDS)
        for task in listening:
            task.cancel()
    expected = sorted(acknowledged)
    assert len(set(expected)) == len(expected) > LISTENERS
    assert [each == expected for each in heard] == [True] * LISTENERS


async def test_who_comes_while_there_is_no_edge_waits_for_the_next(tmp_path: Path) -> None:
    async with fleet(tmp_path, "1") as at, AsyncClient(at.settings.url) as client:
        (before,) = at.pids()
        at.edges.children[0].kill()
        at.edges.children[0].wait()
        asking = asyncio.create_task(client.edges())
        await at.until(asking.done)
        assert [each["pid"] for each in asking.result()] == list(at.pids()) != [before]
        found = orjson.loads(await told_by(at, "top", at.settings.url, "--once", "--json"))
        assert [each["pid"] for each in found["brokers"][0]["edges"]] == list(at.pids())


async def told_by(at: Fleet, *arguments: str) -> bytes:
    """What a command prints."""
    command = (sys.executable, "-m", "triplewire", *arguments)
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    told, _ = await process.communicate()
    assert process.returncode == 0
    return told
