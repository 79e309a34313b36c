"""Restarts: edges that `up` started are replaced one after the other, while clients go on."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass

from triplewire.config import Settings, limits
from triplewire.config.status import read_heartbeat, read_statuses
from triplewire.model.clock import Clock, SystemClock
from triplewire.model.errors import Unavailable

_LOOK_SECONDS = 0.1


@dataclass(frozen=True)
class Restart:
    """One that was asked for, and the processes that were there before."""

    settings: Settings
    before: frozenset[int]
    clock: Clock

    @classmethod
    def begun(cls, settings: Settings) -> Restart:
        """Ask the process that watches over the edges. Raises Unavailable where none does."""
        clock = SystemClock()
        before = frozenset(each.pid for each in read_statuses(settings.standings, clock))
        supervisor = read_heartbeat(settings.supervision).pid
        try:
            if not supervisor:
                raise ProcessLookupError
            os.kill(supervisor, signal.SIGHUP)
        except ProcessLookupError:
            raise Unavailable(f"no `triplewire up` watches over {settings.data}; say which with --data") from None
        return cls(settings, before, clock)

    def done(self) -> bool:
        """Whether others have taken the places of all of them."""
        found = read_statuses(self.settings.standings, self.clock)
        return any(each.state == "ready" for each in found) and not self.before & {each.pid for each in found}

    def wait(self, seconds: float = limits.RESTART_SECONDS) -> None:
        """Until it is done. Raises Unavailable if that takes too long."""
        end = self.clock.ticks() + seconds * max(1, len(self.before))
        while not self.done():
            if self.clock.ticks() > end:
                raise Unavailable(f"the edges were not replaced; see {self.settings.data / 'logs' / 'edge.log'}")
            time.sleep(_LOOK_SECONDS)
