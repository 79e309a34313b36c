"""The live source of events: new log entries for clients of whole streams, the poller that moves a source, and the
visibility of events under the policy in force.

Where the policy changes what a client sees, events before the change are delivered as they were visible then, and
the
client is sent back to resume under the new policy.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from triplewire.config.metrics import Metrics
from triplewire.config.tracing import Traced, now_ns
from triplewire.http.delivery.channels import CachedMessages, render_events
from triplewire.http.delivery.options import LoopLoad
from triplewire.http.delivery.replay import StreamHistory, TieredHistory
from triplewire.http.delivery.topics import ClientState, HistoryFailed, LiveTopic
from triplewire.http.formats.messages import EntryPieces, closing_notice, policy_changed_notice
from triplewire.http.openapi import operations
from triplewire.http.ports import ChangeWatch, EdgeLog, ThreadPool
from triplewire.http.stream_filters.parameters import StreamView
from triplewire.model import START
from triplewire.security import Principal, PublishPermit, Verb, Visibility, publish_permit_of, visibility_of
from triplewire.storage.registry.security import NO_POLICY, PolicyStore, PolicyVersion

VIEWERS: Final = 10_000
"""Different callers that are told apart among those who listen to the same: at most 10 MB. Where there are more, all of
them come in again when the policy changes, whether they see something else or not."""

RETRY_MILLISECONDS: Final = 500
"""When those that are sent away because an edge stops are to come back: another is there at once, as a rule."""

TAIL_SECONDS: Final = 0.015
"""Between two looks of an edge at an outbox; it is added to the delay of a notification."""

LATEST_STREAMS: Final = 10_000
"""Streams whose last event is known by its id, so that listeners can be moved: some 3 MB."""


# Views: what those who listen here see, by the policy as it is in force.
#
# A listener is told by what it saw when it came. Where the policy changes that, what comes before the change is told
# as it was, and then all who listen to the same are sent back to where they are, to come in again by the new policy.


class VisibilityChanged(HistoryFailed):
    """A listener no longer sees what it is told: it is to come back."""

    def __init__(self) -> None:
        super().__init__("the policy has changed")

    def last(self, listener: ClientState) -> bytes:
        return render_policy_change(listener)


def render_policy_change(listener: ClientState) -> bytes:
    """The last message of those who see something else from now on."""
    return policy_changed_notice(listener.manner.format, listener.cursor, RETRY_MILLISECONDS)


class VisibilityCache:
    """The policy as it is known here, and who listens. Any thread may look; the rest is for the event loop."""

    def __init__(self, policies: PolicyStore | None = None) -> None:
        """Without policies everybody sees what is granted to them."""
        self._policies = policies
        self._known = NO_POLICY
        self._viewers: dict[StreamView, set[Principal] | None] = {}
        """Who listens to a tap, or has; None for too many to be told apart."""

    def look(self) -> PolicyVersion:
        """What is in force. It reads, in some microseconds, as long as nothing changes."""
        if self._policies is not None:
            self._known = self._policies.current()
        return self._known

    def turn(self, after: int, upto: int) -> int | None:
        """The first position p with `after < p <= upto` at which the policy changes."""
        if self.look().version <= after or self._policies is None:
            return None
        turns = list[int]()
        for each in self._policies.versions():
            if each.version <= after:
                break
            turns.append(each.version)
        return next((each for each in reversed(turns) if each <= upto), None)

    def sight(self, principal: Principal) -> Visibility | None:
        """What somebody sees of streams, by what is known. None is everything."""
        return visibility_of(principal, Verb.CONSUME, self._known.policy)

    def permit(self, principal: Principal) -> PublishPermit | None:
        """What somebody may publish, by what is in force. None is everything."""
        return publish_permit_of(principal, self.look().policy)

    def enter(self, tap: StreamView, principal: Principal) -> None:
        """Somebody is about to listen."""
        if len(self._viewers) > VIEWERS:
            # Who is not known any more comes in again at the next change.
            self._viewers.clear()
        here = self._viewers.setdefault(tap, set())
        if here is not None:
            here.add(principal)
            if len(here) > VIEWERS:
                self._viewers[tap] = None

    def check(self, tap: StreamView, principal: Principal) -> None:
        """Raises Renewed where somebody does not see any more what a tap shows."""
        if self.sight(principal) != tap.sight:
            raise VisibilityChanged

    def outdated(self, taps: Iterable[StreamView]) -> list[StreamView]:
        """Those among the taps that somebody may listen to who sees something else by now."""
        return [tap for tap in taps if self._differs(tap)]

    def _differs(self, tap: StreamView) -> bool:
        here = self._viewers.get(tap)
        return here is None or any(self.sight(each) != tap.sight for each in here)


# Latest: the last event of each stream that was handed out, by which a listener is found its place at another edge.


class LatestEventIds:
    """Positions differ from edge to edge, ids of events do not. Nothing is kept while nobody is to be moved."""

    def __init__(self) -> None:
        self._wanted = False
        self._events: dict[str, str] = {}

    def want(self, wanted: bool) -> None:
        """Whether to keep anything from now on."""
        if not wanted:
            self.forget()
        self._wanted = wanted

    def note(self, entries: pa.Table) -> None:
        """Entries that are handed out now, in order."""
        if not self._wanted:
            return
        last = dict(zip(entries["stream"].to_pylist(), entries["event"].to_pylist(), strict=True))
        for stream in last:
            self._events.pop(stream, None)
        self._events |= last
        while len(self._events) > LATEST_STREAMS:
            del self._events[next(iter(self._events))]

    def forget(self) -> None:
        """Some were passed over, and nobody knows which."""
        self._events.clear()

    def of(self, stream: str) -> str | None:
        """The id; None where it is not known."""
        return self._events.get(stream)


class EventSource:
    """Brings new entries into a room whose keys are taps of whole streams."""

    def __init__(
        self,
        backlog: TieredHistory,
        workers: ThreadPool,
        historians: ThreadPool,
        metrics: Metrics,
        limit: int = operations.HISTORY_EVENTS,
        load: LoopLoad | None = None,
        views: VisibilityCache | None = None,
    ) -> None:
        """What takes long, of those who come from far back, is read by `historians`."""
        self.views = views or VisibilityCache()
        self.room: LiveTopic[StreamView] = LiveTopic(backlog.log.head(), load)
        self._backlog = backlog
        self._memories = backlog.memories
        self._workers = workers
        self._historians = historians
        self._delivered = metrics.delivered.labels("event")
        self._limit = limit
        self.latest = LatestEventIds()
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
                self.room.close(render_reconnect)
                return
            table, self.room.place = cut_at_policy_change(*found, turn)
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

    def renew(self, room: LiveTopic[StreamView]) -> None:
        """Send those back who see something else from here on."""
        for tap in self.views.outdated([*room]):
            room.finish(tap, render_policy_change)

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
        found = read_page(self._backlog.log, after, head, self._limit)
        return mark, found, None if found is None else self.views.turn(after, found[1])

    def _parts(self, table: pa.Table) -> dict[str, pa.Table]:
        """By streams that are listened to, or remembered for those who come back."""
        present = pc.unique(table.column("stream")).to_pylist()
        wanted = [each for each in present if each in self._memories or StreamView(each) in self.room]
        return {each: _select_stream(table, each, len(present)) for each in wanted}

    def _push(self, parts: Mapping[str, pa.Table]) -> None:
        for stream, table in parts.items():
            tap = StreamView(stream)
            if tap in self.room:
                pieces, began = EntryPieces(table), now_ns()
                written = self.room.push(tap, CachedMessages(partial(render_events, pieces)))
                self._delivered.inc(written)
                if self.traced is not None:
                    self.traced(pieces.headers(), began, written)


def read_page(log: EdgeLog, after: int, upto: int, limit: int) -> tuple[pa.Table, int] | None:
    """Some entries, and the position up to which they are all there are; None where the log has let some of them go
    before they were told. Those who listen then come back, and are led through the past."""
    table = log.read(after, upto, limit)
    if log.gone() > after:
        return None
    return table, upto if table.num_rows < limit else table.column("position")[-1].as_py()


def cut_at_policy_change(table: pa.Table, reached: int, turn: int | None) -> tuple[pa.Table, int]:
    """What comes of a page before the policy changes, if it does."""
    return (table, reached) if turn is None else (table.filter(pc.less(table["position"], turn)), turn)


def render_reconnect(listener: ClientState) -> bytes:
    """The last message of those whose feed was left behind."""
    return closing_notice(listener.manner.format, listener.cursor, RETRY_MILLISECONDS)


def _select_stream(table: pa.Table, stream: str, present: int) -> pa.Table:
    return table if present == 1 else table.filter(pc.equal(table.column("stream"), stream))


# Tails: background tasks that look whether a source has something new and hand it on.

_RETRY_SECONDS = 1.0

_SHORTEST_SECONDS = 0.003
"""Between two steps, however often it is woken: many small publishes then share one step."""

logger = logging.getLogger(__name__)


class Poller:
    """Takes a step whenever its source changed or it is woken. A step that fails is taken again a little later."""

    def __init__(
        self,
        watch: ChangeWatch,
        step: Callable[[], Awaitable[None]],
        metrics: Metrics,
        interval: float = TAIL_SECONDS,
    ) -> None:
        self._watch = watch
        self._step = step
        self._metrics = metrics
        self._interval = interval
        self._woken = True
        self._bell: asyncio.Future[None] | None = None

    def wake(self) -> None:
        """Take a step now: the caller knows that there is something new."""
        self._woken = True
        self._ring()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            pause = self._interval
            if self._watch.changed() or self._woken:
                self._woken = False
                pause = await self._take_step()
            if self._woken and pause <= self._interval:
                await asyncio.sleep(_SHORTEST_SECONDS)
            else:
                await self._pause(pause)

    async def _take_step(self) -> float:
        try:
            await self._step()
        except Exception:
            # Whatever failed, listeners stay: the next step starts where the last good one ended.
            logger.exception("a step failed and will be taken again")
            self._metrics.stumbles.inc()
            self._woken = True
            return _RETRY_SECONDS
        return self._interval

    async def _pause(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        self._bell = loop.create_future()
        timer = loop.call_later(seconds, self._ring)
        try:
            await self._bell
        finally:
            timer.cancel()

    def _ring(self) -> None:
        if self._bell is not None and not self._bell.done():
            self._bell.set_result(None)
