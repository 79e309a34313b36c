"""Window assigners: which events belong to which sliding, counting or session window, and the order of instants.

The end of a window comes before all events of that moment, because windows are half-open; events of one moment are
ordered by their positions.

Sliding windows are aligned to the epoch: each ends at a multiple of the step. With a range of 4 and a step of 2:

```
0   2   4   6   8
|-------|               [0, 4)
    |-------|           [2, 6)
        |-------|       [4, 8)
```

Counting windows count triples from the registration of the query on. A window closes with the event that reaches or
passes a multiple of the step: once, even if it passes several. It holds the last `range` triples, and since events are
never divided, all of the event to which the oldest of them belongs. With a range of 5 and a step of 4:

```
event      a   b      c  d
triples    1   2 3 4  5  6 7 8
closes            ^          ^
holds      a, b              b (its last triple is the fifth from the end), c, d
```

A session is a run of events of which each comes less than the gap after the one before. It ends a gap after its last
event. With a gap of 3:

```
events     a b   c        d
session    [a b  c  )     [d  )
```
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from triplewire.model.positions import START
from triplewire.model.subscriptions import TimeDomain

Int64Array: TypeAlias = NDArray[np.int64]


class Instant(NamedTuple):
    """A moment in microseconds, and the position of the event that is meant; START for the end of a window."""

    moment: int
    position: int = START


class TimedEvents(NamedTuple):
    """Some events of a stream, each with its moment by some clock, its position, and how many triples it has."""

    moments: Int64Array
    positions: Int64Array
    sizes: Int64Array

    def __len__(self) -> int:
        return len(self.positions)

    def chosen(self, which: NDArray[np.bool_] | slice) -> TimedEvents:
        return TimedEvents(self.moments[which], self.positions[which], self.sizes[which])

    def above(self, position: int) -> TimedEvents:
        """Return the events after a position."""
        return self if not len(self) or self.positions.min() > position else self.chosen(self.positions > position)

    def joined(self, others: TimedEvents) -> TimedEvents:
        """Return these and other events, in the order of instants."""
        if not len(others):
            return self
        moments, positions, sizes = (np.concatenate(pair) for pair in zip(self, others, strict=True))
        order = np.lexsort((positions, moments))
        return TimedEvents(moments[order], positions[order], sizes[order])

    def reached(self, instant: Instant) -> int:
        """Return how many of them, which are in order, there are at an instant."""
        first, last = (int(np.searchsorted(self.moments, instant.moment, side)) for side in ("left", "right"))
        return first + int(np.searchsorted(self.positions[first:last], instant.position, "right"))

    def instant(self, index: int) -> Instant:
        return Instant(int(self.moments[index]), int(self.positions[index]))


class ArrivedEvents(NamedTuple):
    """Events of a stream that a batch brought, in the order of their positions: when each counts as received, when it
    happened, and when it was received."""

    positions: Int64Array
    sizes: Int64Array
    arrivals: Int64Array
    times: Int64Array
    received: Int64Array

    def by(self, time: TimeDomain) -> TimedEvents:
        return TimedEvents(self.times if time is TimeDomain.EVENT else self.arrivals, self.positions, self.sizes)

    def above(self, position: int) -> ArrivedEvents:
        """Return the events after a position."""
        first = int(np.searchsorted(self.positions, position, "right"))
        return ArrivedEvents(*(column[first:] for column in self)) if first else self


NO_EVENTS = TimedEvents(*np.empty((3, 0), np.int64))


@dataclass(frozen=True)
class WindowBounds:
    """The moments m with `start <= m < end`."""

    start: int
    end: int


@dataclass(frozen=True)
class SlidingWindows:
    """Windows of a `width`, one at each multiple of `step`; all in microseconds. With a step above the width,
    they leave gaps."""

    width: int
    step: int

    def newest(self, moment: int) -> WindowBounds:
        """Return the window that closed last at a moment or before."""
        end = moment // self.step * self.step
        return WindowBounds(end - self.width, end)

    def next(self, moment: int) -> int:
        """The end of the first that closes after a moment."""
        return (moment // self.step + 1) * self.step

    def previous(self, moment: int) -> int:
        """The end of the last that closed before a moment."""
        return (moment - 1) // self.step * self.step

    def closing(self, after: int, through: int) -> range:
        """The ends of those that close after a moment, and up to another."""
        return range(self.next(after), through + 1, self.step)

    def holding(self, moment: int) -> range:
        """The ends of all windows that an event of a moment belongs to: none, if it falls into a gap."""
        return range(self.next(moment), self.last(moment) + 1, self.step)

    def last(self, moment: int) -> int:
        """After this end, no window holds an event of the moment any more."""
        return (moment + self.width) // self.step * self.step

    @property
    def gaps(self) -> bool:
        return self.step > self.width

    def held(self, moments: Int64Array) -> NDArray[np.bool_]:
        """Return a mask of the events that belong to any window."""
        return (moments // self.step + 1) * self.step <= (moments + self.width) // self.step * self.step

    def lost(self, moments: Int64Array, closed: int) -> NDArray[np.bool_]:
        """Return a mask of the events all of whose windows ended at or before a moment."""
        return self.held(moments) & ((moments + self.width) // self.step * self.step <= closed)

    def entering(self, moments: Int64Array, end: int) -> int | None:
        """The end of the first window, after the one with an end, that holds any of these."""
        first = np.maximum((moments // self.step + 1) * self.step, end + self.step)
        found = first[first <= (moments + self.width) // self.step * self.step]
        return int(found.min()) if len(found) else None

    def leaving(self, moment: int) -> int:
        """The end of the first window that begins after a moment."""
        return self.last(moment) + self.step


@dataclass(frozen=True)
class CountingWindows:
    """Windows of `width` triples, one after each `step` triples."""

    width: int
    step: int

    def closing(self, ordinals: Int64Array, before: int) -> Int64Array:
        """Return the indexes of events that close a window. `ordinals` are the numbers of their last triples, in order;
        `before` is that of the event before them."""
        steps = ordinals // self.step
        return np.flatnonzero(np.diff(steps, prepend=before // self.step))

    def oldest(self, ordinals: Int64Array, last: int) -> int:
        """Return the index of the oldest event in the window that the event at index `last` closes."""
        return int(np.searchsorted(ordinals, ordinals[last] - self.width, "right"))


def split_sessions(moments: Int64Array, gap: int) -> list[range]:
    """Return the indexes of the events of each session. Moments are in order."""
    if not len(moments):
        return []
    starts = [0, *(np.flatnonzero(np.diff(moments) >= gap) + 1).tolist(), len(moments)]
    return [range(first, last) for first, last in pairwise(starts)]
