"""Instants: when something happens in the one order that a query goes by.

The end of a window comes before all events of that moment, because windows are half-open; events of one moment come
one
after the other, by their positions.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from triplewire.model.events import START
from triplewire.model.subscriptions import TimeDomain

Numbers: TypeAlias = NDArray[np.int64]


class Instant(NamedTuple):
    """A moment in microseconds, and the position of the event that is meant; START for the end of a window."""

    moment: int
    position: int = START


class Events(NamedTuple):
    """Some events of a stream, each with its moment by some clock, its position, and how many triples it has."""

    moments: Numbers
    positions: Numbers
    sizes: Numbers

    def __len__(self) -> int:
        return len(self.positions)

    def chosen(self, which: NDArray[np.bool_] | slice) -> Events:
        return Events(self.moments[which], self.positions[which], self.sizes[which])

    def above(self, position: int) -> Events:
        """Those that came after a position."""
        return self if not len(self) or self.positions.min() > position else self.chosen(self.positions > position)

    def joined(self, others: Events) -> Events:
        """These and others, in the order of instants."""
        if not len(others):
            return self
        moments, positions, sizes = (np.concatenate(pair) for pair in zip(self, others, strict=True))
        order = np.lexsort((positions, moments))
        return Events(moments[order], positions[order], sizes[order])

    def reached(self, instant: Instant) -> int:
        """How many of them, which are in order, are there at an instant."""
        first, last = (int(np.searchsorted(self.moments, instant.moment, side)) for side in ("left", "right"))
        return first + int(np.searchsorted(self.positions[first:last], instant.position, "right"))

    def instant(self, index: int) -> Instant:
        return Instant(int(self.moments[index]), int(self.positions[index]))


class Arrived(NamedTuple):
    """Events of a stream that a batch brought, in the order of their positions: when each counts as received, when it
    happened, and when it was received."""

    positions: Numbers
    sizes: Numbers
    arrivals: Numbers
    times: Numbers
    received: Numbers

    def by(self, time: TimeDomain) -> Events:
        return Events(self.times if time is TimeDomain.EVENT else self.arrivals, self.positions, self.sizes)

    def above(self, position: int) -> Arrived:
        """Those that came after a position."""
        first = int(np.searchsorted(self.positions, position, "right"))
        return Arrived(*(column[first:] for column in self)) if first else self


def _none() -> Events:
    empty = np.empty(0, np.int64)
    return Events(empty, empty, empty)


NONE = _none()
