"""The feed of matches: what the pipeline found, to those who listen to subscriptions and to continuous queries."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Generic, TypeVar

import numpy as np
import pyarrow as pa

from triplewire.config import limits
from triplewire.config.metrics import Metrics
from triplewire.config.tracing import Traced, now_ns
from triplewire.edge.feeds.notifications import Group, Solutions, Speaker, Wanted, grouped
from triplewire.edge.feeds.standing import Standing
from triplewire.edge.formats import Format
from triplewire.edge.formats.ports import moved
from triplewire.edge.ports import Entries
from triplewire.edge.telling.frames import NOTHING, Frames
from triplewire.edge.telling.rooms import Addressee, Room
from triplewire.edge.telling.tellings import Once
from triplewire.edge.telling.windows import Load
from triplewire.edge.workers import Workers
from triplewire.model import START
from triplewire.model.errors import Unavailable
from triplewire.storage.log.ports import Outbox, OutboxChunk

_BREATH = 250
"""Notifications between two turns of the event loop: at most 40 µs each, so that nobody waits longer than 10 ms."""


Known = TypeVar("Known", bound=Standing)


class Matches(Generic[Known]):
    """Brings new chunks of a lane into a room whose keys are the positions at which subscriptions, or queries, were
    made."""

    def __init__(
        self,
        outbox: Outbox,
        log: Entries,
        standing: Known,
        workers: Workers,
        metrics: Metrics,
        *,
        slow: bool = False,
        limit: int = limits.HISTORY_EVENTS,
        load: Load | None = None,
    ) -> None:
        self.room: Room[int] = Room(outbox.head(), load)
        self.slow = slow
        self.standing = standing
        standing.rooms.append(self.room)
        self._outbox = outbox
        self._log = log
        self._workers = workers
        self._delivered = metrics.delivered.labels("notification")
        self._limit = limit
        self.traced: Traced | None = None

    async def step(self) -> None:
        """Hand out every new chunk, then see off those of what has ended. Nobody there: nothing is read."""
        # What was matched was matched by the registry as it is known after this.
        head = await self._workers.run(self._outbox.head)
        await self.standing.refresh()
        while any(True for _ in self.room) and self.room.place < head:
            await self._hand_out(await self._workers.run(self._outbox.read, self.room.place, 1), head)
            self.room.settle()
        self.room.place = max(self.room.place, head)
        self.room.settle()
        self._send_over()
        await self._see_off()

    def history(self, made: int) -> MatchHistory:
        """Of what was made at a position."""
        return MatchHistory(made, self, self._outbox, self._log, self._workers, self._limit)

    async def _hand_out(self, chunks: Sequence[OutboxChunk], head: int) -> None:
        # Whoever enters from here on has this chunk from history.
        before, self.room.place = self.room.place, chunks[0].upto if chunks else head
        groups = [group for chunk in chunks for group in self._grouped(chunk)]
        if not groups:
            return
        try:
            speaker = await self._workers.run(_speaker, self._log, chunks[0].matches, groups)
            await self._push(speaker, groups)
        except BaseException:
            # Those who were here are still to be told; nobody is told twice.
            self.room.place = before
            raise

    def _grouped(self, chunk: OutboxChunk) -> Iterator[Group]:
        return grouped(chunk.matches, self.standing.wanted(self.room, slow=self.slow))

    async def _push(self, speaker: Speaker, groups: Sequence[Group]) -> None:
        written, spoken, began = 0, 0, now_ns()
        for page in (page for group in groups for page in group.pages(self._limit)):
            shown = self.standing.shown(page.since)
            if shown is None:
                continue
            written += self.room.push(shown.made, Once(partial(speaker.frames, shown, page)))
            spoken += len(page.positions)
            if spoken >= _BREATH:
                # The loop serves publishers, and writes out what was handed to connections, in between.
                spoken = 0
                await asyncio.sleep(0)
        self._delivered.inc(written)
        if self.traced is not None:
            self.traced(speaker.pieces(None).headers(), began, written)

    def _send_over(self) -> None:
        """Those whose matches come by another lane have had all that comes by this one: they are to come back."""
        for made in self.standing.leaving(self.room, slow=self.slow):
            self.room.finish(made, _moved)

    async def _see_off(self) -> None:
        for each in self.standing.ended():
            if each.made in self.room and await self.settled(each.until):
                self.room.finish(each.made, each.last)

    async def settled(self, until: int) -> bool:
        """Whether every event before a position was matched. A registry change alone makes no batch."""
        place = self.room.place
        return place >= until or not (await self._workers.run(self._log.read, place, until, 1)).num_rows


class MatchHistory:
    """What the outbox still holds for one of them."""

    def __init__(
        self, made: int, feed: Matches[Any], outbox: Outbox, log: Entries, workers: Workers, limit: int
    ) -> None:
        self._made = made
        self._slow = feed.slow
        self._standing: Standing = feed.standing
        self._room = feed.room
        self._outbox = outbox
        self._log = log
        self._workers = workers
        self._limit = limit

    @property
    def least(self) -> int:
        return START

    async def step(self, cursor: int, format: Format) -> tuple[Frames, int]:
        wanted = self._standing.wanted((self._made,), slow=self._slow)
        if not wanted:
            raise Unavailable("what is listened to was forgotten here meanwhile; come back")
        return await self._workers.run(self._read, wanted, cursor, self._room.place, format)

    def _read(self, wanted: Sequence[Wanted], cursor: int, place: int, format: Format) -> tuple[Frames, int]:
        for chunk in self._outbox.read(cursor, 1):
            # What was matched after this was looked at may be of a version that is not known yet.
            return self._first(chunk, wanted, cursor, format) if chunk.upto <= place else (NOTHING, place)
        return NOTHING, place

    def _first(self, chunk: OutboxChunk, wanted: Sequence[Wanted], cursor: int, format: Format) -> tuple[Frames, int]:
        """The first matches of a chunk above the cursor: of one version of a subscription, since they follow each
        other."""
        pages = [group.page(cursor, self._limit) for group in grouped(chunk.matches, wanted)]
        pages = [page for page in pages if page.positions]
        shown = self._standing.shown(pages[0].since) if pages else None
        if shown is None:
            return NOTHING, chunk.upto
        speaker, positions = _speaker(self._log, chunk.matches, pages[:1]), pages[0].positions
        frames = speaker.frames(shown, pages[0], format)
        return frames, positions[-1] if len(pages) > 1 or len(positions) == self._limit else chunk.upto


def _speaker(log: Entries, matches: pa.Table, groups: Sequence[Group]) -> Speaker:
    positions = np.unique(np.concatenate([group.positions for group in groups]))
    return Speaker(log.entries(positions.tolist()), Solutions(matches), log.begin())


def _moved(listener: Addressee) -> bytes:
    return moved(listener.manner.format, listener.cursor)
