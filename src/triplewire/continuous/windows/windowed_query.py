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
from triplewire.continuous.windows.results import (
    ResultKind,
    comparable_rows,
    select_reported,
    write_bounds,
    write_solutions,
    write_triples,
)
from triplewire.continuous.windows.watermarks import (
    SECOND,
    ArrivalClock,
    StreamProgress,
    Watermark,
    WindowRevisions,
    revision_time,
)
from triplewire.model.errors import QueryLimit
from triplewire.model.events import END
from triplewire.model.subscriptions import ANSWER, ContinuousQuery, LatePolicy, ReportStrategy, TimeDomain
from triplewire.sparql import WindowClause
from triplewire.storage.registry.ports import RegistryChange

WINDOW_TRIPLES: Final = 1_000_000
"""That are kept for the windows of one continuous query: at worst some 500 MB. With more it is suspended."""

WINDOWS_TOLD: Final = 256
"""How often a query is asked in one batch: after a pause, windows close one after the other in several batches. Of
those in a row that hold the same, so many at most are told, the newest."""


# ```
#           told                        closes in this turn          not yet
# ──────────────────────────┬──────────────────────────────────┬──────────────▶ instants
#                        frontier        t      t      t     reached
# ```
#
# At each instant t at which one of its windows closes the query is asked once, of what each of its windows shows then:
# the newest window that closed at t or before. Where no event entered or left any of them since the instant before,
# the same is told again, or nothing where only differences are told.

Timelines = Mapping[str, StreamTimeline]
"""By streams, all of the clock that the query goes by."""

_NEVER = Instant(END, END)


