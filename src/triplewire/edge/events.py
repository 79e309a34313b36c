"""The feed of events: what the log takes in, to those who listen to streams."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from triplewire.config import limits
from triplewire.edge.entries import Pieces
from triplewire.edge.formats import Format
from triplewire.edge.frames import NOTHING, Frames
from triplewire.edge.ports import Entries
from triplewire.edge.rooms import Room
from triplewire.edge.tellings import Once, events
from triplewire.edge.windows import Load
from triplewire.edge.workers import Workers
from triplewire.model import START
from triplewire.telemetry.metrics import Metrics


@dataclass(frozen=True)
class Tap:
    """What is listened to: a stream, or what a sieve lets through of it."""

    stream: str
    sieve: None = None


class Events:
    """Brings new entries into a room whose keys are taps of streams."""

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

    async def step(self) -> None:
        """Bring the room to the head of the log. Where nobody listens nothing is read."""
        head = await self._workers.run(self._log.head)
        while self.room.place < head and not self._nobody(head):
            table, reached = await self._workers.run(_page, self._log, self.room.place, head, self._limit)
            self.room.place = reached
            self._push(table)
            await asyncio.sleep(0)

    def history(self, stream: str) -> StreamHistory:
        return StreamHistory(stream, self._log, self._workers, lambda: self.room.place, self._limit)

    def _nobody(self, head: int) -> bool:
        if any(True for _ in self.room):
            return False
        self.room.place = head
        return True

    def _push(self, table: pa.Table) -> None:
        present = pc.unique(table.column("stream")).to_pylist()
        for stream in present:
            tap = Tap(stream)
            if self.room.channels(tap):
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
        return await self._workers.run(self._read, cursor, self._place(), format)

    def _read(self, cursor: int, place: int, format: Format) -> tuple[Frames, int]:
        table, reached = _page(self._log, cursor, place, self._limit)
        found = _of_stream(table, self._stream, 2)
        return (events(Pieces(found), format) if found.num_rows else NOTHING), reached


def _page(log: Entries, after: int, upto: int, limit: int) -> tuple[pa.Table, int]:
    """Some entries, and the position up to which they are all there are."""
    table = log.read(after, upto, limit)
    return table, upto if table.num_rows < limit else table.column("position")[-1].as_py()


def _of_stream(table: pa.Table, stream: str, present: int) -> pa.Table:
    return table if present == 1 else table.filter(pc.equal(table.column("stream"), stream))
