"""Panes: the content of each window of one query, from instant to instant.

A pane moves from one instant to a later one, never back. It shows the newest window that closed there or before; its
events are settled when it closes. Late events change neither a count nor a session. A view holds the contents of all
windows of a query at one instant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from triplewire.continuous.windows.assigners import (
    NO_EVENTS,
    CountingWindows,
    Instant,
    Int64Array,
    SlidingWindows,
    TimedEvents,
    WindowBounds,
    split_sessions,
)
from triplewire.model.positions import END


class StreamTimeline:
    """The events of a stream in the order of one clock, for all windows over it."""

    def __init__(self) -> None:
        self.events: TimedEvents = NO_EVENTS

    def add(self, events: TimedEvents) -> None:
        self.events = self.events.joined(events)

    def within(self, span: WindowBounds, after: int, through: int) -> Int64Array:
        """Return the positions p with `after < p <= through` of events within bounds, in order."""
        found = self.events.positions[self._index(span.start) : self._index(span.end)]
        return np.sort(found[(found > after) & (found <= through)])

    def later(self, start: int, since: int) -> TimedEvents:
        """Return the events from a moment on, after a position."""
        return self.events.chosen(slice(self._index(start), None)).above(since)

    def keep(self, positions: Int64Array) -> None:
        """Drop all other events."""
        kept: NDArray[np.bool_] = np.isin(self.events.positions, positions)
        if not kept.all():
            self.events = self.events.chosen(kept)

    def _index(self, moment: int) -> int:
        return int(np.searchsorted(self.events.moments, moment, "left"))


@dataclass(frozen=True)
class WindowContent:
    """The events in a window, by their positions, in order; its bounds, if there was one yet."""

    positions: Int64Array = field(default_factory=lambda: NO_EVENTS.positions)
    bounds: WindowBounds | None = None

    @cached_property
    def key(self) -> bytes:
        """The same for the same events."""
        return blake2b(self.positions.tobytes(), digest_size=16).digest()


NO_CONTENT = WindowContent()
Mask: TypeAlias = NDArray[np.bool_]
PaneState: TypeAlias = Mapping[str, Any]


class Pane(Protocol):
    """A window over one stream, as one query sees it."""

    def take(self, events: TimedEvents, closed: Instant | None) -> tuple[Mask, Mask]:
        """Add events, in order of position. Return masks of those that belong to any window, and of those that are
        lost, because all their windows had closed up to an instant."""

    def next(self, after: Instant) -> Instant | None:
        """Return when the next window closes."""

    def change(self, after: Instant) -> Instant | None:
        """Return when the next window closes whose content differs from this one."""
        return self.next(after)

    def previous(self, before: Instant) -> Instant | None:
        """Return when the last window closed before an instant; None if `change` and `next` are the same."""
        return None

    def move(self, instant: Instant, position: int) -> None:
        """Show the newest window at an instant. Events are known up to a position."""

    @property
    def shown(self) -> WindowContent: ...

    def needed(self) -> TimedEvents:
        """Return the events that the current window and later ones need."""

    def state(self) -> PaneState:
        """Return the state as JSON, without the events."""

    def restore(self, state: PaneState, events: TimedEvents) -> None:
        """Restore the state of another pane, given the events that it needed."""


class TimePane(Pane):
    """A sliding window. A late event counts for those of its windows that are still open."""

    def __init__(self, sliding: SlidingWindows, timeline: StreamTimeline, since: int, spare: int = 0) -> None:
        """`spare` is how long after its end a window is kept for revision."""
        self.sliding = sliding
        self._timeline = timeline
        self._since = since
        self._end: int | None = None
        self._position: int = END
        self._shown = NO_CONTENT
        self._spare = spare

    def take(self, events: TimedEvents, closed: Instant | None) -> tuple[Mask, Mask]:
        held = self.sliding.held(events.moments)
        if closed is None:
            return held, np.zeros(len(events), np.bool_)
        return held, self.sliding.lost(events.moments, closed.moment - self._spare)

    def next(self, after: Instant) -> Instant:
        return Instant(self.sliding.next(after.moment))

    def previous(self, before: Instant) -> Instant:
        """The end of a window is before the events of its moment."""
        moment = before.moment + 1 if before.position else before.moment
        return Instant(self.sliding.previous(moment))

    def change(self, after: Instant) -> Instant | None:
        end = self.sliding.newest(after.moment).end if self._end is None else self._end
        known = self._timeline.later(end - self.sliding.width, self._since)
        inside = (known.moments < end) & (known.positions <= self._position)
        entering = self.sliding.entering(known.moments[~inside], end)
        leaving = self.sliding.leaving(int(known.moments[inside].min())) if inside.any() else None
        found = [each for each in (entering, leaving) if each is not None]
        return Instant(min(found)) if found else None

    def move(self, instant: Instant, position: int) -> None:
        newest = self.sliding.newest(instant.moment)
        if newest.end != self._end:
            # Late events belong to a window that is revised as if they had been there.
            self._end, self._position = newest.end, END if self._spare else position
            self._shown = self.at(instant, position)

    def at(self, instant: Instant, position: int) -> WindowContent:
        """Return the content at an instant, of the events up to a position."""
        newest = self.sliding.newest(instant.moment)
        return WindowContent(self._timeline.within(newest, self._since, position), newest)

    @property
    def shown(self) -> WindowContent:
        return self._shown

    def needed(self) -> TimedEvents:
        if self._end is None:
            return self._timeline.events.above(self._since)
        # What is shown again needs the window before it, and that may have closed a step earlier.
        spare = self._spare + 2 * self.sliding.step if self._spare else 0
        found = self._timeline.later(self._end - self.sliding.width - spare, self._since)
        return found.chosen(self.sliding.held(found.moments)) if self.sliding.gaps else found

    def state(self) -> PaneState:
        return {"end": self._end, "position": self._position}

    def restore(self, state: PaneState, events: TimedEvents) -> None:
        self._end, self._position = state["end"], state["position"]
        if self._end is not None:
            self._shown = self.at(Instant(self._end), self._position)


class CountPane(Pane):
    """A counting window, in the order of the query's clock. An event is late if later ones were counted already."""

    def __init__(self, counting: CountingWindows) -> None:
        self._counting = counting
        self._events = NO_EVENTS
        """Events in the order of instants; those up to `_counted` have been counted."""
        self._counted = 0
        self._before = 0
        """The number of triples that were counted before the first event."""
        self._shown = NO_CONTENT

    def take(self, events: TimedEvents, closed: Instant | None) -> tuple[Mask, Mask]:
        lost = _late_mask(events, closed)
        self._events = self._events.joined(events.chosen(~lost))
        return np.ones(len(events), np.bool_), lost

    def next(self, after: Instant) -> Instant | None:
        ordinals = self._ordinals()
        closing = self._counting.closing(ordinals[self._counted :], self._total(ordinals))
        return self._events.instant(self._counted + int(closing[0])) if len(closing) else None

    def move(self, instant: Instant, position: int) -> None:
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
    def shown(self) -> WindowContent:
        return self._shown

    def needed(self) -> TimedEvents:
        return self._events

    def state(self) -> PaneState:
        positions = self._events.positions.tolist()
        shown = len(self._shown.positions)
        return {"before": self._before, "counted": self._counted, "shown": shown, "events": positions}

    def restore(self, state: PaneState, events: TimedEvents) -> None:
        self._before, self._counted = state["before"], state["counted"]
        self._events = _pick_events(events, state["events"])
        if state["shown"]:
            self._show(0, state["shown"])

    def _show(self, first: int, last: int) -> None:
        part = self._events.chosen(slice(first, last))
        self._shown = WindowContent(np.sort(part.positions), WindowBounds(int(part.moments[0]), int(part.moments[-1])))

    def _ordinals(self) -> Int64Array:
        return self._before + np.cumsum(self._events.sizes)

    def _total(self, ordinals: Int64Array) -> int:
        return int(ordinals[self._counted - 1]) if self._counted else self._before


