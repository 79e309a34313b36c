"""The server: what stops, stops cleanly."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import aiohttp

from tests.http.harness import Echo, Restless, body, house, run
from triplewire.config.status import Heartbeat
from triplewire.http.app import EdgeParts, application
from triplewire.http.listeners import open_listeners
from triplewire.http.server import serve_on
from triplewire.storage.log.group_commit import GroupCommit
from triplewire.testing import GatedLog, open_twin
from triplewire.testing.samples import event

NQUADS = {"Content-Type": "application/n-quads"}


async def publish(session: aiohttp.ClientSession, url: str) -> int:
    async with session.post(url + "/streams/test", data=body(event(1)), headers=NQUADS) as response:
        return response.status


def test_a_publish_that_was_begun_is_answered_before_the_server_ends() -> None:
    async def scene() -> None:
        with open_twin("memory") as stores:
            gated = GatedLog(stores.log)
            commits = GroupCommit(gated)
            watch = Restless()
            parts = EdgeParts(
                commits, stores.log, stores.registry, stores.outbox(""), Echo(), watch, watch, Heartbeat, stores.clock
            )
            stop, port = asyncio.Event(), asyncio.get_running_loop().create_future()
            sockets = open_listeners("127.0.0.1", 0)
            serving = asyncio.create_task(serve_on(application(parts), sockets, stop=stop, ready=port.set_result))
            url = f"http://127.0.0.1:{await port}"
            async with aiohttp.ClientSession() as session, session.get(url + "/streams/test") as listening:
                publishing = asyncio.create_task(publish(session, url))
                await asyncio.to_thread(gated.arrived.wait)
                stop.set()
                heard = await listening.content.read()
                assert b"event: closing" in heard
                gated.gate.set()
                assert await publishing == 201
                await serving
            commits.close()
            assert stores.log.head() == 1

    run(scene())


def test_a_listener_that_leaves_is_gone_at_once() -> None:
    async def scene() -> None:
        async with house() as at:
            async with at.listen("/streams/test") as ear:
                await ear.position()
                assert at.edge.topics.count()["streams"] == 1
            while at.edge.topics.count()["streams"]:
                await asyncio.sleep(0)

    run(scene())


def test_an_edge_that_is_full_turns_listeners_away() -> None:
    async def scene() -> None:
        async with house(change=lambda parts: replace(parts, max_listeners=1)) as at, at.listen("/streams/test") as ear:
            await ear.position()
            assert (await at.problem("GET", "/streams/test"))["status"] == 503

    run(scene())
