"""The feed of events: what the log takes in, to those who listen to streams."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from triplewire.config import limits
from triplewire.edge.entries import Pieces
from triplewire.edge.formats import Format
from triplewire.edge.frames import NOTHING, Frames
from triplewire.edge.latest import Latest
from triplewire.edge.ports import Entries
from triplewire.edge.rooms import Room
from triplewire.edge.sieves import Tap
from triplewire.edge.tellings import Once, events
from triplewire.edge.windows import Load
from triplewire.edge.workers import Workers
from triplewire.model import START
from triplewire.telemetry.metrics import Metrics


class Events:
    """Brings new entries into a room whose keys are taps of whole streams."""

    def __init__(
        self,
        log: Entries,
        workers: Workers,
        metrics: Metrics,
        limit: int = limits.HISTORY_EVENTS,
        load: Load | None = None,
    ) -> None:
        self.room: Room[Tap] = Room(log.head(), load)
        self._log = log
        self._workers = workers
        self._delivered = metrics.delivered.labels("event")
        self._limit = limit
        self.latest = Latest()

    async def step(self) -> None:
        """Bring the room to the head of the log. Where nobody listens nothing is read."""
        head = await self._workers.run(self._log.head)
        while self.room.place < head and not self._nobody(head):
            table, reached = await self._workers.run(page, self._log, self.room.place, head, self._limit)
            self.room.place = reached
            self._push(table)
            self.room.settle()
            await asyncio.sleep(0)

    def history(self, stream: str, place: Callable[[], int] | None = None) -> StreamHistory:
        """The past of a stream up to a place, which is that of the room unless another is given."""
        return StreamHistory(stream, self._log, self._workers, place or (lambda: self.room.place), self._limit)

    def _nobody(self, head: int) -> bool:
        if any(True for _ in self.room):
            return False
        self.room.place = head
        self.latest.forget()
        self.room.settle()
        return True

    def _push(self, table: pa.Table) -> None:
        self.latest.note(table)
        present = pc.unique(table.column("stream")).to_pylist()
        for stream in present:
            tap = Tap(stream)
            if tap in self.room:
                pieces = Pieces(_of_stream(table, stream, len(present)))
                self._delivered.inc(self.room.push(tap, Once(partial(events, pieces))))


class StreamHistory:
    """The past of one stream."""

    def __init__(self, stream: str, log: Entries, workers: Workers, place: Callable[[], int], limit: int) -> None:
        self._stream = stream
        self._log = log
        self._workers = workers
        self._place = place
        self._limit = limit

    @property
    def least(self) -> int:
        return START

    async def step(self, cursor: int, format: Format) -> tuple[Frames, int]:
        table, reached = await self.page(cursor)
        return await self.written(table, format), reached

    async def page(self, cursor: int) -> tuple[pa.Table, int]:
        """Its next events above the cursor, boundedly many, and the position up to which that is all of them."""
        return await self._workers.run(self._read, cursor, self._place())

    async def written(self, table: pa.Table, format: Format) -> Frames:
        """Events as messages."""
        return await self._workers.run(events, Pieces(table), format) if table.num_rows else NOTHING

    def _read(self, cursor: int, place: int) -> tuple[pa.Table, int]:
        table, reached = page(self._log, cursor, place, self._limit)
        return _of_stream(table, self._stream, 2), reached


def page(log: Entries, after: int, upto: int, limit: int) -> tuple[pa.Table, int]:
    """Some entries, and the position up to which they are all there are."""
    table = log.read(after, upto, limit)
    return table, upto if table.num_rows < limit else table.column("position")[-1].as_py()


def _of_stream(table: pa.Table, stream: str, present: int) -> pa.Table:
    return table if present == 1 else table.filter(pc.equal(table.column("stream"), stream))