class WindowProgress:
    """Given the same events and turns it shows the same, whatever the answers are."""

    def __init__(self, query: ContinuousQuery, plan: WindowPlan, timelines: Timelines) -> None:
        self.query, self.plan = query, plan
        self.dropped = 0
        """Events that came too late to count for any window."""
        self.last: WindowView | None = None
        """What windows showed when the last of them closed."""
        self._timelines = timelines
        self._revisions: WindowRevisions | None = None
        sliding = [SlidingWindows(each.range, each.step) for each in plan.windows if each.kind == "time"]
        revising = query.late is LatePolicy.REVISE and len(sliding) == len(plan.windows)
        spare = revision_time(sliding) if revising else 0
        self._panes = tuple(_open_pane(each, timelines[each.stream], query.since, spare) for each in plan.windows)
        if revising:
            panes = [each for each in self._panes if isinstance(each, TimePane)]
            differences = plan.report is not ReportStrategy.ALL
            self._revisions = WindowRevisions(panes, spare, differences=differences)
        self._begun: Instant | None = None
        self._frontier: Instant | None = None
        self._watermark: Watermark | None = None
        # Where a query asks for the time, the same contents may have another answer.
        self._silent = plan.report is not ReportStrategy.ALL and not plan.timed

    @property
    def weight(self) -> int:
        """How many triples are kept for it."""
        return sum(int(each.needed().sizes.sum()) for each in self._panes)

    def needed(self) -> Iterator[tuple[str, TimedEvents]]:
        """The events that must be kept for it, with their streams."""
        return ((clause.stream, pane.needed()) for clause, pane in self._paired())

    def take(self, arrived: Mapping[str, ArrivedEvents], turn: BatchContext) -> None:
        """What a batch brought. Its timelines have it already."""
        since = self.query.since
        fresh = {name: each for name, some in arrived.items() if len((each := some.above(since)).positions)}
        if self.query.time is TimeDomain.EVENT:
            self._see(fresh, turn)
        elif self._frontier is None:
            self._begin(fresh, turn)
        for name, each in fresh.items():
            self._offer(name, each.by(self.query.time))

    def _see(self, fresh: Mapping[str, ArrivedEvents], turn: BatchContext) -> None:
        if self._watermark is None:
            self._watermark = self._fresh_watermark(min(self.query.created or turn.now, turn.now))
        self._watermark.see({name: StreamProgress.of(each.times, each.received) for name, each in fresh.items()})
        self._watermark.advance(turn.now)

    def _fresh_watermark(self, begun: int) -> Watermark:
        return Watermark(self.plan.streams, int(self.query.lateness * SECOND), begun)

    def _begin(self, fresh: Mapping[str, ArrivedEvents], turn: BatchContext) -> None:
        """By arrival, those windows are told that close after the query was registered."""
        moments = (int(each.arrivals[0]) for each in fresh.values())
        self._begun = Instant(min(self.query.created or turn.now, turn.now, *moments), self.query.since)
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

    def showings(self, arrived: int | None, turn: BatchContext) -> Iterator[WindowFiring]:
        """What is to be told in a turn, in order; those that were told before come first. `arrived` is up to where
        arrival time has come."""
        reached = self._reached(arrived, turn)
        left = WINDOWS_TOLD
        if self._revisions is not None and self._begun is not None:
            for showing in self._revisions.showings(self._begun, turn.position, left):
                left -= 1
                yield showing
        if reached is not None and self._started(reached):
            yield from self._closing(reached, turn.position, left)
        if self._revisions is not None and self._frontier is not None:
            self._revisions.closed(self._frontier, turn.position)

    def due(self, now: int) -> int | None:
        """When, after a turn, there may be more to tell though nothing more comes; None where that is never."""
        if self._revisions is not None and self._revisions.due:
            return now
        if self._frontier is None:
            return None if self._watermark is None else self._watermark.due(0, now)
        instant = next_close(self._panes, self._frontier)
        if instant is None:
            return None
        if self._watermark is None:
            return max(now, ArrivalClock.due(instant.moment))
        return now if Instant(self._watermark.reached or 0) >= instant else self._watermark.due(instant.moment, now)

    def _reached(self, arrived: int | None, turn: BatchContext) -> Instant | None:
        if self.query.time is TimeDomain.ARRIVAL:
            return None if arrived is None else Instant(arrived, turn.position)
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

    def _closing(self, reached: Instant, upto: int, left: int) -> Iterator[WindowFiring]:
        """So many instants at most; the others come in the next turn."""
        assert self._frontier is not None
        while left > 0:
            first = next_close(self._panes, self._frontier)
            if first is None or first > reached:
                self._frontier = max(reached, self._frontier)
                return
            change = next_change(self._panes, self._frontier) or _NEVER
            if self.last is None or change <= first:
                left -= 1
                yield self._show(first, upto)
                continue
            # Nothing entered or left: what is told most of all is what came last.
            end = min(change, Instant(reached.moment, reached.position + 1))
            for instant in [] if self._silent else self._newest(first, end, left):
                left -= 1
                yield self._show(instant, upto)
            self._move(last_close(self._panes, end), upto)

    def _newest(self, first: Instant, end: Instant, most: int) -> list[Instant]:
        """The last instants from one on, and before an end, at which a window closes."""

        def backwards() -> Iterator[Instant]:
            instant = last_close(self._panes, end)
            while instant >= first:
                yield instant
                instant = last_close(self._panes, instant)

        return list(islice(backwards(), most))[::-1]

    def _show(self, instant: Instant, upto: int) -> WindowFiring:
        before = self.last
        if before is not None and self._revisions is not None:
            before = self._revisions.view(before.instant, upto)
        return WindowFiring(self._move(instant, upto), before)

    def _move(self, instant: Instant, upto: int) -> WindowView:
        for pane in self._panes:
            pane.move(instant, upto)
        self._frontier = instant
        self.last = self._view(instant, upto)
        return self.last

    def _view(self, instant: Instant, upto: int) -> WindowView:
        if self._revisions is not None:
            return self._revisions.view(instant, upto)
        return WindowView(instant, tuple(pane.shown for pane in self._panes))

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


def _open_pane(clause: WindowClause, timeline: StreamTimeline, since: int, spare: int) -> Pane:
    match clause.kind:
        case "time":
            return TimePane(SlidingWindows(clause.range, clause.step), timeline, since, spare)
        case "count":
            return CountPane(CountingWindows(clause.range, clause.step))
        case "session":
            return SessionPane(clause.range)


# Watches: one query in its place, and what it tells.

ResultRow = dict[str, Any]
"""A row of `RESULTS`."""

