"""The server: an application on sockets, until it is told to stop."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Sequence
from socket import socket

from aiohttp import web

from triplewire.certificates import Certificates
from triplewire.config import limits
from triplewire.edge.company.drains import DRAIN, accepted, emptied
from triplewire.edge.protocols import Runner
from triplewire.model.clock import Clock, SystemClock
from triplewire.sockets import BACKLOG, close, listening


def runner_of(app: web.Application, clock: Clock | None = None) -> Runner:
    """No access log; what a client that left was waiting for is given up, so that a listener that left is gone. Bodies
    are inflated by those who read them, within their limits."""
    return Runner(
        app,
        SystemClock() if clock is None else clock,
        access_log=None,
        handler_cancellation=True,
        shutdown_timeout=2 * limits.FAREWELL_SECONDS,
        keepalive_timeout=limits.KEEP_ALIVE_SECONDS,
        max_headers=limits.HEADERS,
        auto_decompress=False,
    )


async def serve(
    app: web.Application, host: str, port: int, *, stop: asyncio.Event, ready: Callable[[int], None] = lambda port: None
) -> None:
    """Serve until `stop` is set, then finish what was begun and close. `ready` is told the port once it is open."""
    await serve_on(app, listening(host, port), stop=stop, ready=ready)


async def serve_on(
    app: web.Application,
    sockets: Sequence[socket],
    *,
    stop: asyncio.Event,
    ready: Callable[[int], None] = lambda port: None,
    leaving: Callable[[], None] = lambda: None,
    certificates: Certificates | None = None,
) -> None:
    """The same on sockets that are listened on already, which are closed at the end. Other processes may have them,
    too. `leaving` is called once it was told to stop. With certificates it is served over TLS alone."""
    runner = runner_of(app)
    await runner.setup()
    context = None if certificates is None else certificates.context
    looking = None if certificates is None else asyncio.create_task(certificates.keep(limits.CERTIFICATE_LOOK_SECONDS))
    try:
        sites = [web.SockSite(runner, each, backlog=BACKLOG, ssl_context=context) for each in sockets]
        for site in sites:
            await site.start()
        ready(sockets[0].getsockname()[1])
        await stop.wait()
        leaving()
        await _leave(runner, sites, sockets)
    finally:
        if looking is not None:
            looking.cancel()
        await runner.cleanup()
        close(sockets)


async def _leave(runner: web.AppRunner, sites: Sequence[web.SockSite], sockets: Sequence[socket]) -> None:
    """Accept nothing more, send listeners away, and answer those who are still here until they have gone."""
    await accepted(sockets)
    for site in sites:
        await site.stop()
    runner.app[DRAIN].begun = True
    await runner.app.shutdown()
    await emptied(runner)


def signalled() -> asyncio.Event:
    """Set by SIGTERM or SIGINT from now on."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    return stop