class SessionPane(Pane):
    """The session that ended last. An event is late if a session of it alone would be over; one that comes within a gap
    of a session that was reported begins another."""

    def __init__(self, gap: int) -> None:
        self._gap = gap
        self._open = NO_EVENTS
        """The events of sessions that are not over, in the order of instants."""
        self._over = NO_EVENTS

    def take(self, events: TimedEvents, closed: Instant | None) -> tuple[Mask, Mask]:
        lost = np.zeros(len(events), np.bool_) if closed is None else events.moments + self._gap <= closed.moment
        self._open = self._open.joined(events.chosen(~lost))
        return np.ones(len(events), np.bool_), lost

    def next(self, after: Instant) -> Instant | None:
        found = split_sessions(self._open.moments, self._gap)
        return Instant(self._end(self._open, found[0])) if found else None

    def move(self, instant: Instant, position: int) -> None:
        over = [
            each
            for each in split_sessions(self._open.moments, self._gap)
            if self._end(self._open, each) <= instant.moment
        ]
        if over:
            self._over = self._open.chosen(slice(over[-1].start, over[-1].stop))
            self._open = self._open.chosen(slice(over[-1].stop, None))

    @property
    def shown(self) -> WindowContent:
        if not len(self._over):
            return NO_CONTENT
        bounds = WindowBounds(int(self._over.moments[0]), self._end(self._over, range(len(self._over))))
        return WindowContent(np.sort(self._over.positions), bounds)

    def needed(self) -> TimedEvents:
        return self._over.joined(self._open)

    def state(self) -> PaneState:
        return {"over": self._over.positions.tolist(), "open": self._open.positions.tolist()}

    def restore(self, state: PaneState, events: TimedEvents) -> None:
        self._over, self._open = _pick_events(events, state["over"]), _pick_events(events, state["open"])

    def _end(self, events: TimedEvents, run: range) -> int:
        return int(events.moments[run.stop - 1]) + self._gap


