"""Queues: windows that go by the order of events, of a number of triples or of a session.

What was counted, and which session an event was in, is not changed any more by what comes late.
"""

from __future__ import annotations

import numpy as np

from triplewire.ongoing.windows.counts import Counting
from triplewire.ongoing.windows.instants import NONE, Events, Instant, Numbers
from triplewire.ongoing.windows.panes import NOTHING, Content, Mask, State
from triplewire.ongoing.windows.sessions import runs
from triplewire.ongoing.windows.spans import Span


class CountPane:
    """The last triples of a stream, by the order of the query's clock. An event is late that would have to be counted
    before others that were."""

    def __init__(self, counting: Counting) -> None:
        self._counting = counting
        self._events = NONE
        """In the order of instants; those up to `_counted` have been counted."""
        self._counted = 0
        self._before = 0
        """How many triples were counted before the first of them."""
        self._shown = NOTHING

    def take(self, events: Events, closed: Instant | None) -> tuple[Mask, Mask]:
        lost = _upto(events, closed)
        self._events = self._events.joined(events.chosen(~lost))
        return np.ones(len(events), np.bool_), lost

    def next(self, after: Instant) -> Instant | None:
        ordinals = self._ordinals()
        closing = self._counting.closing(ordinals[self._counted :], self._total(ordinals))
        return self._events.instant(self._counted + int(closing[0])) if len(closing) else None

    def change(self, after: Instant) -> Instant | None:
        return self.next(after)

    def previous(self, before: Instant) -> None:
        return None

    def move(self, instant: Instant, upto: int) -> None:
        ordinals = self._ordinals()
        counted = self._events.reached(instant)
        closing = self._counting.closing(ordinals[self._counted : counted], self._total(ordinals))
        if len(closing):
            last = self._counted + int(closing[-1])
            oldest = self._counting.oldest(ordinals, last)
            self._show(oldest, last + 1)
            self._before = int(ordinals[oldest] - self._events.sizes[oldest])
            self._events = self._events.chosen(slice(oldest, None))
            counted -= oldest
        self._counted = counted

    @property
    def shown(self) -> Content:
        return self._shown

    def needed(self) -> Events:
        return self._events

    def state(self) -> State:
        positions = self._events.positions.tolist()
        shown = len(self._shown.positions)
        return {"before": self._before, "counted": self._counted, "shown": shown, "events": positions}

    def restore(self, state: State, events: Events) -> None:
        self._before, self._counted = state["before"], state["counted"]
        self._events = _those(events, state["events"])
        if state["shown"]:
            self._show(0, state["shown"])

    def _show(self, first: int, last: int) -> None:
        part = self._events.chosen(slice(first, last))
        self._shown = Content(np.sort(part.positions), Span(int(part.moments[0]), int(part.moments[-1])))

    def _ordinals(self) -> Numbers:
        return self._before + np.cumsum(self._events.sizes)

    def _total(self, ordinals: Numbers) -> int:
        return int(ordinals[self._counted - 1]) if self._counted else self._before


class SessionPane:
    """The session that ended last. An event is late whose own session, were it alone in it, would be over; what comes
    within a gap of a session that is told already begins another."""

    def __init__(self, gap: int) -> None:
        self._gap = gap
        self._open = NONE
        """The events of sessions that are not over, in the order of instants."""
        self._over = NONE

    def take(self, events: Events, closed: Instant | None) -> tuple[Mask, Mask]:
        lost = np.zeros(len(events), np.bool_) if closed is None else events.moments + self._gap <= closed.moment
        self._open = self._open.joined(events.chosen(~lost))
        return np.ones(len(events), np.bool_), lost

    def next(self, after: Instant) -> Instant | None:
        found = runs(self._open.moments, self._gap)
        return Instant(self._end(self._open, found[0])) if found else None

    def change(self, after: Instant) -> Instant | None:
        return self.next(after)

    def previous(self, before: Instant) -> None:
        return None

    def move(self, instant: Instant, upto: int) -> None:
        over = [each for each in runs(self._open.moments, self._gap) if self._end(self._open, each) <= instant.moment]
        if over:
            self._over = self._open.chosen(slice(over[-1].start, over[-1].stop))
            self._open = self._open.chosen(slice(over[-1].stop, None))

    @property
    def shown(self) -> Content:
        if not len(self._over):
            return NOTHING
        bounds = Span(int(self._over.moments[0]), self._end(self._over, range(len(self._over))))
        return Content(np.sort(self._over.positions), bounds)

    def needed(self) -> Events:
        return self._over.joined(self._open)

    def state(self) -> State:
        return {"over": self._over.positions.tolist(), "open": self._open.positions.tolist()}

    def restore(self, state: State, events: Events) -> None:
        self._over, self._open = _those(events, state["over"]), _those(events, state["open"])

    def _end(self, events: Events, run: range) -> int:
        return int(events.moments[run.stop - 1]) + self._gap


def _upto(events: Events, instant: Instant | None) -> Mask:
    """Which of these are at an instant or before."""
    if instant is None:
        return np.zeros(len(events), np.bool_)
    same = (events.moments == instant.moment) & (events.positions <= instant.position)
    found: Mask = (events.moments < instant.moment) | same
    return found


def _those(events: Events, positions: list[int]) -> Events:
    """Those at some positions, of events in the order of instants."""
    return events.chosen(np.isin(events.positions, np.array(positions, np.int64)))
