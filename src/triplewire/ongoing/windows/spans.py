"""Spans: windows of time.

They are aligned to the epoch: each ends at a multiple of the step, and is half-open. With a range of 4 and a step of 2:

```
0   2   4   6   8
|-------|               [0, 4)
    |-------|           [2, 6)
        |-------|       [4, 8)
```
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from triplewire.ongoing.windows.instants import Numbers


@dataclass(frozen=True)
class Span:
    """The moments m with `start <= m < end`."""

    start: int
    end: int


@dataclass(frozen=True)
class Sliding:
    """Windows of a `width`, one at each multiple of `step`; all in microseconds. With a step above the width,
    they leave gaps."""

    width: int
    step: int

    def newest(self, moment: int) -> Span:
        """The one that closed last at a moment or before."""
        end = moment // self.step * self.step
        return Span(end - self.width, end)

    def next(self, moment: int) -> int:
        """The end of the first that closes after a moment."""
        return (moment // self.step + 1) * self.step

    def previous(self, moment: int) -> int:
        """The end of the last that closed before a moment."""
        return (moment - 1) // self.step * self.step

    def closing(self, after: int, upto: int) -> range:
        """The ends of those that close after a moment, and up to another."""
        return range(self.next(after), upto + 1, self.step)

    def holding(self, moment: int) -> range:
        """The ends of all windows that an event of a moment belongs to: none, if it falls into a gap."""
        return range(self.next(moment), self.last(moment) + 1, self.step)

    def last(self, moment: int) -> int:
        """After this end, no window holds an event of the moment any more."""
        return (moment + self.width) // self.step * self.step

    @property
    def gaps(self) -> bool:
        return self.step > self.width

    def held(self, moments: Numbers) -> NDArray[np.bool_]:
        """Which events belong to any window."""
        return (moments // self.step + 1) * self.step <= (moments + self.width) // self.step * self.step

    def lost(self, moments: Numbers, closed: int) -> NDArray[np.bool_]:
        """Which events would have belonged to windows all of which ended at or before a moment."""
        return self.held(moments) & ((moments + self.width) // self.step * self.step <= closed)

    def entering(self, moments: Numbers, end: int) -> int | None:
        """The end of the first window, after the one with an end, that holds any of these."""
        first = np.maximum((moments // self.step + 1) * self.step, end + self.step)
        found = first[first <= (moments + self.width) // self.step * self.step]
        return int(found.min()) if len(found) else None

    def leaving(self, moment: int) -> int:
        """The end of the first window that begins after a moment."""
        return self.last(moment) + self.step
