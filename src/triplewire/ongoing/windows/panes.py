"""Panes: what one window of one query shows, from instant to instant.

A pane is moved from one instant to a later one, and never back. It shows the newest window that closed there or
before;
which events are in it is settled when it closes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from triplewire.model.events import END
from triplewire.ongoing.windows.instants import NONE, Events, Instant, Numbers
from triplewire.ongoing.windows.spans import Sliding, Span
from triplewire.ongoing.windows.timelines import Timeline


@dataclass(frozen=True)
class Content:
    """The events in a window, by their positions, in order; its bounds, if there was one yet."""

    positions: Numbers = field(default_factory=lambda: NONE.positions)
    bounds: Span | None = None

    @cached_property
    def key(self) -> bytes:
        """The same for the same events."""
        return blake2b(self.positions.tobytes(), digest_size=16).digest()


NOTHING = Content()
Mask: TypeAlias = NDArray[np.bool_]
State: TypeAlias = Mapping[str, Any]


class Pane(Protocol):
    """Of a window over one stream, for a query that was registered at some position."""

    def take(self, events: Events, closed: Instant | None) -> tuple[Mask, Mask]:
        """Events that come, in the order of positions: which of them belong to any window, and which of these are lost,
        because all those windows had closed up to an instant."""

    def next(self, after: Instant) -> Instant | None:
        """When the next window closes."""

    def change(self, after: Instant) -> Instant | None:
        """When the next window closes that does not hold what this one does."""

    def previous(self, before: Instant) -> Instant | None:
        """When the last window closed before an instant; None where that does not matter, because `change` and `next`
        are the same."""

    def move(self, instant: Instant, upto: int) -> None:
        """Show the newest window at an instant. Events are known up to a position."""

    @property
    def shown(self) -> Content: ...

    def needed(self) -> Events:
        """What must be kept for what is shown, and for windows to come."""

    def state(self) -> State:
        """As JSON, beside the events themselves."""

    def restore(self, state: State, events: Events) -> None:
        """Be as another was, of whose stream these events were kept."""


class TimePane:
    """A window of time. An event that comes when some of its windows are closed counts for the others."""

    def __init__(self, sliding: Sliding, timeline: Timeline, since: int) -> None:
        self.sliding = sliding
        self._timeline = timeline
        self._since = since
        self._end: int | None = None
        self._upto: int = END
        self._shown = NOTHING
        self.spare = 0
        """For how long after its end a window is kept, to be shown again."""

    def take(self, events: Events, closed: Instant | None) -> tuple[Mask, Mask]:
        held = self.sliding.held(events.moments)
        if closed is None:
            return held, np.zeros(len(events), np.bool_)
        return held, self.sliding.lost(events.moments, closed.moment - self.spare)

    def next(self, after: Instant) -> Instant:
        return Instant(self.sliding.next(after.moment))

    def previous(self, before: Instant) -> Instant:
        """The end of a window is before the events of its moment."""
        moment = before.moment + 1 if before.position else before.moment
        return Instant(self.sliding.previous(moment))

    def change(self, after: Instant) -> Instant | None:
        end = self.sliding.newest(after.moment).end if self._end is None else self._end
        known = self._timeline.later(end - self.sliding.width, self._since)
        inside = (known.moments < end) & (known.positions <= self._upto)
        entering = self.sliding.entering(known.moments[~inside], end)
        leaving = self.sliding.leaving(int(known.moments[inside].min())) if inside.any() else None
        found = [each for each in (entering, leaving) if each is not None]
        return Instant(min(found)) if found else None

    def move(self, instant: Instant, upto: int) -> None:
        newest = self.sliding.newest(instant.moment)
        if newest.end != self._end:
            # What comes late belongs to a window that is told again as if it had been there.
            self._end, self._upto = newest.end, END if self.spare else upto
            self._shown = self.at(instant, upto)

    def at(self, instant: Instant, upto: int) -> Content:
        """What was to be seen at an instant, of all that is known up to a position."""
        newest = self.sliding.newest(instant.moment)
        return Content(self._timeline.within(newest, self._since, upto), newest)

    @property
    def shown(self) -> Content:
        return self._shown

    def needed(self) -> Events:
        if self._end is None:
            return self._timeline.events.above(self._since)
        # What is shown again needs the window before it, and that may have closed a step earlier.
        spare = self.spare + 2 * self.sliding.step if self.spare else 0
        found = self._timeline.later(self._end - self.sliding.width - spare, self._since)
        return found.chosen(self.sliding.held(found.moments)) if self.sliding.gaps else found

    def state(self) -> State:
        return {"end": self._end, "upto": self._upto}

    def restore(self, state: State, events: Events) -> None:
        self._end, self._upto = state["end"], state["upto"]
        if self._end is not None:
            self._shown = self.at(Instant(self._end), self._upto)
