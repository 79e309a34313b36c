"""Standings: a query with windows, and how far it has come.

```
          told                        closes in this turn          not yet
──────────────────────────┬──────────────────────────────────┬──────────────▶ instants
                       frontier        t      t      t     reached
```

At each instant t at which one of its windows closes the query is asked once, of what each of its windows shows then:
the newest window that closed at t or before. Where no event entered or left any of them since the instant before,
the
same is told again, or nothing where only differences are told.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import numpy as np

from triplewire.config import limits
from triplewire.model.events import END
from triplewire.model.subscriptions import ContinuousQuery, LatePolicy, ReportStrategy, TimeDomain
from triplewire.ongoing.places import Turn
from triplewire.ongoing.windows.clocks import SECOND, Arrivals, Sighting, Watermark
from triplewire.ongoing.windows.counts import Counting
from triplewire.ongoing.windows.instants import Arrived, Events, Instant
from triplewire.ongoing.windows.panes import Pane, TimePane
from triplewire.ongoing.windows.plans import Plan
from triplewire.ongoing.windows.queues import CountPane, SessionPane
from triplewire.ongoing.windows.revisions import Revisions
from triplewire.ongoing.windows.spans import Sliding
from triplewire.ongoing.windows.timelines import Timeline
from triplewire.ongoing.windows.views import Showing, View, changing, nearest, newest
from triplewire.sparql import WindowClause

Timelines = Mapping[str, Timeline]
"""By streams, all of the clock that the query goes by."""

_NEVER = Instant(END, END)


class Standing:
    """Given the same events and turns it shows the same, whatever the answers are."""

    def __init__(self, query: ContinuousQuery, plan: Plan, timelines: Timelines) -> None:
        self.query, self.plan = query, plan
        self.dropped = 0
        """Events that came too late to count for any window."""
        self.last: View | None = None
        """What windows showed when the last of them closed."""
        self._timelines = timelines
        self._panes = tuple(_pane(each, timelines[each.stream], query.since) for each in plan.windows)
        self._begun: Instant | None = None
        self._frontier: Instant | None = None
        self._watermark: Watermark | None = None
        self._revisions = self._revising()
        # Where a query asks for the time, the same contents may have another answer.
        self._silent = plan.report is not ReportStrategy.ALL and not plan.timed

    def _revising(self) -> Revisions | None:
        panes = [each for each in self._panes if isinstance(each, TimePane)]
        if self.query.late is not LatePolicy.REVISE or len(panes) < len(self._panes):
            return None
        return Revisions(panes, differences=self.plan.report is not ReportStrategy.ALL)

    @property
    def weight(self) -> int:
        """How many triples are kept for it."""
        return sum(int(each.needed().sizes.sum()) for each in self._panes)

    def needed(self) -> Iterator[tuple[str, Events]]:
        """The events that must be kept for it, with their streams."""
        return ((clause.stream, pane.needed()) for clause, pane in self._paired())

    def take(self, arrived: Mapping[str, Arrived], turn: Turn) -> None:
        """What a batch brought. Its timelines have it already."""
        since = self.query.since
        fresh = {name: each for name, some in arrived.items() if len((each := some.above(since)).positions)}
        if self.query.time is TimeDomain.EVENT:
            self._see(fresh, turn)
        elif self._frontier is None:
            self._begin(fresh, turn)
        for name, each in fresh.items():
            self._offer(name, each.by(self.query.time))

    def _see(self, fresh: Mapping[str, Arrived], turn: Turn) -> None:
        if self._watermark is None:
            self._watermark = self._fresh_watermark(min(self.query.created or turn.now, turn.now))
        self._watermark.see({name: Sighting.of(each.times, each.received) for name, each in fresh.items()})
        self._watermark.advance(turn.now)

    def _fresh_watermark(self, begun: int) -> Watermark:
        return Watermark(self.plan.streams, int(self.query.lateness * SECOND), begun)

    def _begin(self, fresh: Mapping[str, Arrived], turn: Turn) -> None:
        """By arrival, those windows are told that close after the query was registered."""
        moments = (int(each.arrivals[0]) for each in fresh.values())
        self._begun = Instant(min(self.query.created or turn.now, turn.now, *moments), self.query.since)
        self._frontier = self._begun

    def _offer(self, stream: str, events: Events) -> None:
        panes = [pane for clause, pane in self._paired() if clause.stream == stream]
        if self._revisions is not None and self._frontier is not None and self._begun is not None:
            for pane in panes:
                assert isinstance(pane, TimePane)
                self._revisions.late(pane, events, self._begun, self._frontier)
        taken = [pane.take(events, self._frontier) for pane in panes]
        held, lost = (np.stack(masks) for masks in zip(*taken, strict=True))
        self.dropped += int((lost.any(axis=0) & ~(held & ~lost).any(axis=0)).sum())

    def showings(self, arrived: int | None, turn: Turn) -> Iterator[Showing]:
        """What is to be told in a turn, in order; those that were told before come first. `arrived` is up to where
        arrival time has come."""
        reached = self._reached(arrived, turn)
        left = limits.WINDOWS_TOLD
        if self._revisions is not None and self._begun is not None:
            for showing in self._revisions.showings(self._begun, turn.upto, left):
                left -= 1
                yield showing
        if reached is not None and self._started(reached):
            yield from self._closing(reached, turn.upto, left)
        if self._revisions is not None and self._frontier is not None:
            self._revisions.closed(self._frontier, turn.upto)

    def due(self, now: int) -> int | None:
        """When, after a turn, there may be more to tell though nothing more comes; None where that is never."""
        if self._revisions is not None and self._revisions.due:
            return now
        if self._frontier is None:
            return None if self._watermark is None else self._watermark.due(0, now)
        instant = nearest(self._panes, self._frontier)
        if instant is None:
            return None
        if self._watermark is None:
            return max(now, Arrivals.due(instant.moment))
        return now if Instant(self._watermark.reached or 0) >= instant else self._watermark.due(instant.moment, now)

    def _reached(self, arrived: int | None, turn: Turn) -> Instant | None:
        if self.query.time is TimeDomain.ARRIVAL:
            return None if arrived is None else Instant(arrived, turn.upto)
        moment = None if self._watermark is None else self._watermark.reached
        return None if moment is None else Instant(moment)

    def _started(self, reached: Instant) -> bool:
        """By event time, the first windows are those of the oldest event, once the watermark is past it."""
        if self._frontier is None:
            known = (self._timelines[name].events.above(self.query.since) for name in self.plan.streams)
            first = min((each.instant(0).moment for each in known if len(each)), default=END)
            if first < reached.moment:
                self._begun = self._frontier = Instant(first)
        return self._frontier is not None

    def _closing(self, reached: Instant, upto: int, left: int) -> Iterator[Showing]:
        """So many instants at most; the others come in the next turn."""
        assert self._frontier is not None
        while left > 0:
            first = nearest(self._panes, self._frontier)
            if first is None or first > reached:
                self._frontier = max(reached, self._frontier)
                return
            change = changing(self._panes, self._frontier) or _NEVER
            if self.last is None or change <= first:
                left -= 1
                yield self._show(first, upto)
                continue
            # Nothing entered or left: what is told most of all is what came last.
            end = min(change, Instant(reached.moment, reached.position + 1))
            for instant in [] if self._silent else self._newest(first, end, left):
                left -= 1
                yield self._show(instant, upto)
            self._move(newest(self._panes, end), upto)

    def _newest(self, first: Instant, end: Instant, most: int) -> list[Instant]:
        """The last instants from one on, and before an end, at which a window closes."""

        def backwards() -> Iterator[Instant]:
            instant = newest(self._panes, end)
            while instant >= first:
                yield instant
                instant = newest(self._panes, instant)

        return list(islice(backwards(), most))[::-1]

    def _show(self, instant: Instant, upto: int) -> Showing:
        before = self.last
        if before is not None and self._revisions is not None:
            before = self._revisions.view(before.instant, upto)
        return Showing(self._move(instant, upto), before)

    def _move(self, instant: Instant, upto: int) -> View:
        for pane in self._panes:
            pane.move(instant, upto)
        self._frontier = instant
        self.last = self._view(instant, upto)
        return self.last

    def _view(self, instant: Instant, upto: int) -> View:
        if self._revisions is not None:
            return self._revisions.view(instant, upto)
        return View(instant, tuple(pane.shown for pane in self._panes))

    def _paired(self) -> Iterator[tuple[WindowClause, Pane]]:
        return zip(self.plan.windows, self._panes, strict=True)

    def state(self) -> dict[str, Any]:
        """As JSON, beside the events themselves."""
        return {
            "dropped": self.dropped,
            "begun": self._begun and [*self._begun],
            "frontier": self._frontier and [*self._frontier],
            "last": self.last and [*self.last.instant],
            "watermark": self._watermark and self._watermark.state(),
            "revisions": self._revisions and self._revisions.state(),
            "panes": [pane.state() for pane in self._panes],
        }

    def restore(self, state: Mapping[str, Any], upto: int) -> None:
        """Be as another was at the end of a turn. Its timelines have the events that were kept."""
        self.dropped = state["dropped"]
        self._begun, self._frontier, last = (
            None if state[name] is None else Instant(*state[name]) for name in ("begun", "frontier", "last")
        )
        if state["watermark"] is not None:
            self._watermark = self._fresh_watermark(0)
            self._watermark.restore(state["watermark"])
        if self._revisions is not None:
            self._revisions.restore(state["revisions"])
        for (clause, pane), each in zip(self._paired(), state["panes"], strict=True):
            pane.restore(each, self._timelines[clause.stream].events)
        self.last = None if last is None else self._view(last, upto)


def _pane(clause: WindowClause, timeline: Timeline, since: int) -> Pane:
    match clause.kind:
        case "time":
            return TimePane(Sliding(clause.range, clause.step), timeline, since)
        case "count":
            return CountPane(Counting(clause.range, clause.step))
        case "session":
            return SessionPane(clause.range)