def _late_mask(events: TimedEvents, instant: Instant | None) -> Mask:
    """Return a mask of the events at an instant or before."""
    if instant is None:
        return np.zeros(len(events), np.bool_)
    same = (events.moments == instant.moment) & (events.positions <= instant.position)
    found: Mask = (events.moments < instant.moment) | same
    return found


def _pick_events(events: TimedEvents, positions: list[int]) -> TimedEvents:
    """Return the events at some positions."""
    return events.chosen(np.isin(events.positions, np.array(positions, np.int64)))


@dataclass(frozen=True)
class WindowView:
    """The contents of all windows of a query at one instant."""

    instant: Instant
    contents: tuple[WindowContent, ...]

    @property
    def key(self) -> tuple[bytes, ...]:
        """The same for the same events in the same windows."""
        return tuple(each.key for each in self.contents)


@dataclass(frozen=True)
class WindowFiring:
    """A view to report, and the view before it. In a revision, `was` has both views as they were reported last: it is
    reported only if its result differs."""

    now: WindowView
    before: WindowView | None
    revision: int = 0
    was: tuple[WindowView, WindowView | None] | None = None


def next_close(panes: Sequence[Pane], after: Instant) -> Instant | None:
    """Return when the next window of some panes closes."""
    return min((each for pane in panes if (each := pane.next(after)) is not None), default=None)


def next_change(panes: Sequence[Pane], after: Instant) -> Instant | None:
    """Return when the next window of some panes closes with another content."""
    return min((each for pane in panes if (each := pane.change(after)) is not None), default=None)


def last_close(panes: Sequence[Pane], before: Instant) -> Instant:
    """Return when the last window of some panes closed before an instant."""
    return max(each for pane in panes if (each := pane.previous(before)) is not None)
