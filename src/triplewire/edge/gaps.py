"""Gaps: what a client that resumes has missed, and will not hear of any more."""

from __future__ import annotations

from dataclasses import dataclass

from triplewire.edge.ports import Entries
from triplewire.matching.chronicles import Archive
from triplewire.model import START
from triplewire.registry.ports import Registry


@dataclass(frozen=True)
class Gap:
    """Between these positions events are missing, at both ends included; at the last of them there was one."""

    first: int
    last: int

    @property
    def earliest(self) -> int:
        """The first position at which there may be something."""
        return self.last + 1


def lost(log: Entries, archive: Archive | None, stream: str | None = None) -> int:
    """The newest position of an event of a stream, or of any, that neither the log has any more nor the archive; START
    where there is none. What was erased is not lost: nobody is to be told of it.

    Both let go of the oldest first, so that of a stream everything up to there is gone, as far as no clock jumped.
    """
    # The log first: what it lets go of meanwhile is in the archive when that is looked at.
    gone = log.gone(stream)
    if archive is None or gone == START or gone > archive.upto():
        return gone
    return min(gone, archive.floor(stream))


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
