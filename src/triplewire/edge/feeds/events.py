"""The feed of events: what the log takes in, to those who listen to streams."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from triplewire.config import limits
from triplewire.config.metrics import Metrics
from triplewire.config.tracing import Traced, now_ns
from triplewire.edge.company.latest import Latest
from triplewire.edge.feeds.entries import Pieces
from triplewire.edge.feeds.views import Views, come_in_again
from triplewire.edge.formats.ports import closing
from triplewire.edge.past.backlogs import Backlog
from triplewire.edge.past.histories import StreamHistory
from triplewire.edge.ports import Entries
from triplewire.edge.sieves import Tap
from triplewire.edge.telling.rooms import Addressee, Room
from triplewire.edge.telling.tellings import Once, events
from triplewire.edge.telling.windows import Load
from triplewire.edge.workers import Workers
from triplewire.model import START


class Events:
    """Brings new entries into a room whose keys are taps of whole streams."""

    def __init__(
        self,
        backlog: Backlog,
        workers: Workers,
        historians: Workers,
        metrics: Metrics,
        limit: int = limits.HISTORY_EVENTS,
        load: Load | None = None,
        views: Views | None = None,
    ) -> None:
        """What takes long, of those who come from far back, is read by `historians`."""
        self.views = views or Views()
        self.room: Room[Tap] = Room(backlog.log.head(), load)
        self._backlog = backlog
        self._memories = backlog.memories
        self._workers = workers
        self._historians = historians
        self._delivered = metrics.delivered.labels("event")
        self._limit = limit
        self.latest = Latest()
        self.traced: Traced | None = None

    async def step(self) -> None:
        """Bring the room to the head of the log. Where nobody listens, and nobody is expected back, nothing is read."""
        head = await self._workers.run(self.head)
        while self.room.place < head and not self._nobody(head):
            after = self.room.place
            mark, found, turn = await self._workers.run(self._read, after, head)
            if self.room.place != after:
                # All had left, and somebody came who needs nothing of this.
                continue
            if found is None:
                self.room.place = head
                self.room.close(come_back)
                return
            table, self.room.place = turned(*found, turn)
            self.latest.note(table)
            parts = self._parts(table)
            self._memories.keep(parts, after, self.room.place, mark, {tap.stream for tap in self.room})
            self._push(parts)
            self.room.settle()
            if turn is not None:
                self.renew(self.room)
            await asyncio.sleep(0)

    async def rouse(self) -> None:
        """Somebody comes: a room where nobody is need not go through what it has slept over, but its history does."""
        self._nobody(await self._workers.run(self.head))

    def head(self) -> int:
        """The newest position. Every change of the policy up to there is known from then on."""
        head = self._backlog.log.head()
        self.views.look()
        return head

    def renew(self, room: Room[Tap]) -> None:
        """Send those back who see something else from here on."""
        for tap in self.views.outdated([*room]):
            room.finish(tap, come_in_again)

    def history(self, stream: str, place: Callable[[], int] | None = None, told: int = START) -> StreamHistory:
        """The past of a stream up to a place, which is that of the room unless another is given; for a listener who
        knows what is lost up to a position."""
        to = place or (lambda: self.room.place)
        return StreamHistory(stream, self._backlog, self._workers, self._historians, to, self._limit, told)

    def _nobody(self, head: int) -> bool:
        if any(True for _ in self.room) or len(self._memories):
            return False
        self.room.place = head
        self.latest.forget()
        self.room.settle()
        return True

    def _read(self, after: int, head: int) -> tuple[int, tuple[pa.Table, int] | None, int | None]:
        mark = self._memories.look()
        found = page(self._backlog.log, after, head, self._limit)
        return mark, found, None if found is None else self.views.turn(after, found[1])

    def _parts(self, table: pa.Table) -> dict[str, pa.Table]:
        """By streams that are listened to, or remembered for those who come back."""
        present = pc.unique(table.column("stream")).to_pylist()
        wanted = [each for each in present if each in self._memories or Tap(each) in self.room]
        return {each: _of_stream(table, each, len(present)) for each in wanted}

    def _push(self, parts: Mapping[str, pa.Table]) -> None:
        for stream, table in parts.items():
            tap = Tap(stream)
            if tap in self.room:
                pieces, began = Pieces(table), now_ns()
                written = self.room.push(tap, Once(partial(events, pieces)))
                self._delivered.inc(written)
                if self.traced is not None:
                    self.traced(pieces.headers(), began, written)


def page(log: Entries, after: int, upto: int, limit: int) -> tuple[pa.Table, int] | None:
    """Some entries, and the position up to which they are all there are; None where the log has let some of them go
    before they were told. Those who listen then come back, and are led through the past."""
    table = log.read(after, upto, limit)
    if log.gone() > after:
        return None
    return table, upto if table.num_rows < limit else table.column("position")[-1].as_py()


def turned(table: pa.Table, reached: int, turn: int | None) -> tuple[pa.Table, int]:
    """What comes of a page before the policy changes, if it does."""
    return (table, reached) if turn is None else (table.filter(pc.less(table["position"], turn)), turn)


def come_back(listener: Addressee) -> bytes:
    """The last message of those whose feed was left behind."""
    return closing(listener.manner.format, listener.cursor, limits.RETRY_MILLISECONDS)


def _of_stream(table: pa.Table, stream: str, present: int) -> pa.Table:
    return table if present == 1 else table.filter(pc.equal(table.column("stream"), stream))
