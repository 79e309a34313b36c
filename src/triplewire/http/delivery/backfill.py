"""Backfill: the matches of a subscription on events from before it was made.

The result is a pure function of the events and the subscription, so that nothing of it is stored: a client that
resumes gets the same messages again.
"""

from __future__ import annotations

from collections import OrderedDict
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
from triplewire.http.ports import EdgeLog, ThreadPool
from triplewire.matching.evaluator import SINGLE_SINCE, Evaluator, make_single_evaluator, required_predicates
from triplewire.matching.event_history import ColdTier, EventHistory, EventPage
from triplewire.matching.shapes import Shape
from triplewire.model import END, START, Subscription
from triplewire.model.errors import NotFound, Unavailable
from triplewire.storage.registry.ontologies import MatchInterval, past_interval, present_intervals
from triplewire.storage.registry.ports import Registry
from triplewire.storage.registry.security import VisibilityStore
from triplewire.storage.registry.subscriptions import SHAPE, SUBSCRIPTION, subscription_from_change

PAST_EVENTS: Final = 5_000
"""Events that are matched at once for a subscription that asks for the past: some 60 ms of a core, most of which are
taken for fewer, too."""

PASTS_REMEMBERED: Final = 8
"""Subscriptions whose past is being read that are kept ready for the next step: about 20 MB each. Others are made ready
again, in some 50 ms."""


EvaluatorKey = tuple[int, tuple[int, ...]]
Versions = Callable[[], Sequence[Subscription]]

_SELECTORS = (MatchSelector(SINGLE_SINCE, END, None),)


@dataclass(frozen=True)
class BackfillEvaluator:
    """A subscription as it was made, and what asks for it; of one thread at a time."""

    shown: SubscriptionPresenter
    evaluator: Evaluator
    predicates: tuple[str, ...]
    """What an event surely has if it matches."""

    def frames(self, entries: pa.Table, format: MessageFormat) -> Frames:
        """The notifications of a page of events."""
        if not entries.num_rows:
            return NO_FRAMES
        matches = self.evaluator.match(entries)
        speaker = Renderer(entries, MatchSolutions(matches))
        told = [speaker.frames(self.shown, each, format) for each in group_matches(matches, _SELECTORS)]
        return told[0] if told else NO_FRAMES


class SubscriptionBackfill:
    """Reads the past of subscriptions, in threads of its own, so that the present does not wait for it."""

    def __init__(
        self,
        log: EdgeLog,
        archive: ColdTier | None,
        registry: Registry,
        workers: ThreadPool,
        limit: int = PAST_EVENTS,
    ) -> None:
        self.chronicle = EventHistory(log, archive)
        self.archive = archive
        self.log = log
        self.registry = registry
        self.workers = workers
        self.limit = limit
        self._sights = VisibilityStore(registry)
        self._turn = Lock()
        self._ready: OrderedDict[EvaluatorKey, BackfillEvaluator] = OrderedDict()

    def history(self, subscription: Subscription, versions: Versions, present: TopicHistory) -> TopicHistory:
        """What comes before the present, and then that; the present alone of one that does not look back. `versions`
        tells of the subscription's versions that are known, with their ends."""
        return present if subscription.begins is None else BackfillHistory(subscription, versions, self, present)

    def read(self, stretch: MatchInterval, after: int, upto: int, format: MessageFormat) -> tuple[EventPage, Frames]:
        """A page of events, and the notifications of it. Unless it is the last of the stretch, what asks is kept ready
        for the next."""
        key = (stretch.version.since, stretch.ontologies)
        with self._turn:
            asker = self._ready.pop(key, None)
        asker = asker or self._asker(stretch)
        page = self.chronicle.page(after, upto, self.limit, asker.predicates)
        frames = asker.frames(page.entries, format)
        if page.reached < stretch.stop - 1:
            self._keep(key, asker)
        return page, frames

    def _newest(self, version: Subscription) -> Subscription:
        change = self.registry.get(SUBSCRIPTION, version.id)
        return version if change is None else subscription_from_change(change)

    def _keep(self, key: EvaluatorKey, asker: BackfillEvaluator) -> None:
        with self._turn:
            self._ready[key] = asker
            while len(self._ready) > PASTS_REMEMBERED:
                self._ready.popitem(last=False)

    def _asker(self, stretch: MatchInterval) -> BackfillEvaluator:
        version = stretch.version
        change = self.registry.get(SHAPE, version.shape)
        if change is None or change.value is None:
            raise NotFound(f"the shape {version.shape} of the subscription is not in the registry")
        shape = Shape.from_value(change.value)
        ontologies = [each for at in stretch.ontologies for each in self.registry.changes(at - 1, at)]
        then, now = self._sights.find(version.sight), self._sights.find(self._newest(version).sight)
        return BackfillEvaluator(
            SubscriptionPresenter(version, shape, then, now),
            make_single_evaluator(version, shape, ontologies),
            required_predicates(shape),
        )


