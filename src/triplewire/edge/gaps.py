"""Gaps: whether what a client resumes from is still there."""

from __future__ import annotations

from triplewire.edge.ports import Entries
from triplewire.model import START
from triplewire.registry.ports import Registry


def gap_after(log: Entries, registry: Registry, after: int) -> int | None:
    """The first position that is kept, if events after the given one were let go; else None.

    Positions have no holes: what lies before all that is kept and is no change of the registry was an event that is
    kept no more. What was erased is no gap: nobody is to be told of it. Who asks for `earliest` asks for what is kept,
    so there is no gap.
    """
    head = log.head()
    if after == START or after >= head:
        return None
    begin = log.begin()
    between = begin - 1 - after
    return begin if between > 0 and len(registry.changes(after, begin - 1)) < between else None
