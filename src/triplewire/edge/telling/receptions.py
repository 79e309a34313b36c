"""The reception: how a request to listen becomes a listener in a room."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Hashable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from aiohttp import web

from triplewire.config import limits
from triplewire.config.metrics import Metrics
from triplewire.edge.formats import Format
from triplewire.edge.formats.ports import gap
from triplewire.edge.ports import Entries
from triplewire.edge.telling.listeners import Listener
from triplewire.edge.telling.manners import Manner, manner_of
from triplewire.edge.telling.rooms import Room
from triplewire.edge.telling.seats import Seats, chunked
from triplewire.edge.telling.subjects import Subject
from triplewire.edge.telling.wires import Wire
from triplewire.edge.workers import Workers
from triplewire.model import format_position
from triplewire.model.errors import Unavailable

Key = TypeVar("Key", bound=Hashable)

_HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no", "Vary": "Accept, Accept-Encoding"}

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Reception:
    """Opens connections and leads listeners to their room."""

    rooms: Sequence[Room[Any]]
    """All that there are: seats are counted over all of them."""
    log: Entries
    workers: Workers
    metrics: Metrics
    buffer: int = limits.CLIENT_BUFFER_BYTES
    most: int = limits.LISTENERS
    patience: float = limits.ACK_SECONDS
    """Seconds for which a client that sets the pace may stand still."""
    seats: Seats = field(default_factory=Seats)
    _attending: set[asyncio.Task[None]] = field(default_factory=set)

    def __len__(self) -> int:
        """How many listen."""
        return max(len(self.seats), sum(map(len, self.rooms)))

    def check_space(self) -> None:
        """Raises Unavailable when no more listeners are let in; asked before an answer begins."""
        if len(self) >= self.most:
            raise Unavailable(f"{self.most} listeners are here already; try another edge, or later")

    async def head(self) -> int:
        """Where `now` is."""
        return await self.workers.run(self.log.head)

    async def welcome(self, request: web.Request, subject: Subject[Key]) -> web.StreamResponse:
        """Let a listener in, which stays when the request is long over. Raises NotAcceptable or BadRequest."""
        manner = manner_of(request, subject.window)
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(subject.holding())
            response, seat = await self.seats.take(request, headers_of(manner))
            self.lead(seat, replace(manner, chunked=chunked(response)), subject, stack.pop_all())
        return response

    def lead(self, wire: Wire, manner: Manner, subject: Subject[Key], stays: AsyncExitStack) -> None:
        """Make a listener of a connection and lead it to its room. What is held is let go when it leaves."""
        listener = Listener(wire, subject.after, self.metrics, self.buffer, manner)
        listener.greet(manner.format.head + greeting(manner.format, format_position(subject.after), [subject]))
        self.keep(_attend(subject, listener, None if subject.held is None else stays))

    def keep(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Have something done for as long as it takes."""
        task = asyncio.create_task(work)
        self._attending.add(task)
        task.add_done_callback(self._attending.discard)
        return task


async def _attend(subject: Subject[Key], listener: Listener, stays: AsyncExitStack | None) -> None:
    try:
        await subject.room.listen(subject.key, listener, subject.history)
    except Exception:
        # The answer has begun: too late for a problem document. The client comes back to where it was.
        logger.exception("a history failed while somebody listened")
        listener.finish(b"")
    if stays is not None:
        async with stays:
            await listener.until_over()


def greeting(format: Format, id: str, subjects: Sequence[Subject[Any]]) -> bytes:
    """The first message: from where on a client is told, and whether anything before that was missed."""
    missed = [(each.after, each.earliest) for each in subjects if each.earliest is not None]
    if not missed:
        return format.notice("position", position=id, missed=False)
    asked, earliest = missed[0]
    first = format.notice("position", position=id, missed=True, earliest=format_position(earliest))
    return first + gap(format, asked, earliest)


def headers_of(manner: Manner) -> dict[str, str]:
    """Of an answer without an end."""
    packed = {"Content-Encoding": manner.encoding.name} if manner.encoding.name else {}
    return {**_HEADERS, "Content-Type": manner.format.media_type, **packed}
