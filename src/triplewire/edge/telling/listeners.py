"""Listeners: one open connection each, with its place in the order and the one rule about falling behind.

What a listener has not read yet waits in its connection's buffer. When that holds more than its limit the listener
is told so with a last message and cut off; it can come back and resume from the last position that it got. So no
buffer
grows beyond the limit plus one pass of messages.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from triplewire.config import limits
from triplewire.config.metrics import Metrics
from triplewire.edge.formats.ports import slow
from triplewire.edge.telling.frames import Frames
from triplewire.edge.telling.manners import Manner
from triplewire.edge.telling.wires import Wire


def _nobody() -> None:
    """Whom a listener leaves that has not come anywhere."""


class Listener:
    """Everything at positions up to `cursor` was written to it; of one that is in a channel, the channel knows more."""

    __slots__ = ("_done", "_limit", "_metrics", "_parting", "cursor", "left", "manner", "over", "wire")

    def __init__(
        self,
        wire: Wire,
        cursor: int,
        metrics: Metrics,
        limit: int = limits.CLIENT_BUFFER_BYTES,
        manner: Manner = Manner(),  # noqa: B008
    ) -> None:
        self.wire = wire
        self.cursor = cursor
        self.manner = manner
        self.over = False
        """Nothing will be written to it any more."""
        self.left: Callable[[], None] = _nobody
        """Called once, when it is over."""
        self._metrics = metrics
        self._limit = limit
        self._parting = b""
        self._done: asyncio.Future[None] | None = None
        wire.lost(self.leave)

    def greet(self, message: bytes) -> None:
        """Write the first message."""
        self.wire.write(self.manner.framed(self.manner.encoding.head + self.manner.encoding.alone(message)))

    async def replay(self, frames: Frames, reached: int) -> None:
        """Write a step of history at the listener's own pace; with it everything up to `reached` was written."""
        await self.wire.drained()
        fresh = frames.after(self.cursor)
        if fresh.positions:
            self.wire.write(self.manner.alone(fresh.joined))
        self.cursor = max(self.cursor, reached)

    def tell(self, message: bytes) -> None:
        """Write something for it alone while it is in no context."""
        if not self.over:
            self.wire.write(self.manner.alone(message))

    def share(self, parting: bytes) -> None:
        """It is in a context from now on; `parting` is how it gets out of it."""
        self._parting = parting

    def finish(self, message: bytes) -> None:
        """Write the last message and be done."""
        if self.over:
            return
        encoding = self.manner.encoding
        last = self._parting + encoding.alone(message) if message else b""
        self.wire.write(self.manner.framed(last) + self.manner.end)
        self.leave()
        self.wire.close()

    def cut_off(self) -> None:
        """It reads too slowly."""
        self._metrics.cut_off.inc()
        self.finish(slow(self.manner.format, self.cursor, self._limit))

    def leave(self) -> None:
        """It is over: it was told so, or it is gone."""
        if not self.over:
            self.over = True
            self.left()
            if self._done is not None and not self._done.done():
                self._done.set_result(None)

    @property
    def behind(self) -> bool:
        """More waits for it than may."""
        return self.wire.waiting() > self._limit

    @property
    def limit(self) -> int:
        return self._limit

    async def until_over(self) -> None:
        if not self.over:
            self._done = asyncio.get_running_loop().create_future()
            await self._done
