"""The live source of events: new log entries for clients of whole streams, and the visibility of events under the
policy in force.

Where the policy changes what a client sees, events before the change are delivered as they were visible then, and
the
client is sent back to resume under the new policy.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from triplewire.config.metrics import Metrics
from triplewire.config.tracing import Traced, now_ns
from triplewire.http.delivery.channels import CachedMessages, render_events
from triplewire.http.delivery.replay import StreamHistory, TieredHistory
from triplewire.http.delivery.topics import HistoryFailed, Key, LiveTopic
from triplewire.http.formats.messages import EDGE_STOPS, POLICY_CHANGED, EntryPieces
from triplewire.http.openapi.operations import HISTORY_EVENTS
from triplewire.http.ports import ThreadPool
from triplewire.http.stream_filters.parameters import StreamView
from triplewire.model import START
from triplewire.model.cache import BoundedCache
from triplewire.security import Principal, PublishPermit, Verb, Visibility, publish_permit_of, visibility_of
from triplewire.storage.log.ports import EdgeLog
from triplewire.storage.registry.security import NO_POLICY, PolicyStore, PolicyVersion

VIEWERS: Final = 10_000
"""Principals that are told apart among the clients of one stream view: at most 10 MB. Where there are more, all of
them are sent back when the policy changes, whether their visibility changes or not."""

LATEST_STREAMS: Final = 10_000
"""Streams whose last event is known by its id, so that clients can be moved to another edge: some 3 MB."""


class VisibilityCache:
    """The policy in force, and the principals that listen to each stream view. `refresh` may be called in any thread,
    the rest on the event loop."""

    def __init__(self, policies: PolicyStore | None = None) -> None:
        """Without policies every principal sees what is granted to it."""
        self._policies = policies
        self._known = NO_POLICY
        self._viewers: dict[StreamView, set[Principal] | None] = {}
        """Principals that listen to a view, or did; None for too many to be told apart."""

    def refresh(self) -> PolicyVersion:
        """Return the policy in force. It takes some microseconds while nothing changes."""
        if self._policies is not None:
            self._known = self._policies.current()
        return self._known

    def find_change(self, after: int, end: int) -> int | None:
        """Return the first position p with `after < p <= end` at which the policy changes."""
        if self.refresh().version <= after or self._policies is None:
            return None
        changes = list[int]()
        for each in self._policies.versions():
            if each.version <= after:
                break
            changes.append(each.version)
        return next((each for each in reversed(changes) if each <= end), None)

    def visibility(self, principal: Principal) -> Visibility | None:
        """Return what a principal sees of streams by the policy that is known; None is everything."""
        return visibility_of(principal, Verb.CONSUME, self._known.policy)

    def permit(self, principal: Principal) -> PublishPermit | None:
        """Return what a principal may publish by the policy in force; None is everything."""
        return publish_permit_of(principal, self.refresh().policy)

    def enter(self, view: StreamView, principal: Principal) -> None:
        """Note a client that is about to listen."""
        if len(self._viewers) > VIEWERS:
            # Clients that are not known any more are sent back at the next change.
            self._viewers.clear()
        here = self._viewers.setdefault(view, set())
        if here is not None:
            here.add(principal)
            if len(here) > VIEWERS:
                self._viewers[view] = None

    def check(self, view: StreamView, principal: Principal) -> None:
        """Raises HistoryFailed where a principal does not see any more what a view shows."""
        if self.visibility(principal) != view.visibility:
            raise HistoryFailed(POLICY_CHANGED)

    def outdated(self, views: Iterable[StreamView]) -> list[StreamView]:
        """Return the views that may have a client whose visibility has changed."""
        return [view for view in views if self._is_outdated(view)]

    def _is_outdated(self, view: StreamView) -> bool:
        here = self._viewers.get(view)
        return here is None or any(self.visibility(each) != view.visibility for each in here)


class LatestEventIds:
    """The last delivered event of each stream, from which a client resumes at another edge: positions differ from edge
    to edge, ids of events do not. Nothing is kept while no client is to be moved."""

    def __init__(self) -> None:
        self._enabled = False
        self._events: BoundedCache[str, str] = BoundedCache(LATEST_STREAMS)

    def enable(self, enabled: bool) -> None:
        if not enabled:
            self.clear()
        self._enabled = enabled

    def note(self, entries: pa.Table) -> None:
        """Note entries that are delivered now, in order."""
        if not self._enabled:
            return
        last = dict(zip(entries["stream"].to_pylist(), entries["event"].to_pylist(), strict=True))
        for stream, event in last.items():
            self._events.put(stream, event)

    def clear(self) -> None:
        """Forget all ids, since events were skipped."""
        self._events.clear()

    def get(self, stream: str) -> str | None:
        return self._events.get(stream)


@dataclass(frozen=True)
class SourceContext:
    """The parts that live sources share: threads to read in, metrics, spans, and the size of a step."""

    threads: ThreadPool
    metrics: Metrics
    traced: Traced | None = None
    limit: int = HISTORY_EVENTS

    def push(self, topic: LiveTopic[Key], key: Key, messages: CachedMessages, pieces: EntryPieces) -> None:
        """Give events to the clients of a key, count them and trace them."""
        began = now_ns()
        written = topic.push(key, messages)
        self.metrics.delivered.labels("event").inc(written)
        if self.traced is not None:
            self.traced(pieces.extensions(), began, written)


@dataclass(frozen=True)
class EntryPage:
    """New entries, and the position up to which these are all. At `policy_change`, if there is one, they end."""

    entries: pa.Table
    position: int
    policy_change: int | None
    erasure: int = START
    """Erasures that were known before it was read, for the replay cache."""


class LogEventSource:
    """Moves a topic of stream views along the log, step by step."""

    def __init__(
        self, topic: LiveTopic[StreamView], log: EdgeLog, visibility: VisibilityCache, context: SourceContext
    ) -> None:
        self.topic = topic
        self.visibility = visibility
        self._log = log
        self._context = context

    async def step(self) -> None:
        """Bring the topic to the head of the log. Nothing is read while no client needs it."""
        head = await self._context.threads.run(self.head)
        while self.topic.position < head and not self.skip(head):
            after = self.topic.position
            page = await self._context.threads.run(self._read, after, head)
            if self.topic.position != after:
                # All clients had left, and one came that needs nothing of this.
                continue
            if page is None:
                self.topic.position = head
                self.topic.close(EDGE_STOPS)
                return
            await self._deliver(page, after)
            self.topic.settle()
            if page.policy_change is not None:
                self._send_outdated_back()
            await asyncio.sleep(0)

    def head(self) -> int:
        """Return the newest position. Every change of the policy up to there is known from then on."""
        head = self._log.head()
        self.visibility.refresh()
        return head

    def skip(self, head: int) -> bool:
        """Move the topic on without reading if no client needs the entries; return whether it did."""
        raise NotImplementedError

    async def _deliver(self, page: EntryPage, after: int) -> None:
        """Move the topic's position to the end of the page and give its entries to clients."""
        raise NotImplementedError

    def _read(self, after: int, head: int) -> EntryPage | None:
        """Read a page; None where retention has removed entries before they were delivered: clients then reconnect and
        go through history."""
        entries = self._log.read(after, head, self._context.limit)
        if self._log.floor() > after:
            return None
        position = head if entries.num_rows < self._context.limit else entries.column("position")[-1].as_py()
        change = self.visibility.find_change(after, position)
        if change is None:
            return EntryPage(entries, position, None)
        return EntryPage(entries.filter(pc.less(entries["position"], change)), change, change)

    def _send_outdated_back(self) -> None:
        for view in self.visibility.outdated([*self.topic]):
            self.topic.finish(view, POLICY_CHANGED)


