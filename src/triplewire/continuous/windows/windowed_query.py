"""A windowed query: its panes and watermark, the instants at which its windows close, and the results it reports.

```
          reported                    closes in this batch         not yet
──────────────────────────┬──────────────────────────────────┬──────────────▶ instants
                       frontier        t      t      t     reached
```

At each instant t at which one of its windows closes the query is evaluated once, over the newest window of each clause
that closed at t or before. Where no event entered or left any of them since the instant before, the same answer is
reported again, or nothing where only differences are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final
from urllib.parse import quote

import numpy as np
import orjson

from triplewire.continuous.state import BatchContext
from triplewire.continuous.windows import results, watermarks
from triplewire.continuous.windows.assigners import ArrivedEvents, CountingWindows, Instant, SlidingWindows, TimedEvents
from triplewire.continuous.windows.evaluation import PlannedQuery, Rows, WindowEvaluator
from triplewire.continuous.windows.panes import (
    CountPane,
    Pane,
    SessionPane,
    StreamTimeline,
    TimePane,
    WindowFiring,
    WindowView,
    last_close,
    next_change,
    next_close,
)
from triplewire.continuous.windows.plans import WindowPlan
from triplewire.model.cache import BoundedCache
from triplewire.model.errors import QueryLimit
from triplewire.model.positions import END
from triplewire.model.subscriptions import ANSWER, ContinuousQuery, LatePolicy, ReportStrategy, TimeDomain
from triplewire.sparql import WindowClause
from triplewire.storage.registry.ports import RegistryChange

WINDOWS_REPORTED: Final = 256
"""Evaluations of a query in one batch: after a pause, windows close in several batches. Windows in a row with equal
contents are reported that often at most, the newest."""


Timelines = Mapping[str, StreamTimeline]
"""Timelines by stream, all of the query's clock."""

_NEVER = Instant(END, END)