class BackfillHistory:
    """The past of one subscription, up to where it was made, or up to where the log begins, and then its present."""

    def __init__(
        self, subscription: Subscription, versions: Versions, pasts: SubscriptionBackfill, present: TopicHistory
    ) -> None:
        self._subscription = subscription
        self._versions = versions
        self._pasts = pasts
        self._present = present
        self._over = False
        self._told: int = START
        """The position up to which all was told: events, or that they are lost."""
        self._stretches: tuple[object, list[MatchInterval]] = (None, [])
        """Since it was made; remembered, because all of the registry's changes may have to be looked through."""

    @property
    def least(self) -> int:
        return max(self._subscription.made, self._present.least)

    async def step(self, cursor: int, format: MessageFormat) -> tuple[Frames, int]:
        if not self._over:
            told = await self._pasts.workers.run(self._read, cursor, self._versions(), format)
            if told is not None:
                return told
            self._over = True
        return await self._present.step(cursor, format)

    def _read(self, cursor: int, versions: Sequence[Subscription], format: MessageFormat) -> tuple[Frames, int] | None:
        """The next page of the past, and how far it is; None where the past is over."""
        begin = END if cursor < self._subscription.made else self._pasts.chronicle.begin()
        stretch = self._stretch(cursor, begin, versions) if begin > cursor + 1 else None
        if stretch is None:
            return None
        after = max(cursor, stretch.start)
        page, found = self._pasts.read(stretch, after, min(begin, stretch.stop) - 1, format)
        reached = stretch.stop if page.reached >= stretch.stop - 1 else page.reached
        return _add_position(found, reached, self._gap(after, page, format), format), reached

    def _stretch(self, cursor: int, begin: int, versions: Sequence[Subscription]) -> MatchInterval | None:
        """The stretch in which the events after the cursor are. What the log has let go is not in the outbox either."""
        if cursor < self._subscription.made:
            return past_interval(self._pasts.registry, self._subscription)
        if not versions:
            raise Unavailable("the subscription was forgotten here meanwhile; come back")
        key = (begin, *versions)
        if self._stretches[0] != key:
            self._stretches = (key, [*present_intervals(self._pasts.registry, versions, begin)])
        inside = (each for each in self._stretches[1] if each.stop > cursor + 1 and each.start < begin - 1)
        return next(inside, None)

    def _gap(self, after: int, page: EventPage, format: MessageFormat) -> bytes:
        """That neither lake nor log has events before those of a page, where it is so and was not told."""
        after, self._told = max(after, self._told), page.reached
        found = find_gap(self._pasts.log, self._pasts.archive, after, self._subscription.stream)
        if found is None or found.first > page.reached:
            return b""
        self._told = max(self._told, found.last)
        return gap_notice(format, after, found.earliest)


def _add_position(found: Frames, reached: int, first: bytes, format: MessageFormat) -> Frames:
    """Messages with what is to be told before them. A last one without words says how far this is: whoever comes back
    does not have to wait for the same again, and who is gone is noticed."""
    positions, parts = [*found.positions], [*found.parts]
    if not positions or positions[-1] < reached:
        positions.append(reached)
        parts.append(format.reached(reached))
    parts[0] = first + parts[0]
    return Frames(positions, parts)
