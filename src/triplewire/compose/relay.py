"""The relay process."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable

import uvloop

from triplewire.model.clock import SystemClock
from triplewire.relay import Declaration, Relay, Tally


def run_relay(declaration: Declaration, tell: Callable[[list[Tally]], None], seconds: float) -> list[Tally]:
    """Carry until SIGTERM or SIGINT, or until nothing is left to carry. `tell` is shown how it is when that changes,
    at most once in so many seconds, and at the end. The tallies, as they are then."""
    return uvloop.run(_run(declaration, tell, seconds))


async def _run(declaration: Declaration, tell: Callable[[list[Tally]], None], seconds: float) -> list[Tally]:
    relay, stop, changed = Relay(declaration, SystemClock()), asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    telling = asyncio.create_task(_tell(relay, changed, tell, seconds))
    try:
        await relay.run(stop, changed.set)
    finally:
        telling.cancel()
        await asyncio.gather(telling, return_exceptions=True)
    tell(relay.tallies)
    return relay.tallies


async def _tell(relay: Relay, changed: asyncio.Event, tell: Callable[[list[Tally]], None], seconds: float) -> None:
    while True:
        await changed.wait()
        changed.clear()
        tell(relay.tallies)
        await asyncio.sleep(seconds)