class WindowProgress:
    """The windows of a query from batch to batch: a pure function of events and batches."""

    def __init__(self, query: ContinuousQuery, plan: WindowPlan, timelines: Timelines) -> None:
        self.query, self.plan = query, plan
        self.dropped = 0
        """Events that came too late to count for any window."""
        self.last: WindowView | None = None
        """The view when the last window closed."""
        self._timelines = timelines
        self._revisions: watermarks.WindowRevisions | None = None
        sliding = [SlidingWindows(each.range, each.step) for each in plan.windows if each.kind == "time"]
        revising = query.late is LatePolicy.REVISE and len(sliding) == len(plan.windows)
        spare = watermarks.revision_time(sliding) if revising else 0
        self._panes = tuple(_open_pane(each, timelines[each.stream], query.since, spare) for each in plan.windows)
        if revising:
            panes = [each for each in self._panes if isinstance(each, TimePane)]
            differences = plan.report is not ReportStrategy.ALL
            self._revisions = watermarks.WindowRevisions(panes, spare, differences=differences)
        self._begun: Instant | None = None
        self._frontier: Instant | None = None
        self._watermark: watermarks.Watermark | None = None
        # Where a query asks for the time, the same contents may have another answer.
        self._silent = plan.report is not ReportStrategy.ALL and not plan.timed

    @property
    def weight(self) -> int:
        """The number of triples in its windows."""
        return sum(int(each.needed().sizes.sum()) for each in self._panes)

    def needed(self) -> Iterator[tuple[str, TimedEvents]]:
        """Yield the events that its windows need, with their streams."""
        return ((clause.stream, pane.needed()) for clause, pane in self._paired())

    def take(self, arrived: Mapping[str, ArrivedEvents], context: BatchContext) -> None:
        """Add the events of a batch, which the timelines have already."""
        since = self.query.since
        fresh = {name: each for name, some in arrived.items() if len((each := some.above(since)).positions)}
        if self.query.time is TimeDomain.EVENT:
            self._see(fresh, context)
        elif self._frontier is None:
            self._begin(fresh, context)
        for name, each in fresh.items():
            self._offer(name, each.by(self.query.time))

    def _see(self, fresh: Mapping[str, ArrivedEvents], context: BatchContext) -> None:
        if self._watermark is None:
            self._watermark = self._fresh_watermark(min(self.query.created or context.now, context.now))
        self._watermark.see(
            {name: watermarks.StreamProgress.from_times(each.times, each.received) for name, each in fresh.items()}
        )
        self._watermark.advance(context.now)

    def _fresh_watermark(self, begun: int) -> watermarks.Watermark:
        return watermarks.Watermark(self.plan.streams, int(self.query.lateness * watermarks.SECOND), begun)

    def _begin(self, fresh: Mapping[str, ArrivedEvents], context: BatchContext) -> None:
        """By arrival time, windows are reported that close after the registration."""
        moments = (int(each.arrivals[0]) for each in fresh.values())
        self._begun = Instant(min(self.query.created or context.now, context.now, *moments), self.query.since)
        self._frontier = self._begun

    def _offer(self, stream: str, events: TimedEvents) -> None:
        panes = [pane for clause, pane in self._paired() if clause.stream == stream]
        if self._revisions is not None and self._frontier is not None and self._begun is not None:
            for pane in panes:
                assert isinstance(pane, TimePane)
                self._revisions.late(pane, events, self._begun, self._frontier)
        taken = [pane.take(events, self._frontier) for pane in panes]
        held, lost = (np.stack(masks) for masks in zip(*taken, strict=True))
        self.dropped += int((lost.any(axis=0) & ~(held & ~lost).any(axis=0)).sum())

    def firings(self, arrived: int | None, context: BatchContext) -> Iterator[WindowFiring]:
        """Yield the views to report in a batch, in order, revisions first. `arrived` is the progress of arrival
        time."""
        reached = self._reached(arrived, context)
        left = WINDOWS_REPORTED
        if self._revisions is not None and self._begun is not None:
            for firing in self._revisions.firings(self._begun, context.position, left):
                left -= 1
                yield firing
        if reached is not None and self._started(reached):
            yield from self._closing(reached, context.position, left)
        if self._revisions is not None and self._frontier is not None:
            self._revisions.closed(self._frontier, context.position)

    def due(self, now: int) -> int | None:
        """Return when, after a batch, there may be more to report even without events; None for never."""
        if self._revisions is not None and self._revisions.due:
            return now
        if self._frontier is None:
            return None if self._watermark is None else self._watermark.due(0, now)
        instant = next_close(self._panes, self._frontier)
        if instant is None:
            return None
        if self._watermark is None:
            return max(now, watermarks.ArrivalClock.due(instant.moment))
        return now if Instant(self._watermark.reached or 0) >= instant else self._watermark.due(instant.moment, now)

    def _reached(self, arrived: int | None, context: BatchContext) -> Instant | None:
        if self.query.time is TimeDomain.ARRIVAL:
            return None if arrived is None else Instant(arrived, context.position)
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

    def _closing(self, reached: Instant, position: int, left: int) -> Iterator[WindowFiring]:
        """Yield the views of at most `left` instants; the others follow in the next batch."""
        assert self._frontier is not None
        while left > 0:
            first = next_close(self._panes, self._frontier)
            if first is None or first > reached:
                self._frontier = max(reached, self._frontier)
                return
            change = next_change(self._panes, self._frontier) or _NEVER
            if self.last is None or change <= first:
                left -= 1
                yield self._show(first, position)
                continue
            # Nothing entered or left: the newest windows are reported first of all.
            end = min(change, Instant(reached.moment, reached.position + 1))
            for instant in [] if self._silent else self._newest(first, end, left):
                left -= 1
                yield self._show(instant, position)
            self._move(last_close(self._panes, end), position)

    def _newest(self, first: Instant, end: Instant, most: int) -> list[Instant]:
        """Return the last instants from `first` on, and before `end`, at which a window closes."""

        def backwards() -> Iterator[Instant]:
            instant = last_close(self._panes, end)
            while instant >= first:
                yield instant
                instant = last_close(self._panes, instant)

        return list(islice(backwards(), most))[::-1]

    def _show(self, instant: Instant, position: int) -> WindowFiring:
        before = self.last
        if before is not None and self._revisions is not None:
            before = self._revisions.view(before.instant, position)
        return WindowFiring(self._move(instant, position), before)

    def _move(self, instant: Instant, position: int) -> WindowView:
        for pane in self._panes:
            pane.move(instant, position)
        self._frontier = instant
        self.last = self._view(instant, position)
        return self.last

    def _view(self, instant: Instant, position: int) -> WindowView:
        if self._revisions is not None:
            return self._revisions.view(instant, position)
        return WindowView(instant, tuple(pane.shown for pane in self._panes))

    def _paired(self) -> Iterator[tuple[WindowClause, Pane]]:
        return zip(self.plan.windows, self._panes, strict=True)

    def state(self) -> dict[str, Any]:
        """Return the state as JSON, without the events."""
        return {
            "dropped": self.dropped,
            "begun": self._begun and [*self._begun],
            "frontier": self._frontier and [*self._frontier],
            "last": self.last and [*self.last.instant],
            "watermark": self._watermark and self._watermark.state(),
            "revisions": self._revisions and self._revisions.state(),
            "panes": [pane.state() for pane in self._panes],
        }

    def restore(self, state: Mapping[str, Any], position: int) -> None:
        """Restore the state after a batch. The timelines have the events that are needed."""
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
        self.last = None if last is None else self._view(last, position)


