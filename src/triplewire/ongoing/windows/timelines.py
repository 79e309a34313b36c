"""Timelines: the events of a stream that are kept, in the order of one clock, for all windows over it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from triplewire.model.events import END
from triplewire.ongoing.windows.instants import NONE, Events, Numbers
from triplewire.ongoing.windows.spans import Span


class Timeline:
    """Which events there are, not what they say."""

    def __init__(self) -> None:
        self.events: Events = NONE

    def add(self, events: Events) -> None:
        self.events = self.events.joined(events)

    def within(self, span: Span, since: int, upto: int = END) -> Numbers:
        """The positions p with `since < p <= upto` of events in a span, in order."""
        found = self._part(span).positions
        return np.sort(found[(found > since) & (found <= upto)])

    def later(self, start: int, since: int) -> Events:
        """The events from a moment on that came after a position."""
        return self.events.chosen(slice(self._place(start), None)).above(since)

    def keep(self, positions: Numbers) -> None:
        """Forget all others."""
        kept: NDArray[np.bool_] = np.isin(self.events.positions, positions)
        if not kept.all():
            self.events = self.events.chosen(kept)

    def _part(self, span: Span) -> Events:
        return self.events.chosen(slice(self._place(span.start), self._place(span.end)))

    def _place(self, moment: int) -> int:
        return int(np.searchsorted(self.events.moments, moment, "left"))
