"""Webhooks of real edges, one of which is killed while it delivers. The matches of a pipeline are written here."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pyarrow as pa
import pytest
from aiohttp import web

from bench.processes import free_port, wait_listening
from tests.http.webhooks.scenes import receiver
from triplewire.client import AsyncClient
from triplewire.config import Settings
from triplewire.model import MATCHES, format_position, parse_position
from triplewire.model.clock import SystemClock
from triplewire.service.processes import ChildProcess, stop_all
from triplewire.storage.outbox import SqliteOutbox
from triplewire.testing import event

pytestmark = pytest.mark.processes

EVENTS = 20


@asynccontextmanager
async def started(*children: ChildProcess) -> AsyncIterator[None]:
    for child in children:
        child.start()
    try:
        for child in children:
            await asyncio.to_thread(wait_listening, child)
        yield
    finally:
        await asyncio.to_thread(stop_all, children)


def match(outbox: SqliteOutbox, positions: Sequence[int], since: int) -> None:
    rows = [{"position": position, "subscription": since} for position in positions]
    outbox.write(0, positions[-1], pa.Table.from_pylist(rows, schema=MATCHES))


async def story(folder: Path) -> tuple[list[str], list[str]]:
    """The ids that were sent, in order, and those that had to be."""
    first, second = (
        ChildProcess("edge", Settings(data=folder, port=free_port(), webhook_networks=("127.0.0.0/8",)), SystemClock())
        for _ in range(2)
    )
    async with receiver() as target, started(first), AsyncClient(first.settings.url) as client:
        (made,) = await client.subscribe_all([{"stream": "test", "webhook": {"url": target.url}}])
        told = await client.publish("test", [event(number) for number in range(EVENTS)])

        async def killed(request: web.Request) -> web.StreamResponse:
            """In the middle of a delivery the process that delivers is gone."""
            assert first.pid is not None
            os.kill(first.pid, signal.SIGKILL)
            return await target.hang(request)

        target.replies += [204] * 5
        target.replies.append(killed)
        positions = range(parse_position(told["first"]), parse_position(told["last"]) + 1)
        async with started(second):
            match(SqliteOutbox(folder / "outbox.db"), positions, parse_position(made["since"]))
            wanted = [f"{made['id']}_{format_position(position)}" for position in positions]
            heard = list[str]()
            while not heard or heard[-1] != wanted[-1]:
                heard.append((await target.next()).headers["webhook-id"])
    return heard, wanted


def test_after_a_kill_another_edge_goes_on_and_nothing_is_lost_or_out_of_order(tmp_path: Path) -> None:
    heard, wanted = asyncio.run(asyncio.wait_for(story(tmp_path), 250))
    assert list(dict.fromkeys(heard)) == wanted
    # The one that nobody answered is sent again, and those that were taken a moment before may be.
    again = heard[6:]
    assert wanted[5] in again
    assert again == wanted[wanted.index(again[0]) :]
