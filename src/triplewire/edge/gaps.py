"""Gaps: whether what a client resumes from is still there."""

from __future__ import annotations

from triplewire.edge.ports import Entries
from triplewire.model import START
from triplewire.registry.ports import Registry


def gap_after(log: Entries, registry: Registry, after: int) -> int | None:
    """The first position that is kept, if events after the given one were let go; else None.

    Positions have no holes: what is neither an event that is kept nor a change of the registry was an event that
    is kept no more. Who asks for `earliest` asks for what is kept, so there is no gap.
    """
    head = log.head()
    if after == START or after >= head:
        return None
    first = log.read(START, head, 1)
    begin: int = first.column("position")[0].as_py() if first.num_rows else head + 1
    between = begin - 1 - after
    return begin if between > 0 and len(registry.changes(after, begin - 1)) < between else None