def _open_pane(clause: WindowClause, timeline: StreamTimeline, since: int, spare: int) -> Pane:
    match clause.kind:
        case "time":
            return TimePane(SlidingWindows(clause.range, clause.step), timeline, since, spare)
        case "count":
            return CountPane(CountingWindows(clause.range, clause.step))
        case "session":
            return SessionPane(clause.range)


ResultRow = dict[str, Any]
"""A row of `RESULTS`."""

_CACHED_ANSWERS = 2
"""Answers that are cached: that of the last instant, and of the one before."""


@dataclass
class WindowedQuery:
    """A registered query, its plan and its progress. `change` is its registration."""

    change: RegistryChange
    query: ContinuousQuery
    planned: PlannedQuery
    progress: WindowProgress
    _answers: BoundedCache[object, Rows] = field(default_factory=lambda: BoundedCache(_CACHED_ANSWERS))

    def take(self, arrived: Mapping[str, ArrivedEvents], context: BatchContext, limit: int) -> None:
        """Add the events of a batch. Raises QueryLimit for more triples than `limit`."""
        wanted = {name: each for name, each in arrived.items() if name in self.planned.plan.streams}
        self.progress.take(wanted, context)
        if self.progress.weight > limit:
            raise QueryLimit(f"its windows hold more than {limit} triples")

    def report(self, evaluator: WindowEvaluator, arrived: int | None, context: BatchContext) -> Iterator[ResultRow]:
        """Yield the results of a batch. Raises QueryLimit."""
        for firing in self.progress.firings(arrived, context):
            rows = self._rows(evaluator, firing.now, firing.before)
            if firing.was is None and not rows:
                continue
            if firing.was is not None and rows == self._rows(evaluator, *firing.was):
                continue
            yield self._result(firing, rows, context, evaluator.limits.built)

    def advance(self, arrived: int | None, context: BatchContext) -> None:
        """Advance without reporting anything."""
        for _ in self.progress.firings(arrived, context):
            pass

    def _rows(self, evaluator: WindowEvaluator, now: WindowView, before: WindowView | None) -> Rows:
        report = self.planned.plan.report
        earlier = () if before is None or report is ReportStrategy.ALL else self._answer(evaluator, before)
        return results.select_reported(report, self._answer(evaluator, now), earlier)

    def _answer(self, evaluator: WindowEvaluator, view: WindowView) -> Rows:
        """Return the answer over a view, from the cache if no event entered or left."""
        key = view.key, view.instant.moment if self.planned.plan.timed else None
        rows = self._answers.get(key)
        if rows is None:
            rows = results.comparable_rows(self.planned.plan, evaluator.answer(self.planned, view))
            self._answers.put(key, rows)
        return rows

    def _result(self, firing: WindowFiring, rows: Rows, context: BatchContext, limit: int) -> ResultRow:
        plan, view, instant = self.planned.plan, firing.now, firing.now.instant
        id = f"{answer_prefix(self.query.id)}:{instant.moment}:{instant.position}:{firing.revision}"
        windows = results.write_bounds(plan, view)
        beside = {"query": self.query.id, "report": plan.report, "revision": firing.revision, "windows": windows}
        kind = results.ResultKind.SELECT if plan.template is None else results.ResultKind.CONSTRUCT
        selected = kind is results.ResultKind.SELECT
        payload = (
            results.write_solutions(plan, rows, beside) if selected else results.write_triples(plan, rows, id, limit)
        )
        starts = [each.bounds.start for each in view.contents if each.bounds is not None]
        return {
            "position": context.position,
            "query": self.query.id,
            "into": self.query.into,
            "start": min(starts, default=instant.moment),
            "end": instant.moment,
            "at": instant.position,
            "revision": firing.revision,
            "report": plan.report,
            "kind": kind,
            "payload": payload,
            "windows": orjson.dumps(windows).decode(),
            "event": id,
        }


def answer_prefix(query: str) -> str:
    """Return the prefix of the ids of a query's answers."""
    return ANSWER + quote(query, safe="")


def suspension_row(query: ContinuousQuery, reason: str, context: BatchContext) -> ResultRow:
    """Return the result row that says that a query is suspended."""
    problem = {"type": "about:blank", "title": "the query is suspended", "detail": reason, "query": query.id}
    row = dict.fromkeys(("start", "end", "at", "report", "windows"))
    return row | {
        "position": context.position,
        "query": query.id,
        "into": query.into,
        "revision": 0,
        "kind": results.ResultKind.SUSPENDED,
        "payload": orjson.dumps(problem).decode(),
        "event": f"{answer_prefix(query.id)}:suspended",
    }
