"""Tails: background tasks that look whether a source has something new and hand it on."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from triplewire.config import limits
from triplewire.config.metrics import Metrics
from triplewire.edge.ports import Watching

_RETRY_SECONDS = 1.0

_SHORTEST_SECONDS = 0.003
"""Between two steps, however often it is woken: many small publishes then share one step."""

logger = logging.getLogger(__name__)


class Tail:
    """Takes a step whenever its source changed or it is woken. A step that fails is taken again a little later."""

    def __init__(
        self,
        watch: Watching,
        step: Callable[[], Awaitable[None]],
        metrics: Metrics,
        interval: float = limits.TAIL_SECONDS,
    ) -> None:
        self._watch = watch
        self._step = step
        self._metrics = metrics
        self._interval = interval
        self._woken = True
        self._bell: asyncio.Future[None] | None = None

    def wake(self) -> None:
        """Take a step now: the caller knows that there is something new."""
        self._woken = True
        self._ring()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            pause = self._interval
            if self._watch.changed() or self._woken:
                self._woken = False
                pause = await self._take_step()
            if self._woken and pause <= self._interval:
                await asyncio.sleep(_SHORTEST_SECONDS)
            else:
                await self._pause(pause)

    async def _take_step(self) -> float:
        try:
            await self._step()
        except Exception:
            # Whatever failed, listeners stay: the next step starts where the last good one ended.
            logger.exception("a step failed and will be taken again")
            self._metrics.stumbles.inc()
            self._woken = True
            return _RETRY_SECONDS
        return self._interval

    async def _pause(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        self._bell = loop.create_future()
        timer = loop.call_later(seconds, self._ring)
        try:
            await self._bell
        finally:
            timer.cancel()

    def _ring(self) -> None:
        if self._bell is not None and not self._bell.done():
            self._bell.set_result(None)
