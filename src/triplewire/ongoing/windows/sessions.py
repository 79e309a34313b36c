"""Sessions: windows that go on as long as something comes.

A session is a run of events of which each comes less than the gap after the one before. It begins with its first event
and ends a gap after its last one. With a gap of 3:

```
events     a b   c        d
session    [a b  c  )     [d  )
```
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from triplewire.ongoing.windows.instants import Numbers


def runs(moments: Numbers, gap: int) -> list[range]:
    """The places of the events of each session. Moments are in order."""
    if not len(moments):
        return []
    starts = [0, *(np.flatnonzero(np.diff(moments) >= gap) + 1).tolist(), len(moments)]
    return [range(first, last) for first, last in pairwise(starts)]
