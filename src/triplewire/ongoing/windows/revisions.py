"""Revisions: windows of time that are told again, because something came late that belongs to them.

A window is kept for as long after its end as it is wide, or as the widest window of its query is, and no longer than
for `REVISED_WINDOWS` steps. What comes later still is dropped.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from triplewire.config import limits
from triplewire.ongoing.windows.instants import Events, Instant
from triplewire.ongoing.windows.panes import TimePane
from triplewire.ongoing.windows.views import Showing, View, nearest, newest


class Revisions:
    """Of one query, all of whose windows are windows of time."""

    def __init__(self, panes: Sequence[TimePane], *, differences: bool) -> None:
        """With `differences`, what is told of a window depends on the one before it, too."""
        self._panes = tuple(panes)
        self._differences = differences
        self._closed: list[tuple[Instant, int]] = []
        """Up to where windows had closed, and up to which position events were known then."""
        self._told: dict[Instant, tuple[int, int]] = {}
        """Of what was looked at again: how often, and up to which position events were known the last time."""
        self._due: set[Instant] = set()
        steps = [each.sliding.step for each in panes]
        self._spare = min(max(each.sliding.width for each in panes), limits.REVISED_WINDOWS * min(steps))
        for each in panes:
            each.spare = self._spare

    def late(self, pane: TimePane, events: Events, begun: Instant, closed: Instant) -> None:
        """Events that come when windows have closed up to an instant; some of them may be late."""
        sliding = pane.sliding
        least = max(begun, Instant(closed.moment - self._spare))
        first = (events.moments // sliding.step + 1) * sliding.step
        last = (events.moments + sliding.width) // sliding.step * sliding.step
        late = (first <= last) & (first <= closed.moment) & (last > least.moment - sliding.step)
        for start, end in np.unique(np.stack([first[late], last[late]], axis=1), axis=0).tolist():
            self._mark(max(Instant(start - 1), least), min(Instant(end + sliding.step - 1), closed), closed)

    def _mark(self, after: Instant, upto: Instant, closed: Instant) -> None:
        instant = nearest(self._panes, after)
        while instant is not None and instant <= upto:
            self._due.add(instant)
            instant = nearest(self._panes, instant)
        if self._differences and instant is not None and instant <= closed:
            self._due.add(instant)

    def closed(self, instant: Instant, upto: int) -> None:
        """Windows have closed up to an instant, of all that is known up to a position. Forgets what is over."""
        least = Instant(instant.moment - self._spare)
        self._closed = [each for each in self._closed if each[0] > least]
        if not self._closed or self._closed[-1][0] < instant:
            self._closed.append((instant, upto))
        self._told = {each: told for each, told in self._told.items() if each > least}
        self._due = {each for each in self._due if each > least}

    def showings(self, begun: Instant, upto: int, most: int) -> Iterator[Showing]:
        """The oldest of those that are due, of all that is known up to a position."""
        for instant in sorted(self._due)[:most]:
            revision, known = self._told.get(instant, (0, self._known(instant)))
            self._due.remove(instant)
            self._told[instant] = revision + 1, upto
            (now, before), was = (self._views(instant, begun, each) for each in (upto, known))
            yield Showing(now, before, revision + 1, was)

    def _views(self, instant: Instant, begun: Instant, upto: int) -> tuple[View, View | None]:
        earlier = newest(self._panes, instant)
        return self.view(instant, upto), self.view(earlier, upto) if earlier > begun else None

    def view(self, instant: Instant, upto: int) -> View:
        return View(instant, tuple(each.at(instant, upto) for each in self._panes))

    def _known(self, instant: Instant) -> int:
        """Up to which position events were known when windows closed at an instant."""
        place = bisect_left(self._closed, instant, key=lambda each: each[0])
        return self._closed[place][1]

    @property
    def due(self) -> bool:
        """Is there anything to be told again?"""
        return bool(self._due)

    def state(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "closed": [[*instant, upto] for instant, upto in self._closed],
            "told": [[*instant, *told] for instant, told in self._told.items()],
            "due": [[*instant] for instant in sorted(self._due)],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        self._closed = [(Instant(moment, position), upto) for moment, position, upto in state["closed"]]
        self._told = {Instant(moment, position): (revision, upto) for moment, position, revision, upto in state["told"]}
        self._due = {Instant(*each) for each in state["due"]}
