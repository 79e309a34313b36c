"""Filtered events: the live source for clients with a stream filter or a limited visibility, and the resolver that
picks the source for a request.

It has a topic and a poller of its own, so that clients of whole streams do not wait for queries and plug-ins. A
stateful plug-in is shared by all live clients of one filter; a client that replays history has its own until it is
live.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from triplewire.config.metrics import Metrics
from triplewire.config.tracing import Traced, now_ns
from triplewire.http.delivery.channels import CachedMessages, Listener, render_events
from triplewire.http.delivery.events import EventSource, cut_at_policy_change, read_page, render_reconnect
from triplewire.http.delivery.options import LoopLoad
from triplewire.http.delivery.replay import StreamHistory
from triplewire.http.delivery.topics import ClientState, HistoryFailed, LiveTopic, TopicHistory, TopicReader
from triplewire.http.formats.messages import EntryPieces, Frames, MessageFormat, failed_notice, undecided_notice
from triplewire.http.openapi import operations
from triplewire.http.ports import EdgeLog, ThreadPool
from triplewire.http.stream_filters.evaluator import FilterEvaluator, FilterResult
from triplewire.http.stream_filters.parameters import StreamView
from triplewire.http.stream_filters.plugins import PluginFilter
from triplewire.model import START
from triplewire.security import EVERYONE, Principal, Visibility

# streams does not wait for queries and filters.
#
# A filter that remembers is one for all who listen live to the same. A listener who comes from the past has one of its
# own until it is there; the first one's then becomes that of all.

logger = logging.getLogger(__name__)


class FilteredTopic(LiveTopic[StreamView]):
    """Its listeners are told from time to time how far they are, since little may pass."""

    def __init__(self, place: int, load: LoopLoad | None = None) -> None:
        super().__init__(place, load)
        self.memories: dict[StreamView, PluginFilter] = {}

    async def listen(self, key: StreamView, listener: Listener, history: TopicHistory) -> None:
        await super().listen(key, listener, history)
        if not listener.over:
            self._remember(key, history)

    def attach(self, key: StreamView, each: TopicReader, history: TopicHistory) -> None:
        super().attach(key, each, history)
        self._remember(key, history)

    def _remember(self, key: StreamView, history: TopicHistory) -> None:
        memory = history.memory if isinstance(history, FilteredHistory) else None
        if memory is not None:
            self.memories.setdefault(key, memory)

    def keep_open(self) -> None:
        for tap in (*self,):
            self.push(tap, CachedMessages(partial(_render_position, self.told)))
        super().keep_open()


class FilteredEventSource:
    """Brings what passes of new entries into a room whose keys are taps with sieves."""

    def __init__(
        self,
        whole: EventSource,
        log: EdgeLog,
        workers: ThreadPool,
        sieves: FilterEvaluator,
        metrics: Metrics,
        limit: int = operations.HISTORY_EVENTS,
        load: LoopLoad | None = None,
    ) -> None:
        self.room = FilteredTopic(log.head(), load)
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

    def history(self, tap: StreamView, memory: PluginFilter | None, told: int = START) -> FilteredHistory:
        """The past of a tap, for one listener, who knows what is lost up to a position."""
        stream = self._whole.history(tap.stream, lambda: self.room.place, told)
        return FilteredHistory(tap, memory, stream, self._sieves)

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
                self.room.close(render_reconnect)
                return
            table, reached = cut_at_policy_change(*found, turn)
            # From here on who comes in has had all of this by its history; who is here is among these.
            taps, self.room.place = {*self.room}, reached
            await self._pass(table, taps)
            self.room.settle()
            if turn is not None:
                self._whole.renew(self.room)
            await asyncio.sleep(0)

    def _read(self, after: int, head: int) -> tuple[tuple[pa.Table, int] | None, int | None]:
        found = read_page(self._log, after, head, self._limit)
        return found, None if found is None else self._whole.views.turn(after, found[1])

    async def _pass(self, table: pa.Table, taps: set[StreamView]) -> None:
        memories = self.room.memories
        self.room.memories = {tap: memories[tap] for tap in taps if tap in memories}
        try:
            self._hand_out(await self._sieves.sift(table, taps, self.room.memories))
        except Exception:
            # A filter cannot be shown the same events again: those who listen come back to where they were.
            logger.exception("a pass through sieves failed")
            for tap in taps:
                self.room.finish(tap, render_reconnect)

    def _hand_out(self, sifted: FilterResult) -> None:
        tellings: dict[int, CachedMessages] = {}
        for tap, table in sifted.passed.items():
            left = sifted.undecided.get(tap, ())
            if (table.num_rows or left) and tap in self.room:
                telling = tellings.setdefault(id(table), CachedMessages(partial(render_events, EntryPieces(table))))
                began = now_ns()
                written = self.room.push(
                    tap, CachedMessages(partial(_render_with_undecided, telling, left)) if left else telling
                )
                self._delivered.inc(written)
                if self.traced is not None:
                    self.traced(EntryPieces(table).headers(), began, written)
        for tap, detail in sifted.failed.items():
            self.room.memories.pop(tap, None)
            self.room.finish(tap, partial(_render_failure, detail))


class FilteredHistory:
    """The past of one listener through its own filter. A last message of each step without words tells how far it is:
    little may pass, and whoever comes back begins there."""

    def __init__(
        self, tap: StreamView, memory: PluginFilter | None, stream: StreamHistory, sieves: FilterEvaluator
    ) -> None:
        self.memory = memory
        self._tap = tap
        self.stream = stream
        self._sieves = sieves

    @property
    def least(self) -> int:
        return self.stream.least

    async def step(self, cursor: int, format: MessageFormat) -> tuple[Frames, int]:
        table, reached = await self.stream.page(cursor)
        left: Sequence[int] = ()
        if table.num_rows:
            memories = {} if self.memory is None else {self._tap: self.memory}
            sifted = await self._sieves.sift(table, [self._tap], memories, past=True)
            if self._tap in sifted.failed:
                raise HistoryFailed(sifted.failed[self._tap])
            table, left = sifted.passed[self._tap], sifted.undecided.get(self._tap, ())
        found = await self.stream.written(table, format)
        return _add_position(_add_undecided(found, left, format), reached, format), reached


def _render_with_undecided(telling: CachedMessages, left: Sequence[int], format: MessageFormat) -> Frames:
    return _add_undecided(telling.frames(format), left, format)


def _add_undecided(found: Frames, left: Sequence[int], format: MessageFormat) -> Frames:
    """Messages, and in the place of events that were not decided that it is so."""
    if not left:
        return found
    notices = ((position, undecided_notice(format, position)) for position in left)
    parts = sorted([*zip(found.positions, found.parts, strict=True), *notices])
    return Frames([position for position, _ in parts], [part for _, part in parts])


def _add_position(found: Frames, reached: int, format: MessageFormat) -> Frames:
    if found.positions and found.positions[-1] >= reached:
        return found
    last = _render_position(reached, format)
    return Frames([*found.positions, *last.positions], [*found.parts, *last.parts])


def _render_position(position: int, format: MessageFormat) -> Frames:
    return Frames([position], [format.reached(position)])


def _render_failure(detail: str, listener: ClientState) -> bytes:
    return failed_notice(listener.manner.format, listener.cursor, detail)


# Taps: where who listens to a stream is led, by what of it is asked for.


@dataclass(frozen=True)
class ResolvedStream:
    """A room, what is listened to in it, and its past for one listener."""

    room: LiveTopic[StreamView]
    key: StreamView
    history: TopicHistory


@dataclass(frozen=True)
class StreamResolver:
    """Both feeds of events: whole streams, and what sieves let through, or what is in sight."""

    events: EventSource
    strains: FilteredEventSource
    sieves: FilterEvaluator

    async def sight(self, by: Principal) -> Visibility | None:
        """What somebody sees by what is in force; None is everything."""
        await self.events.rouse()
        return self.events.views.sight(by)

    async def of(
        self, stream: str, query: Iterable[tuple[str, str]], told: int = START, by: Principal = EVERYONE
    ) -> ResolvedStream:
        """For one listener, by the parameters of its address, who knows what is lost up to a position. Raises what
        `sieve_of` and `Sieves.admit` raise."""
        asked, sight = await self.sieves.asked(query), await self.sight(by)
        if asked is None and sight is None:
            whole = self.events.history(stream, told=told)
            self._watch(whole, StreamView(stream), by)
            return ResolvedStream(self.events.room, StreamView(stream), whole)
        sieve, memory = (None, None) if asked is None else await self.sieves.admit(asked)
        tap = StreamView(stream, sieve, sight)
        self.strains.idle()
        history = self.strains.history(tap, memory, told)
        self._watch(history.stream, tap, by)
        return ResolvedStream(self.strains.room, tap, history)

    async def answers(self, stream: str, query: str, told: int = START) -> ResolvedStream:
        """The answers of a continuous query, which are events of a stream. Who may have these has all of them."""
        await self.events.rouse()
        tap = StreamView(stream, query=query)
        self.strains.idle()
        return ResolvedStream(self.strains.room, tap, self.strains.history(tap, None, told))

    def _watch(self, history: StreamHistory, tap: StreamView, by: Principal) -> None:
        """Tell of the past, and then of the present, only as long as it is what somebody sees."""
        self.events.views.enter(tap, by)
        history.watch = partial(self.events.views.check, tap, by)
