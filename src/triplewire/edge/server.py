"""The server: an application on a socket, until it is told to stop."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable

from aiohttp import web

from triplewire.config import limits


def runner_of(app: web.Application) -> web.AppRunner:
    """No access log; what a client that left was waiting for is given up, so that a listener that left is gone."""
    patience = 2 * limits.FAREWELL_SECONDS
    return web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=patience)


async def serve(
    app: web.Application, host: str, port: int, *, stop: asyncio.Event, ready: Callable[[int], None] = lambda port: None
) -> None:
    """Serve until `stop` is set, then finish what was begun and close. `ready` is told the port once it is open."""
    runner = runner_of(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port, reuse_port=True, backlog=1024).start()
        ready(runner.addresses[0][1])
        await stop.wait()
    finally:
        await runner.cleanup()


async def serve_until_signalled(
    app: web.Application, host: str, port: int, ready: Callable[[int], None] = lambda port: None
) -> None:
    """Serve until SIGTERM or SIGINT."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await serve(app, host, port, stop=stop, ready=ready)
