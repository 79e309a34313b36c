"""Counts: windows of a number of triples.

Triples are counted from the registration of the query on, event by event. A window closes with the event that reaches
or passes a multiple of the step: once, even if it passes several. It then holds the last triples, as many as the range
says, and as events are never divided, all of the event to which the oldest of them belongs. So an event is in the
window while its own last triple is among the last `range` ones. With a range of 5 and a step of 4:

```
event      a   b      c  d
triples    1   2 3 4  5  6 7 8
closes            ^          ^
holds      a, b              b (its last triple is the fifth from the end), c, d
```
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from triplewire.ongoing.windows.instants import Numbers


@dataclass(frozen=True)
class Counting:
    """Windows of `width` triples, one after each `step` triples."""

    width: int
    step: int

    def closing(self, ordinals: Numbers, before: int) -> Numbers:
        """Which events close a window: their places. `ordinals` are the numbers of their last triples, in order;
        `before` is that of the event before them."""
        steps = ordinals // self.step
        return np.flatnonzero(np.diff(steps, prepend=before // self.step))

    def oldest(self, ordinals: Numbers, last: int) -> int:
        """The place of the oldest event in the window that the event at a place closes."""
        return int(np.searchsorted(ordinals, ordinals[last] - self.width, "right"))