_CACHED_ANSWERS = 2
"""Answers: that of the last instant, and of the one before."""


@dataclass
class WindowedQuery:
    """`change` is what registered it."""

    change: RegistryChange
    query: ContinuousQuery
    asked: PlannedQuery
    standing: WindowProgress
    _answers: dict[object, Rows] = field(default_factory=dict)

    def take(self, arrived: Mapping[str, ArrivedEvents], turn: BatchContext) -> None:
        """Raises QueryLimit where more would have to be kept than may be."""
        wanted = {name: each for name, each in arrived.items() if name in self.asked.plan.streams}
        self.standing.take(wanted, turn)
        if self.standing.weight > WINDOW_TRIPLES:
            raise QueryLimit(f"its windows hold more than {WINDOW_TRIPLES} triples")

    def tell(self, evaluator: WindowEvaluator, arrived: int | None, turn: BatchContext) -> Iterator[ResultRow]:
        """What is told in a turn. Raises QueryLimit."""
        for showing in self.standing.showings(arrived, turn):
            rows = self._rows(evaluator, showing.now, showing.before)
            if showing.was is None and not rows:
                continue
            if showing.was is not None and rows == self._rows(evaluator, *showing.was):
                continue
            yield self._result(showing, rows, turn)

    def pass_by(self, arrived: int | None, turn: BatchContext) -> None:
        """Go on without telling anything."""
        for _ in self.standing.showings(arrived, turn):
            pass

    def _rows(self, evaluator: WindowEvaluator, now: WindowView, before: WindowView | None) -> Rows:
        report = self.asked.plan.report
        earlier = () if before is None or report is ReportStrategy.ALL else self._answer(evaluator, before)
        return select_reported(report, self._answer(evaluator, now), earlier)

    def _answer(self, evaluator: WindowEvaluator, view: WindowView) -> Rows:
        """Where nothing entered or left, the answer is the same."""
        key = view.key, view.instant.moment if self.asked.plan.timed else None
        if key not in self._answers:
            found = comparable_rows(self.asked.plan, evaluator.answer(self.asked, view))
            for old in [*self._answers][: 1 - _CACHED_ANSWERS]:
                del self._answers[old]
            self._answers[key] = found
        return self._answers[key]

    def _result(self, showing: WindowFiring, rows: Rows, turn: BatchContext) -> ResultRow:
        plan, view, id = self.asked.plan, showing.now, self._event(showing)
        windows = write_bounds(plan, view)
        beside = {"query": self.query.id, "report": plan.report, "revision": showing.revision, "windows": windows}
        kind = ResultKind.SELECT if plan.template is None else ResultKind.CONSTRUCT
        starts = [each.bounds.start for each in view.contents if each.bounds is not None]
        return {
            "position": turn.position,
            "query": self.query.id,
            "into": self.query.into,
            "start": min(starts, default=view.instant.moment),
            "end": view.instant.moment,
            "at": view.instant.position,
            "revision": showing.revision,
            "report": plan.report,
            "kind": kind,
            "payload": write_solutions(plan, rows, beside)
            if kind is ResultKind.SELECT
            else write_triples(plan, rows, id),
            "windows": orjson.dumps(windows).decode(),
            "event": id,
        }

    def _event(self, showing: WindowFiring) -> str:
        instant = showing.now.instant
        return f"{answer_prefix(self.query.id)}:{instant.moment}:{instant.position}:{showing.revision}"


def answer_prefix(query: str) -> str:
    """How the ids of a query's answers begin."""
    return ANSWER + quote(query, safe="")


def suspension_row(query: ContinuousQuery, reason: str, turn: BatchContext) -> ResultRow:
    """That a query is asked no more."""
    problem = {"type": "about:blank", "title": "the query is suspended", "detail": reason, "query": query.id}
    row = dict.fromkeys(("start", "end", "at", "report", "windows"))
    return row | {
        "position": turn.position,
        "query": query.id,
        "into": query.into,
        "revision": 0,
        "kind": ResultKind.SUSPENDED,
        "payload": orjson.dumps(problem).decode(),
        "event": f"{answer_prefix(query.id)}:suspended",
    }
