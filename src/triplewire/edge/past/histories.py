"""Histories: the past of one stream, step by step, for one listener."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from triplewire.edge.feeds.entries import Pieces
from triplewire.edge.formats import Format
from triplewire.edge.formats.ports import gap
from triplewire.edge.past.backlogs import Backlog
from triplewire.edge.past.gaps import Gap
from triplewire.edge.telling.frames import NOTHING, Frames
from triplewire.edge.telling.tellings import events
from triplewire.edge.workers import Workers
from triplewire.model import START


class StreamHistory:
    """What is lost while it is read is told before what comes after it."""

    def __init__(
        self,
        stream: str,
        backlog: Backlog,
        workers: Workers,
        historians: Workers,
        place: Callable[[], int],
        limit: int,
        told: int,
    ) -> None:
        """`told` is the position up to which the listener knows what is lost."""
        self._stream = stream
        self._backlog = backlog
        self._workers = workers
        self._historians = historians
        self._place = place
        self._limit = limit
        self._told = told
        self._gap: tuple[Gap, int] | None = None
        """What is to be told before the next messages, and how far these reach."""
        self.watch: Callable[[], None] = lambda: None
        """Asked whether what was read may still be told; raises Over where it may not."""

    @property
    def least(self) -> int:
        return START

    async def step(self, cursor: int, format: Format) -> tuple[Frames, int]:
        table, reached = await self.page(cursor)
        return await self.written(table, format), reached

    async def page(self, cursor: int) -> tuple[pa.Table, int]:
        """Its next events above the cursor, boundedly many, and the position up to which that is all of them."""
        asked = (self._stream, cursor, self._place(), self._limit)
        found = await self._workers.run(self._backlog.recent, *asked)
        if found is None:
            found = await self._historians.run(self._backlog.older, *asked, self._told)
        self.watch()
        if found.gap is not None:
            self._told = found.gap.last
            self._gap = (found.gap, found.reached)
        return found.entries, found.reached

    async def written(self, table: pa.Table, format: Format) -> Frames:
        """Events as messages."""
        found = await self._workers.run(events, Pieces(table), format) if table.num_rows else NOTHING
        if self._gap is None:
            return found
        (missed, reached), self._gap = self._gap, None
        notice = gap(format, missed.first - 1, missed.earliest)
        if not found.parts:
            return Frames([reached], [notice + format.reached(reached)])
        return Frames(found.positions, [notice + found.parts[0], *found.parts[1:]])
