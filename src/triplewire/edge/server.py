"""The server: an application on a socket, until it is told to stop."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable

from aiohttp import web

from triplewire.config import limits


async def serve(
    app: web.Application, host: str, port: int, *, stop: asyncio.Event, ready: Callable[[int], None] = lambda port: None
) -> None:
    """Serve until `stop` is set, then finish what was begun and close. `ready` is told the port once it is open."""
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=2 * limits.FAREWELL_SECONDS)
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
