"""The live source of matches: outbox chunks for clients of subscriptions and continuous queries, over a main and a
slow lane.

The matches of expensive subscriptions come, from some position on, by the slow lane. A client is in the topic of one
lane; clients of the main lane never wait for the slow one.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Generic, TypeVar

import numpy as np
import pyarrow as pa

from triplewire.config.tracing import now_ns
from triplewire.http.delivery.channels import CachedMessages
from triplewire.http.delivery.events import SourceContext
from triplewire.http.delivery.subscriptions import RegistryCache, SubscriptionCache
from triplewire.http.delivery.topics import LiveTopic, TopicHistory
from triplewire.http.formats.messages import LANE_CHANGED, NO_FRAMES, Frames, MessageFormat
from triplewire.http.formats.notifications import MatchGroup, MatchSelector, MatchSolutions, Renderer, group_matches
from triplewire.model import START, Subscription
from triplewire.model.errors import Unavailable
from triplewire.storage.log.ports import EdgeLog
from triplewire.storage.outbox import Outbox, OutboxChunk, OutboxLane

OUTBOX_POLL_SECONDS: Final = 0.015
"""Time between two looks of an edge at an outbox; it is added to the delay of a notification."""

STEP_CHUNKS: Final = 256
"""Chunks of the outbox that are read in one step, if so many wait: they may be as small as one match."""

STEP_BYTES: Final = 16 * 1024 * 1024
"""Bytes of matches in one step, unless a single chunk has more."""

OBSERVED_EVENTS: Final = 16
"""Events of one step whose delays the metrics count: two microseconds each."""

_YIELD_NOTIFICATIONS = 250
"""Notifications between two iterations of the event loop: at most 40 µs each, so that nothing waits longer than
10 ms."""

Known = TypeVar("Known", bound=RegistryCache[Any])


class MatchSource(Generic[Known]):
    """Brings new chunks of a lane into a topic whose keys are the positions at which subscriptions, or queries, were
    made."""

    def __init__(
        self,
        outbox: Outbox,
        log: EdgeLog,
        queries: Known,
        context: SourceContext,
        topic: LiveTopic[int] | None = None,
        *,
        lane: OutboxLane = OutboxLane.FAST,
    ) -> None:
        self.topic: LiveTopic[int] = LiveTopic(outbox.head(lane)) if topic is None else topic
        self.lane = lane
        self.queries = queries
        self._outbox = outbox
        self._log = log
        self._context = context

    @property
    def is_slow(self) -> bool:
        return self.lane is OutboxLane.SLOW

    async def step(self) -> None:
        """Deliver every new chunk, then end the listeners of queries that have ended. Nothing is read while there is no
        client."""
        while await self._deliver_page():
            pass
        for made in self.queries.leaving(self.topic, slow=self.is_slow):
            self.topic.finish(made, LANE_CHANGED)
        for each in self.queries.ended():
            if each.made in self.topic and await self.is_settled(each.until):
                self.topic.finish(each.made, each.last)

    def history(self, made: int) -> MatchHistory:
        """Return the history of the query made at a position."""
        return MatchHistory(made, self, self._outbox, self._log, self._context)

    async def is_settled(self, until: int) -> bool:
        """Return whether every event before a position was matched. A registry change alone makes no batch."""
        position = self.topic.position
        return position >= until or not (await self._context.threads.run(self._log.read, position, until, 1)).num_rows

    async def _deliver_page(self) -> bool:
        """Deliver what waits, up to a limit; return whether there is more."""
        # The registry as it is known after this is at least as new as the one that the chunks were matched with.
        page, _ = await self.queries.refresh_after(self._read)
        if page.skipped and not self.topic.is_empty:
            # A client came meanwhile.
            return True
        if page.chunks:
            await self._deliver(page.chunks)
        self.topic.position = max(self.topic.position, page.end)
        self.topic.settle()
        return page.more

    def _read(self) -> _ChunkPage:
        """Read all chunks that wait, up to a limit, unless there is no client."""
        empty, after, head = self.topic.is_empty, self.topic.position, self._outbox.head(self.lane)
        if empty or after >= head:
            return _ChunkPage((), head, skipped=empty)
        return _read_chunks(self._outbox, after, self.lane, head)

    async def _deliver(self, chunks: Sequence[OutboxChunk]) -> None:
        # Clients that enter from here on have these chunks from history.
        before, self.topic.position = self.topic.position, chunks[-1].position
        matches = pa.concat_tables([each.matches for each in chunks])
        selectors = self.queries.concerned(matches, self.topic, slow=self.is_slow)
        groups = [*group_matches(matches, selectors)]
        if not groups:
            return
        try:
            renderer = await self._context.threads.run(_make_renderer, self._log, matches, groups)
            await self._push(renderer, groups)
        except BaseException:
            # The chunks are delivered again; clients skip what they have.
            self.topic.position = before
            raise
        self._observe(renderer.entries, chunks)

    def _observe(self, entries: pa.Table, chunks: Sequence[OutboxChunk]) -> None:
        """Count the delays of some of the events."""
        metrics, now, ends = self._context.metrics, now_ns() // 1_000, [each.position for each in chunks]
        sample = entries.select(["position", "received"]).slice(0, OBSERVED_EVENTS)
        for position, received in zip(*(column.to_pylist() for column in sample.columns), strict=True):
            written = chunks[bisect_left(ends, position)].written
            metrics.match_seconds.observe(max(0, written - received) / 1e6)
            metrics.delivery_seconds.observe(max(0, now - written) / 1e6)

    async def _push(self, renderer: Renderer, groups: Sequence[MatchGroup]) -> None:
        written, rendered, began = 0, 0, now_ns()
        for page in (page for group in groups for page in group.pages(self._context.limit)):
            presenter = self.queries.presenter(page.since)
            if presenter is None:
                continue
            written += self.topic.push(presenter.made, CachedMessages(partial(renderer.frames, presenter, page)))
            rendered += len(page.positions)
            if rendered >= _YIELD_NOTIFICATIONS:
                # The loop serves publishers, and writes buffers to connections, in between.
                rendered = 0
                await asyncio.sleep(0)
        self._context.metrics.delivered.labels("notification").inc(written)
        if self._context.traced is not None:
            self._context.traced(renderer.pieces(None).extensions(), began, written)


class MatchHistory:
    """The matches that the outbox still has for one subscription or query."""

    def __init__(
        self, made: int, source: MatchSource[Any], outbox: Outbox, log: EdgeLog, context: SourceContext
    ) -> None:
        self._made = made
        self._lane = source.lane
        self._is_slow = source.is_slow
        self._queries: RegistryCache[Any] = source.queries
        self._topic = source.topic
        self._outbox = outbox
        self._log = log
        self._threads = context.threads
        self._limit = context.limit

    @property
    def floor(self) -> int:
        return START

    async def step(self, cursor: int, format: MessageFormat) -> tuple[Frames, int]:
        selectors = self._queries.selectors((self._made,), slow=self._is_slow)
        if not selectors:
            raise Unavailable("the subscription is not in the cache of this edge any more; reconnect")
        return await self._threads.run(self._read, selectors, cursor, self._topic.position, format)

    def _read(
        self, selectors: Sequence[MatchSelector], cursor: int, position: int, format: MessageFormat
    ) -> tuple[Frames, int]:
        # A chunk beyond the position may have matches of a version that is not known yet.
        read = _read_chunks(self._outbox, cursor, self._lane, position)
        chunks = [each for each in read.chunks if each.position <= position]
        if not chunks:
            return NO_FRAMES, position
        matches = pa.concat_tables([each.matches for each in chunks])
        return self._first(OutboxChunk(chunks[-1].position, matches), selectors, cursor, format)

    def _first(
        self, chunk: OutboxChunk, selectors: Sequence[MatchSelector], cursor: int, format: MessageFormat
    ) -> tuple[Frames, int]:
        """Render the first matches of a chunk above the cursor. They are of one version of a subscription, since
        versions follow each other."""
        pages = [group.page(cursor, self._limit) for group in group_matches(chunk.matches, selectors)]
        pages = [page for page in pages if page.positions]
        presenter = self._queries.presenter(pages[0].since) if pages else None
        if presenter is None:
            return NO_FRAMES, chunk.position
        renderer, positions = _make_renderer(self._log, chunk.matches, pages[:1]), pages[0].positions
        frames = renderer.frames(presenter, pages[0], format)
        return frames, positions[-1] if len(pages) > 1 or len(positions) == self._limit else chunk.position


@dataclass(frozen=True)
class _ChunkPage:
    """Chunks of the outbox, and the position up to which these are all."""

    chunks: Sequence[OutboxChunk]
    end: int
    more: bool = False
    """Whether there may be others behind the end."""
    skipped: bool = False
    """Nothing was read, since there was no client."""


def _read_chunks(outbox: Outbox, after: int, lane: OutboxLane, head: int) -> _ChunkPage:
    """Read the chunks after a position, in a bounded number and size. `head` is that of the lane, or lower."""
    found = outbox.read(after, STEP_CHUNKS, lane)
    chunks, size = list[OutboxChunk](), 0
    for each in found:
        if chunks and size + each.matches.nbytes > STEP_BYTES:
            break
        chunks.append(each)
        size += each.matches.nbytes
    if len(chunks) < len(found) or len(found) == STEP_CHUNKS:
        return _ChunkPage(chunks, chunks[-1].position, more=True)
    return _ChunkPage(chunks, max(head, chunks[-1].position) if chunks else head)


def _make_renderer(log: EdgeLog, matches: pa.Table, groups: Sequence[MatchGroup]) -> Renderer:
    positions = np.unique(np.concatenate([group.positions for group in groups]))
    return Renderer(log.entries(positions.tolist()), MatchSolutions(matches), log.begin())


@dataclass(frozen=True)
class OutboxLanes:
    """The sources of the main and the slow lane."""

    main: MatchSource[SubscriptionCache]
    slow: MatchSource[SubscriptionCache]

    def resolve(self, subscription: Subscription) -> tuple[LiveTopic[int], TopicHistory]:
        """Return the topic of a subscription's clients from now on, and the history that leads there."""
        lanes, made = (self.main, self.slow), subscription.made
        changes = self.main.queries.lane_changes(made)
        if len(changes) == 1:
            return self.main.topic, self.main.history(made)
        spans = [LaneSpan(start, lanes[slow].topic, lanes[slow].history(made)) for start, slow in changes]
        return spans[-1].topic, LaneHistory(spans)


@dataclass(frozen=True)
class LaneSpan:
    """The part of a history that comes by one lane: above a position, up to the next span."""

    start: int
    topic: LiveTopic[int]
    history: TopicHistory


@dataclass(frozen=True)
class LaneHistory:
    """The history of a subscription that went from lane to lane, span by span."""

    spans: Sequence[LaneSpan]

    @property
    def floor(self) -> int:
        """The start of the last span: matches of the lanes before come first."""
        return max(self.spans[-1].start, self.spans[-1].history.floor)

    async def step(self, cursor: int, format: MessageFormat) -> tuple[Frames, int]:
        number = max(0, bisect_right([each.start for each in self.spans], cursor) - 1)
        span = self.spans[number]
        if number == len(self.spans) - 1:
            return await span.history.step(cursor, format)
        if span.topic.position <= cursor:
            # That lane is not there yet, and matches of the next must not come before its own.
            await asyncio.sleep(OUTBOX_POLL_SECONDS)
            return NO_FRAMES, cursor
        frames, position = await span.history.step(cursor, format)
        end = self.spans[number + 1].start
        return frames.up_to(end), min(position, end)
