"""The reception: how a request to listen becomes a listener in a room."""

from __future__ import annotations

import logging
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from aiohttp import web

from triplewire.config import limits
from triplewire.edge import frames as sse
from triplewire.edge.gaps import gap_after
from triplewire.edge.listeners import Listener
from triplewire.edge.ports import Entries
from triplewire.edge.rooms import History, Room
from triplewire.edge.wires import HttpWire
from triplewire.edge.workers import Workers
from triplewire.errors import Unavailable
from triplewire.registry.ports import Registry
from triplewire.telemetry.metrics import Metrics

Key = TypeVar("Key", bound=Hashable)

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
    seats: int = limits.LISTENERS

    def check_space(self) -> None:
        """Raises Unavailable when no more listeners are let in; asked before an answer begins."""
        if sum(map(len, self.rooms)) >= self.seats:
            raise Unavailable(f"{self.seats} listeners are here already; try another edge, or later")

    async def head(self) -> int:
        """Where `now` is."""
        return await self.workers.run(self.log.head)

    async def gap(self, after: int) -> bytes:
        """What to tell first to somebody who comes back from a position: that something is gone, or nothing."""
        begin = await self.workers.run(gap_after, self.log, self.registry, after)
        return b"" if begin is None else sse.gap(after, begin)

    async def welcome(
        self, request: web.Request, room: Room[Key], key: Key, after: int, history: History, first: bytes = b""
    ) -> web.StreamResponse:
        """Serve a listener for as long as it stays. `first` is written before everything else."""
        wire = await HttpWire.open(request)
        listener = Listener(wire, after, self.metrics, self.buffer)
        listener.tell(sse.resume_from(after) + first)
        try:
            await room.listen(key, listener, history)
        except Exception:
            # The answer has begun: too late for a problem document. The client comes back to where it was.
            logger.exception("%s failed while somebody listened", request.path)
        await wire.close()
        return wire.response
