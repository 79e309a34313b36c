"""Backfill: the matches of a subscription on events from before it was made.

The result is a pure function of the events and the subscription, so that nothing of it is stored: a client that
resumes gets the same messages again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Final

import pyarrow as pa

from triplewire.http.delivery.replay import find_gap
from triplewire.http.delivery.topics import TopicHistory
from triplewire.http.formats.messages import NO_FRAMES, Frames, MessageFormat, gap_notice
from triplewire.http.formats.notifications import (
    MatchSelector,
    MatchSolutions,
    Renderer,
    SubscriptionPresenter,
    group_matches,
)
from triplewire.http.ports import ThreadPool
from triplewire.matching.evaluator import SINGLE_SINCE, Evaluator, make_single_evaluator, required_predicates
from triplewire.matching.event_history import ColdTier, EventHistory, EventPage
from triplewire.matching.shapes import Shape
from triplewire.model import END, START, Subscription
from triplewire.model.cache import BoundedCache
from triplewire.model.errors import NotFound, Unavailable
from triplewire.storage.log.ports import EdgeLog
from triplewire.storage.registry.ontologies import MatchInterval, past_interval, present_intervals
from triplewire.storage.registry.ports import Registry
from triplewire.storage.registry.security import VisibilityStore
from triplewire.storage.registry.subscriptions import SHAPE, SUBSCRIPTION, subscription_from_change

BACKFILL_EVENTS: Final = 5_000
"""Events that are matched at once for a backfill: some 60 ms of a core, most of which fewer events take, too."""

BACKFILL_EVALUATORS: Final = 8
"""Evaluators of backfills that are kept for the next step: about 20 MB each. Others are made again, in some 50 ms."""

EvaluatorKey = tuple[int, tuple[int, ...]]
Versions = Callable[[], Sequence[Subscription]]

_SELECTORS = (MatchSelector(SINGLE_SINCE, END, None),)


@dataclass(frozen=True)
class BackfillEvaluator:
    """A version of a subscription with its evaluator; for one thread at a time."""

    presenter: SubscriptionPresenter
    evaluator: Evaluator
    predicates: tuple[str, ...]
    """Predicates that every matching event has."""

    def frames(self, entries: pa.Table, format: MessageFormat) -> Frames:
        """Render the notifications of a page of events."""
        if not entries.num_rows:
            return NO_FRAMES
        matches = self.evaluator.match(entries)
        renderer = Renderer(entries, MatchSolutions(matches))
        groups = group_matches(matches, _SELECTORS)
        return next((renderer.frames(self.presenter, each, format) for each in groups), NO_FRAMES)


class SubscriptionBackfill:
    """Matches subscriptions over history, in threads of its own, so that the present does not wait for it."""

    def __init__(
        self,
        log: EdgeLog,
        archive: ColdTier | None,
        registry: Registry,
        threads: ThreadPool,
        limit: int = BACKFILL_EVENTS,
    ) -> None:
        self.events = EventHistory(log, archive)
        self.archive = archive
        self.log = log
        self.registry = registry
        self.threads = threads
        self.limit = limit
        self._visibilities = VisibilityStore(registry)
        self._lock = Lock()
        self._evaluators: BoundedCache[EvaluatorKey, BackfillEvaluator] = BoundedCache(BACKFILL_EVALUATORS)

    def history(self, subscription: Subscription, versions: Versions, present: TopicHistory) -> TopicHistory:
        """Return the backfill followed by the present; the present alone for a subscription without a backfill.
        `versions` returns the versions that are known, with their ends."""
        return present if subscription.begins is None else BackfillHistory(subscription, versions, self, present)

    def read(self, interval: MatchInterval, after: int, end: int, format: MessageFormat) -> tuple[EventPage, Frames]:
        """Read a page of events and match it. Unless it is the last of the interval, the evaluator is kept."""
        key = (interval.version.since, interval.ontologies)
        with self._lock:
            evaluator = self._evaluators.pop(key)
        evaluator = evaluator or self._make_evaluator(interval)
        page = self.events.page(after, end, self.limit, evaluator.predicates)
        frames = evaluator.frames(page.entries, format)
        if page.position < interval.stop - 1:
            with self._lock:
                self._evaluators.put(key, evaluator)
        return page, frames

    def _make_evaluator(self, interval: MatchInterval) -> BackfillEvaluator:
        version = interval.version
        change = self.registry.get(SHAPE, version.shape)
        if change is None or change.value is None:
            raise NotFound(f"the shape {version.shape} of the subscription is not in the registry")
        shape = Shape.from_value(change.value)
        ontologies = [each for at in interval.ontologies for each in self.registry.changes(at - 1, at)]
        newest = self.registry.get(SUBSCRIPTION, version.id)
        now = version if newest is None else subscription_from_change(newest)
        visibilities = [self._visibilities.find(each.visibility) for each in (version, now)]
        return BackfillEvaluator(
            SubscriptionPresenter(version, shape, *visibilities),
            make_single_evaluator(version, shape, ontologies),
            required_predicates(shape),
        )


class BackfillHistory:
    """The backfill of one subscription, up to where it was made, or up to where the log begins, and then its
    present."""

    def __init__(
        self, subscription: Subscription, versions: Versions, backfill: SubscriptionBackfill, present: TopicHistory
    ) -> None:
        self._subscription = subscription
        self._versions = versions
        self._backfill = backfill
        self._present = present
        self._is_done = False
        self._reported: int = START
        """Position up to which all was delivered: events, or that they are lost."""
        self._intervals: tuple[object, list[MatchInterval]] = (None, [])
        """Intervals since it was made; cached, because all changes of the registry may have to be read for them."""

    @property
    def floor(self) -> int:
        return max(self._subscription.made, self._present.floor)

    async def step(self, cursor: int, format: MessageFormat) -> tuple[Frames, int]:
        if not self._is_done:
            step = await self._backfill.threads.run(self._read, cursor, self._versions(), format)
            if step is not None:
                return step
            self._is_done = True
        return await self._present.step(cursor, format)

    def _read(self, cursor: int, versions: Sequence[Subscription], format: MessageFormat) -> tuple[Frames, int] | None:
        """Return the next page of the backfill, and the position that it reaches; None when it is done."""
        begin = END if cursor < self._subscription.made else self._backfill.events.begin()
        interval = self._find_interval(cursor, begin, versions) if begin > cursor + 1 else None
        if interval is None:
            return None
        after = max(cursor, interval.start)
        page, frames = self._backfill.read(interval, after, min(begin, interval.stop) - 1, format)
        position = interval.stop if page.position >= interval.stop - 1 else page.position
        # The position lets a client resume without the same work, and shows whether it is still there.
        return frames.with_position(position, format).with_prefix(self._gap(after, page, format)), position

    def _find_interval(self, cursor: int, begin: int, versions: Sequence[Subscription]) -> MatchInterval | None:
        """Return the interval of the events after the cursor. The outbox has no matches on events that the log has
        trimmed."""
        if cursor < self._subscription.made:
            return past_interval(self._backfill.registry, self._subscription)
        if not versions:
            raise Unavailable("the subscription is not in the cache of this edge any more; reconnect")
        key = (begin, *versions)
        if self._intervals[0] != key:
            self._intervals = (key, [*present_intervals(self._backfill.registry, versions, begin)])
        inside = (each for each in self._intervals[1] if each.stop > cursor + 1 and each.start < begin - 1)
        return next(inside, None)

    def _gap(self, after: int, page: EventPage, format: MessageFormat) -> bytes:
        """Render the gap before a page; nothing if there is none, or it was reported."""
        after, self._reported = max(after, self._reported), page.position
        gap = find_gap(self._backfill.log, self._backfill.archive, after, self._subscription.stream)
        if gap is None or gap.first > page.position:
            return b""
        self._reported = max(self._reported, gap.last)
        return gap_notice(format, after, gap.earliest)
