"""The reception: how a request to listen becomes a listener in a room."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Hashable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from aiohttp import web

from triplewire.config import limits
from triplewire.edge.formats import Format
from triplewire.edge.formats.ports import gap
from triplewire.edge.gaps import gap_after
from triplewire.edge.listeners import Listener
from triplewire.edge.manners import Manner, manner_of
from triplewire.edge.ports import Entries
from triplewire.edge.rooms import History, Room
from triplewire.edge.seats import Seats, chunked
from triplewire.edge.workers import Workers
from triplewire.errors import Unavailable
from triplewire.model import token
from triplewire.registry.ports import Registry
from triplewire.telemetry.metrics import Metrics

Key = TypeVar("Key", bound=Hashable)

_HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no", "Vary": "Accept, Accept-Encoding"}

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Reception:
    """Opens connections and leads listeners to their room."""

    rooms: Sequence[Room[Any]]
    """All that there are: seats are counted over all of them."""
    log: Entries
    registry: Registry
    workers: Workers
    metrics: Metrics
    buffer: int = limits.CLIENT_BUFFER_BYTES
    most: int = limits.LISTENERS
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

    async def gap(self, after: int) -> int | None:
        """The first position that is kept, for somebody who comes back from one, if something between them is gone."""
        return await self.workers.run(gap_after, self.log, self.registry, after)

    async def welcome(
        self,
        request: web.Request,
        room: Room[Key],
        key: Key,
        after: int,
        history: History,
        *,
        window: float = 0.0,
        earliest: int | None = None,
        held: AbstractAsyncContextManager[None] | None = None,
    ) -> web.StreamResponse:
        """Let a listener in, which stays when the request is long over. `earliest` is what is kept, if something was
        missed; `held` lasts as long as the listener stays. Raises NotAcceptable or BadRequest."""
        manner = manner_of(request, window)
        async with AsyncExitStack() as stack:
            if held is not None:
                await stack.enter_async_context(held)
            response, seat = await self.seats.take(request, _headers(manner))
            listener = Listener(seat, after, self.metrics, self.buffer, replace(manner, chunked=chunked(response)))
            listener.greet(greeting(manner.format, after, earliest))
            stays = stack.pop_all() if held is not None else None
            task = asyncio.create_task(_attend(room, key, listener, history, stays))
        self._attending.add(task)
        task.add_done_callback(self._attending.discard)
        return response


async def _attend(
    room: Room[Key], key: Key, listener: Listener, history: History, stays: AsyncExitStack | None
) -> None:
    try:
        await room.listen(key, listener, history)
    except Exception:
        # The answer has begun: too late for a problem document. The client comes back to where it was.
        logger.exception("a history failed while somebody listened")
        listener.finish(b"")
    if stays is not None:
        async with stays:
            await listener.until_over()


def greeting(format: Format, position: int, earliest: int | None) -> bytes:
    """The first message: from where on the listener is told, and whether anything before that was missed."""
    missed = {} if earliest is None else {"earliest": token(earliest)}
    first = format.notice("position", position=token(position), missed=earliest is not None, **missed)
    return first if earliest is None else first + gap(format, position, earliest)


def _headers(manner: Manner) -> dict[str, str]:
    packed = {"Content-Encoding": manner.encoding.name} if manner.encoding.name else {}
    return {**_HEADERS, "Content-Type": manner.format.media_type, **packed}
