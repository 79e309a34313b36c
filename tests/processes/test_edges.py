"""Several edges on one port, real ones, and clients that go on while edges come and go. No pipeline is needed."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import orjson
import pytest
from rich.console import Console

from bench.processes import free_port
from triplewire.cli.top import BrokerWatcher
from triplewire.client import AsyncClient
from triplewire.config import Settings
from triplewire.config.status import EdgeStatus, read_statuses, write_heartbeat
from triplewire.model.clock import ManualClock, SystemClock
from triplewire.model.errors import Unavailable
from triplewire.service.processes import EdgePool
from triplewire.service.supervisor import RollingRestart
from triplewire.testing import event

pytestmark = pytest.mark.processes

LISTENERS = 6
PUBLISHERS = 2
LOOK_SECONDS = 0.05


class Fleet:
    """Edges that are looked after while a test goes on. What they tell of their seats may be made up."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.clock = ManualClock()
        self.taken: float | None = None
        self.edges = EdgePool(settings, self.clock, self.read)

    def read(self) -> list[EdgeStatus]:
        found = read_statuses(self.settings.edge_statuses, SystemClock())
        if self.taken is None:
            return found
        return [replace(each, listeners={"streams": round(self.taken * each.max_listeners)}) for each in found]

    def pids(self) -> set[int]:
        return {child.pid for child in self.edges.children if child.pid}

    async def until(self, holds: Callable[[], bool], seconds: float = LOOK_SECONDS) -> None:
        """Look after the edges until something holds; their time goes by as fast as is said."""
        while not holds():
            self.edges.step()
            self.clock.advance(seconds)
            await asyncio.sleep(LOOK_SECONDS)


@dataclass
class Traffic:
    """Clients that publish and listen until they are told to stop."""

    url: str
    acknowledged: list[str] = field(default_factory=list)
    heard: list[list[str]] = field(default_factory=lambda: [[] for _ in range(LISTENERS)])
    stopping: bool = False

    async def publish(self, who: int) -> None:
        """One event after the other; what is not acknowledged is published again, by the same key."""
        number = 0
        async with AsyncClient(self.url) as client:
            while not self.stopping:
                made = event(who * 100_000 + number)
                try:
                    receipt = await client.publish("news", [made], key=f"{who}-{number}")
                except Unavailable:
                    continue
                self.acknowledged.append(receipt["position"])
                number += 1
                await asyncio.sleep(LOOK_SECONDS)

    async def listen(self, heard: list[str]) -> None:
        """Every position, as it comes, over as many connections as it takes."""
        async with AsyncClient(self.url) as client:
            async for each in client.consume("news", after="earliest"):
                heard.append(each["position"])


@asynccontextmanager
async def fleet(folder: Path, edges: str) -> AsyncIterator[Fleet]:
    made = Fleet(Settings(data=folder, port=free_port(), edges=edges, query_processes=1))
    made.edges.start()
    try:
        await made.until(made.edges.ready)
        yield made
    finally:
        await asyncio.to_thread(made.edges.stop)


@asynccontextmanager
async def traffic(at: Fleet) -> AsyncIterator[Traffic]:
    """Around what happens to the edges. At its end everybody has heard, once, what was acknowledged, and no more."""
    found = Traffic(at.settings.url)
    publishing = [asyncio.create_task(found.publish(who)) for who in range(PUBLISHERS)]
    listening = [asyncio.create_task(found.listen(heard)) for heard in found.heard]
    await at.until(lambda: all(found.heard))
    yield found
    found.stopping = True
    await asyncio.gather(*publishing)
    expected = sorted(found.acknowledged)
    await at.until(lambda: all(len(each) >= len(expected) for each in found.heard))
    for task in listening:
        task.cancel()
    assert len(set(expected)) == len(expected) > LISTENERS
    assert [each == expected for each in found.heard] == [True] * LISTENERS


async def test_edges_come_are_replaced_and_go_and_nobody_loses_anything(tmp_path: Path) -> None:
    async with fleet(tmp_path, "auto:2") as at, traffic(at):
        at.taken = 1.0
        await at.until(lambda: len(at.edges.children) == 2, seconds=1.0)
        await at.until(at.edges.ready)
        at.taken = 0.5
        await restarted(at)
        at.taken = 0.0
        await at.until(lambda: len(at.edges.children) == 1, seconds=1.0)
        await at.until(lambda: not at.edges.restarting)
        async with AsyncClient(at.settings.url) as client:
            assert {each["pid"] for each in await client.edges()} == at.pids()


async def restarted(at: Fleet) -> None:
    """As `triplewire restart` does it, where this process is `triplewire up`."""
    write_heartbeat(at.settings.supervisor_heartbeat, SystemClock(), "ready")
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, at.edges.restart)
    restart = RollingRestart.request(at.settings)
    assert restart.before == at.pids()
    assert not restart.done()
    await at.until(restart.done)
    await at.until(lambda: not at.edges.restarting)
    assert len(at.pids()) == 2
    assert not at.pids() & restart.before


async def test_who_comes_while_there_is_no_edge_waits_for_the_next(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with fleet(tmp_path, "1") as at, AsyncClient(at.settings.url) as client:
        (before,) = at.pids()
        at.edges.children[0].kill()
        at.edges.children[0].wait()
        asking = asyncio.create_task(client.edges())
        await at.until(asking.done)
        assert [each["pid"] for each in asking.result()] == list(at.pids()) != [before]
        await BrokerWatcher([at.settings.url], Console(), json=True).once()
        found = orjson.loads(capsys.readouterr().out)
        assert [each["pid"] for each in found["brokers"][0]["edges"]] == list(at.pids())


def test_there_is_nothing_to_restart_without_a_supervisor(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="no `triplewire up`"):
        RollingRestart.request(Settings(data=tmp_path))
    write_heartbeat(tmp_path / "up.json", SystemClock(), "ready")
    text = (tmp_path / "up.json").read_text().replace(f'"pid": {os.getpid()}', '"pid": 4194303')
    (tmp_path / "up.json").write_text(text)
    with pytest.raises(Unavailable, match="no `triplewire up`"):
        RollingRestart.request(Settings(data=tmp_path))
