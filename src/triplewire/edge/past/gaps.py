"""Gaps: what a client that resumes has missed, and will not hear of any more."""

from __future__ import annotations

from dataclasses import dataclass

from triplewire.matching.event_history import ColdTier
from triplewire.model import START
from triplewire.model.subscriptions import Names
from triplewire.storage.log.ports import MeasuredLog


@dataclass(frozen=True)
class Gap:
    """Between these positions events are missing, at both ends included; at the last of them there was one."""

    first: int
    last: int

    @property
    def earliest(self) -> int:
        """The first position at which there may be something."""
        return self.last + 1


def lost(log: MeasuredLog, archive: ColdTier | None, streams: Names = None) -> int:
    """The newest position of an event of a stream, of some or of any, that neither the log has any more nor the
    archive; START where there is none. What was erased is not lost: nobody is to be told of it.

    Both let go of the oldest first, so that of a stream everything up to there is gone, as far as no clock jumped.
    """
    if isinstance(streams, tuple):
        return max((lost(log, archive, each) for each in streams), default=START)
    # The log first: what it lets go of meanwhile is in the archive when that is looked at.
    gone = log.gone(streams)
    if archive is None or gone == START or gone > archive.upto():
        return gone
    return min(gone, archive.floor(streams))


def gap_after(log: MeasuredLog, archive: ColdTier | None, after: int, streams: Names = None) -> Gap | None:
    """What is missing after a position; None where nothing is. Who asks for `earliest` asks for what is kept, so there
    is no gap."""
    last = lost(log, archive, streams)
    return Gap(after + 1, last) if START < after < last else None