class EventSource(LogEventSource):
    """Brings new entries into a topic whose keys are views of whole streams."""

    def __init__(
        self,
        history: TieredHistory,
        history_threads: ThreadPool,
        context: SourceContext,
        topic: LiveTopic[StreamView] | None = None,
        visibility: VisibilityCache | None = None,
    ) -> None:
        """Clients that come from far back read in `history_threads`, so that others do not wait for them."""
        topic = LiveTopic(history.log.head()) if topic is None else topic
        super().__init__(topic, history.log, visibility or VisibilityCache(), context)
        self.latest = LatestEventIds()
        self._history = history
        self._recent = history.recent_events
        self._history_threads = history_threads

    async def prepare(self) -> None:
        """Be ready for a new client: a topic without clients skips to the head, which history then leads to."""
        self.skip(await self._context.threads.run(self.head))

    def history(
        self,
        stream: str,
        position: Callable[[], int] | None = None,
        known_loss: int = START,
        check: Callable[[], None] = lambda: None,
    ) -> StreamHistory:
        """Return the history of a stream up to a position, by default that of the topic, for a client that knows what
        is lost up to `known_loss`. `check` raises HistoryFailed when it may not go on."""
        end = position or (lambda: self.topic.position)
        threads = (self._context.threads, self._history_threads)
        return StreamHistory(stream, self._history, threads, end, self._context.limit, known_loss, check)

    def skip(self, head: int) -> bool:
        if not self.topic.is_empty or len(self._recent):
            return False
        self.topic.position = head
        self.latest.clear()
        self.topic.settle()
        return True

    def _read(self, after: int, head: int) -> EntryPage | None:
        erasure = self._recent.check_erasures()
        page = super()._read(after, head)
        return None if page is None else EntryPage(page.entries, page.position, page.policy_change, erasure)

    async def _deliver(self, page: EntryPage, after: int) -> None:
        self.topic.position = page.position
        self.latest.note(page.entries)
        parts = dict(self._split(page.entries))
        self._recent.keep(parts, after, page.position, page.erasure, {view.stream for view in self.topic})
        for stream, entries in parts.items():
            view = StreamView(stream)
            if view in self.topic:
                pieces = EntryPieces(entries)
                self._context.push(self.topic, view, CachedMessages(partial(render_events, pieces)), pieces)

    def _split(self, entries: pa.Table) -> Sequence[tuple[str, pa.Table]]:
        """Split entries by stream; only those with clients, or in the replay cache."""
        present = pc.unique(entries.column("stream")).to_pylist()
        wanted = [each for each in present if each in self._recent or StreamView(each) in self.topic]
        if len(present) == 1:
            return [(each, entries) for each in wanted]
        return [(each, entries.filter(pc.equal(entries.column("stream"), each))) for each in wanted]
