"""Listeners: one open connection each, with its place in the order and the one rule about falling behind.

What a listener has not read yet waits in its connection's buffer. When that holds more than its limit the listener
is told so with a last message and cut off; it can come back and resume from the last id that it got. So no buffer
grows beyond the limit plus one pass of messages.
"""

from __future__ import annotations

import asyncio

from triplewire.config import limits
from triplewire.edge import frames as sse
from triplewire.edge.frames import Frames
from triplewire.edge.wires import Wire
from triplewire.telemetry.metrics import Metrics


class Listener:
    """Everything at positions up to `cursor` was written to it, and nothing above."""

    def __init__(self, wire: Wire, cursor: int, metrics: Metrics, limit: int = limits.CLIENT_BUFFER_BYTES) -> None:
        self.cursor = cursor
        self._wire = wire
        self._metrics = metrics
        self._limit = limit
        self._done = asyncio.Event()

    @property
    def done(self) -> bool:
        """Nothing will be written to it any more."""
        return self._done.is_set()

    async def replay(self, frames: Frames, reached: int) -> None:
        """Write a step of history at the listener's own pace; with it everything up to `reached` was written."""
        await self._wire.send(frames.after(self.cursor).joined)
        self.cursor = max(self.cursor, reached)

    def push(self, frames: Frames) -> int:
        """Write live messages at once, those that it has not had; the number written. Cuts it off when too slow."""
        fresh = frames.after(self.cursor)
        if not fresh.positions or not self._fit():
            return 0
        self._wire.push(fresh.joined)
        self.cursor = fresh.positions[-1]
        return len(fresh.positions)

    def tell(self, message: bytes) -> None:
        """Write something about the connection itself, such as a comment that keeps it open."""
        if self._fit():
            self._wire.push(message)

    def finish(self, message: bytes) -> None:
        """Write the last message and be done."""
        self.tell(message)
        self._done.set()

    async def until_done(self) -> None:
        await self._done.wait()

    def _fit(self) -> bool:
        """Whether it may be written to; finds out that it is gone, and cuts it off where it is too slow."""
        if self.done:
            return False
        waiting = self._wire.waiting()
        if waiting is not None and waiting <= self._limit:
            return True
        if waiting is not None:
            self._metrics.cut_off.inc()
            self._wire.push(sse.slow(self._limit))
        self._done.set()
        return False
