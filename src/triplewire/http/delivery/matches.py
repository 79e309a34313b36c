"""The live source of matches: outbox chunks for clients of subscriptions and continuous queries, over a main and a
slow lane.

The matches of expensive subscriptions come, from some position on, by the slow lane. A client is in the topic of one
lane; clients of the main lane never wait for the slow one.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

import numpy as np
import pyarrow as pa

from triplewire.config.metrics import Metrics
from triplewire.config.tracing import Traced, now_ns
from triplewire.http.delivery.channels import CachedMessages
from triplewire.http.delivery.events import TAIL_SECONDS
from triplewire.http.delivery.options import LoopLoad
from triplewire.http.delivery.subscriptions import StandingQueries, SubscriptionCache
from triplewire.http.delivery.topics import ClientState, LiveTopic, TopicHistory
from triplewire.http.formats.messages import NO_FRAMES, Frames, MessageFormat, lane_changed_notice
from triplewire.http.formats.notifications import MatchGroup, MatchSelector, MatchSolutions, Renderer, group_matches
from triplewire.http.openapi import operations
from triplewire.http.ports import EdgeLog, ThreadPool
from triplewire.model import START, Subscription
from triplewire.model.errors import Unavailable
from triplewire.storage.outbox import Outbox, OutboxChunk, OutboxLane

_BREATH = 250
"""Notifications between two turns of the event loop: at most 40 µs each, so that nobody waits longer than 10 ms."""


Known = TypeVar("Known", bound=StandingQueries)


class MatchSource(Generic[Known]):
    """Brings new chunks of a lane into a room whose keys are the positions at which subscriptions, or queries, were
    made."""

    def __init__(
        self,
        outbox: Outbox,
        log: EdgeLog,
        standing: Known,
        workers: ThreadPool,
        metrics: Metrics,
        *,
        lane: OutboxLane = OutboxLane.FAST,
        limit: int = operations.HISTORY_EVENTS,
        load: LoopLoad | None = None,
    ) -> None:
        self.room: LiveTopic[int] = LiveTopic(outbox.head(lane), load)
        self.lane = lane
        self.slow = lane is OutboxLane.SLOW
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
        head = await self._workers.run(self._outbox.head, self.lane)
        await self.standing.refresh()
        while any(True for _ in self.room) and self.room.place < head:
            await self._hand_out(await self._workers.run(self._outbox.read, self.room.place, 1, self.lane), head)
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
        before, self.room.place = self.room.place, chunks[0].position if chunks else head
        groups = [group for chunk in chunks for group in self._grouped(chunk)]
        if not groups:
            return
        try:
            speaker = await self._workers.run(_make_renderer, self._log, chunks[0].matches, groups)
            await self._push(speaker, groups)
        except BaseException:
            # Those who were here are still to be told; nobody is told twice.
            self.room.place = before
            raise

    def _grouped(self, chunk: OutboxChunk) -> Iterator[MatchGroup]:
        return group_matches(chunk.matches, self.standing.wanted(self.room, slow=self.slow))

    async def _push(self, speaker: Renderer, groups: Sequence[MatchGroup]) -> None:
        written, spoken, began = 0, 0, now_ns()
        for page in (page for group in groups for page in group.pages(self._limit)):
            shown = self.standing.shown(page.since)
            if shown is None:
                continue
            written += self.room.push(shown.made, CachedMessages(partial(speaker.frames, shown, page)))
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
            self.room.finish(made, _render_lane_change)

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
        self, made: int, feed: MatchSource[Any], outbox: Outbox, log: EdgeLog, workers: ThreadPool, limit: int
    ) -> None:
        self._made = made
        self._lane = feed.lane
        self._slow = feed.slow
        self._standing: StandingQueries = feed.standing
        self._room = feed.room
        self._outbox = outbox
        self._log = log
        self._workers = workers
        self._limit = limit

    @property
    def least(self) -> int:
        return START

    async def step(self, cursor: int, format: MessageFormat) -> tuple[Frames, int]:
        wanted = self._standing.wanted((self._made,), slow=self._slow)
        if not wanted:
            raise Unavailable("what is listened to was forgotten here meanwhile; come back")
        return await self._workers.run(self._read, wanted, cursor, self._room.place, format)

    def _read(
        self, wanted: Sequence[MatchSelector], cursor: int, place: int, format: MessageFormat
    ) -> tuple[Frames, int]:
        for chunk in self._outbox.read(cursor, 1, self._lane):
            # What was matched after this was looked at may be of a version that is not known yet.
            return self._first(chunk, wanted, cursor, format) if chunk.position <= place else (NO_FRAMES, place)
        return NO_FRAMES, place

    def _first(
        self, chunk: OutboxChunk, wanted: Sequence[MatchSelector], cursor: int, format: MessageFormat
    ) -> tuple[Frames, int]:
        """The first matches of a chunk above the cursor: of one version of a subscription, since they follow each
        other."""
        pages = [group.page(cursor, self._limit) for group in group_matches(chunk.matches, wanted)]
        pages = [page for page in pages if page.positions]
        shown = self._standing.shown(pages[0].since) if pages else None
        if shown is None:
            return NO_FRAMES, chunk.position
        speaker, positions = _make_renderer(self._log, chunk.matches, pages[:1]), pages[0].positions
        frames = speaker.frames(shown, pages[0], format)
        return frames, positions[-1] if len(pages) > 1 or len(positions) == self._limit else chunk.position


def _make_renderer(log: EdgeLog, matches: pa.Table, groups: Sequence[MatchGroup]) -> Renderer:
    positions = np.unique(np.concatenate([group.positions for group in groups]))
    return Renderer(log.entries(positions.tolist()), MatchSolutions(matches), log.begin())


def _render_lane_change(listener: ClientState) -> bytes:
    return lane_changed_notice(listener.manner.format, listener.cursor)


# Lanes: the matches of most subscriptions come by the main lane; of those that were too expensive, from some position
# on, by the slow one. A listener is in the room of one lane, and those in the main lane never wait for the other.


@dataclass(frozen=True)
class OutboxLanes:
    """Both feeds."""

    main: MatchSource[SubscriptionCache]
    slow: MatchSource[SubscriptionCache]

    def of(self, subscription: Subscription) -> tuple[LiveTopic[int], TopicHistory]:
        """The room where its listeners are from now on, and what was matched before they came."""
        feeds = (self.main, self.slow)
        turns = self.main.standing.turns(subscription.made)
        if len(turns) == 1:
            return self.main.room, self.main.history(subscription.made)
        parts = [LaneSpan(start, feeds[slow].room, feeds[slow].history(subscription.made)) for start, slow in turns]
        return parts[-1].room, LaneHistory(parts)


@dataclass(frozen=True)
class LaneSpan:
    """What of a history comes by one lane: above a position, up to the next part."""

    start: int
    room: LiveTopic[int]
    history: TopicHistory


@dataclass(frozen=True)
class LaneHistory:
    """The history of a subscription that went from lane to lane: part by part."""

    parts: Sequence[LaneSpan]

    @property
    def least(self) -> int:
        """All that comes by the lanes before comes first."""
        return max(self.parts[-1].start, self.parts[-1].history.least)

    async def step(self, cursor: int, format: MessageFormat) -> tuple[Frames, int]:
        number = max(0, bisect_right([each.start for each in self.parts], cursor) - 1)
        part = self.parts[number]
        if number == len(self.parts) - 1:
            return await part.history.step(cursor, format)
        if part.room.place <= cursor:
            # That lane is not there yet, and what follows must not be told before it.
            await asyncio.sleep(TAIL_SECONDS)
            return NO_FRAMES, cursor
        frames, reached = await part.history.step(cursor, format)
        end = self.parts[number + 1].start
        return frames.upto(end), min(reached, end)
