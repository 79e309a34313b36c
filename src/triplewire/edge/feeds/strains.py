"""Strains: the feed of events through sieves. It has a room and a tail of its own, so that who listens to whole
streams
does not wait for queries and filters.

A filter that remembers is one for all who listen live to the same. A listener who comes from the past has one of its
own until it is there; the first one's then becomes that of all.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from functools import partial

import pyarrow as pa

from triplewire.config import limits
from triplewire.config.metrics import Metrics
from triplewire.config.tracing import Traced, now_ns
from triplewire.edge.feeds.entries import Pieces
from triplewire.edge.feeds.events import Events, come_back, page, turned
from triplewire.edge.formats import Format
from triplewire.edge.formats.ports import failed, undecided
from triplewire.edge.past.histories import StreamHistory
from triplewire.edge.ports import Entries
from triplewire.edge.sieves import Filter, Sieves, Sifted, Tap
from triplewire.edge.telling.frames import Frames
from triplewire.edge.telling.listeners import Listener
from triplewire.edge.telling.rooms import Addressee, Attached, History, Over, Room
from triplewire.edge.telling.tellings import Once, events
from triplewire.edge.telling.windows import Load
from triplewire.edge.workers import Workers
from triplewire.model import START

logger = logging.getLogger(__name__)


class StrainRoom(Room[Tap]):
    """Its listeners are told from time to time how far they are, since little may pass."""

    def __init__(self, place: int, load: Load | None = None) -> None:
        super().__init__(place, load)
        self.memories: dict[Tap, Filter] = {}

    async def listen(self, key: Tap, listener: Listener, history: History) -> None:
        await super().listen(key, listener, history)
        if not listener.over:
            self._remember(key, history)

    def attach(self, key: Tap, each: Attached, history: History) -> None:
        super().attach(key, each, history)
        self._remember(key, history)

    def _remember(self, key: Tap, history: History) -> None:
        memory = history.memory if isinstance(history, StrainHistory) else None
        if memory is not None:
            self.memories.setdefault(key, memory)

    def keep_open(self) -> None:
        for tap in (*self,):
            self.push(tap, Once(partial(_reached, self.told)))
        super().keep_open()


class Strains:
    """Brings what passes of new entries into a room whose keys are taps with sieves."""

    def __init__(
        self,
        whole: Events,
        log: Entries,
        workers: Workers,
        sieves: Sieves,
        metrics: Metrics,
        limit: int = limits.HISTORY_EVENTS,
        load: Load | None = None,
    ) -> None:
        self.room = StrainRoom(log.head(), load)
        self._whole = whole
        self._log = log
        self._workers = workers
        self._sieves = sieves
        self._delivered = metrics.delivered.labels("event")
        self._limit = limit
        self.traced: Traced | None = None

    def idle(self) -> bool:
        """Whether nobody is here; whoever comes begins where the whole streams are."""
        if any(True for _ in self.room):
            return False
        self.room.place = max(self.room.place, self._whole.room.place)
        self.room.settle()
        self.room.memories.clear()
        return True

    def history(self, tap: Tap, memory: Filter | None, told: int = START) -> StrainHistory:
        """The past of a tap, for one listener, who knows what is lost up to a position."""
        stream = self._whole.history(tap.stream, lambda: self.room.place, told)
        return StrainHistory(tap, memory, stream, self._sieves)

    async def step(self) -> None:
        """Bring the room to the head of the log."""
        head = await self._workers.run(self._whole.head)
        while not self.idle() and self.room.place < head:
            after = self.room.place
            found, turn = await self._workers.run(self._read, after, head)
            if self.room.place != after:
                # All had left, and somebody came who needs nothing of this.
                continue
            if found is None:
                self.room.place = head
                self.room.close(come_back)
                return
            table, reached = turned(*found, turn)
            # From here on who comes in has had all of this by its history; who is here is among these.
            taps, self.room.place = {*self.room}, reached
            await self._pass(table, taps)
            self.room.settle()
            if turn is not None:
                self._whole.renew(self.room)
            await asyncio.sleep(0)

    def _read(self, after: int, head: int) -> tuple[tuple[pa.Table, int] | None, int | None]:
        found = page(self._log, after, head, self._limit)
        return found, None if found is None else self._whole.views.turn(after, found[1])

    async def _pass(self, table: pa.Table, taps: set[Tap]) -> None:
        memories = self.room.memories
        self.room.memories = {tap: memories[tap] for tap in taps if tap in memories}
        try:
            self._hand_out(await self._sieves.sift(table, taps, self.room.memories))
        except Exception:
            # A filter cannot be shown the same events again: those who listen come back to where they were.
            logger.exception("a pass through sieves failed")
            for tap in taps:
                self.room.finish(tap, come_back)

    def _hand_out(self, sifted: Sifted) -> None:
        tellings: dict[int, Once] = {}
        for tap, table in sifted.passed.items():
            left = sifted.undecided.get(tap, ())
            if (table.num_rows or left) and tap in self.room:
                telling = tellings.setdefault(id(table), Once(partial(events, Pieces(table))))
                began = now_ns()
                written = self.room.push(tap, Once(partial(_with_open, telling, left)) if left else telling)
                self._delivered.inc(written)
                if self.traced is not None:
                    self.traced(Pieces(table).headers(), began, written)
        for tap, detail in sifted.failed.items():
            self.room.memories.pop(tap, None)
            self.room.finish(tap, partial(_failed, detail))


class StrainHistory:
    """The past of one listener through its own filter. A last message of each step without words tells how far it is:
    little may pass, and whoever comes back begins there."""

    def __init__(self, tap: Tap, memory: Filter | None, stream: StreamHistory, sieves: Sieves) -> None:
        self.memory = memory
        self._tap = tap
        self.stream = stream
        self._sieves = sieves

    @property
    def least(self) -> int:
        return self.stream.least

    async def step(self, cursor: int, format: Format) -> tuple[Frames, int]:
        table, reached = await self.stream.page(cursor)
        left: Sequence[int] = ()
        if table.num_rows:
            memories = {} if self.memory is None else {self._tap: self.memory}
            sifted = await self._sieves.sift(table, [self._tap], memories, past=True)
            if self._tap in sifted.failed:
                raise Over(sifted.failed[self._tap])
            table, left = sifted.passed[self._tap], sifted.undecided.get(self._tap, ())
        found = await self.stream.written(table, format)
        return _arrived(_opened(found, left, format), reached, format), reached


def _with_open(telling: Once, left: Sequence[int], format: Format) -> Frames:
    return _opened(telling.frames(format), left, format)


def _opened(found: Frames, left: Sequence[int], format: Format) -> Frames:
    """Messages, and in the place of events that were not decided that it is so."""
    if not left:
        return found
    notices = ((position, undecided(format, position)) for position in left)
    parts = sorted([*zip(found.positions, found.parts, strict=True), *notices])
    return Frames([position for position, _ in parts], [part for _, part in parts])


def _arrived(found: Frames, reached: int, format: Format) -> Frames:
    if found.positions and found.positions[-1] >= reached:
        return found
    last = _reached(reached, format)
    return Frames([*found.positions, *last.positions], [*found.parts, *last.parts])


def _reached(position: int, format: Format) -> Frames:
    return Frames([position], [format.reached(position)])


def _failed(detail: str, listener: Addressee) -> bytes:
    return failed(listener.manner.format, listener.cursor, detail)
