"""A whole edge as it is composed for production, served in a thread, with a history in which nothing is found."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Thread

import uvloop
from aiohttp import web

from tests.http.harness import Said
from triplewire.config import Settings
from triplewire.config.status import Heartbeat
from triplewire.history.requests import HistoryRequest
from triplewire.http.app import application
from triplewire.http.server import make_runner
from triplewire.model.clock import SystemClock
from triplewire.service.edge import open_edge_parts


class Nothing:
    """History in which nothing is found, whatever is asked."""

    async def ask(self, request: HistoryRequest) -> Said:
        return Said([b'{"head":{"vars":[]},"results":{"bindings":[]}}'])


def settings_in(folder: Path, auth: str = "open") -> Settings:
    """Nothing is limited for clients on the same machine, and no pipeline runs. A token that is made closes no door."""
    return Settings(data=folder, auth=auth)


@contextmanager
def composed(folder: Path, auth: str = "open") -> Iterator[web.Application]:
    """The application with all its routes. To be used on a loop; processes of queries are not waited for."""
    with open_edge_parts(settings_in(folder, auth)) as parts:
        clock = SystemClock()
        ready = lambda: Heartbeat("ready", clock.now())  # noqa: E731 - a pipeline that is always well
        yield application(replace(parts, answers=Nothing(), heartbeat=ready))


@contextmanager
def served(folder: Path, auth: str = "open") -> Iterator[str]:
    """Its address, for clients that block."""
    loop, started, addresses = uvloop.new_event_loop(), asyncio.Event(), list[str]()

    async def serve(stop: asyncio.Event) -> None:
        with composed(folder, auth) as app:
            runner = make_runner(app)
            await runner.setup()
            try:
                await web.TCPSite(runner, "127.0.0.1", 0).start()
                addresses.append(f"http://127.0.0.1:{runner.addresses[0][1]}")
                started.set()
                await stop.wait()
            finally:
                await runner.cleanup()

    stop = asyncio.Event()
    task = loop.create_task(serve(stop))
    thread = Thread(target=loop.run_until_complete, args=(task,), daemon=True)
    thread.start()
    asyncio.run_coroutine_threadsafe(_either(started, task), loop).result(60)
    try:
        yield addresses[0]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()


async def _either(started: asyncio.Event, task: asyncio.Task[None]) -> None:
    """Until it serves. Raises what keeps it from that."""
    waiting = asyncio.ensure_future(started.wait())
    await asyncio.wait((waiting, task), return_when=asyncio.FIRST_COMPLETED)
    if task.done():
        waiting.cancel()
        task.result()
