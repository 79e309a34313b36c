"""Clocks: how far time has come, for windows to close.

*Arrival time* is when the log took an event in. It never goes back: where the machine's clock was set back, or an event
became durable later than others that were received after it, the event counts from where time had come to already. So
no event is ever late by arrival.

*Event time* is what publishers say. A watermark follows the greatest of it at a distance, the lateness that the query
allows. Of a stream of which nothing comes any more it follows the clock instead, so that its windows close.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from triplewire.config import limits
from triplewire.ongoing.windows.instants import Numbers

SECOND = 1_000_000


class Arrivals:
    """Arrival time of a place, the same for all its queries."""

    def __init__(self, reached: int | None = None) -> None:
        self.reached = reached
        """Everything that was received before has been seen."""

    def take(self, received: Numbers) -> Numbers:
        """When events count as received that come next, in the order of their positions."""
        if not len(received):
            return received
        least = received[0] if self.reached is None else self.reached
        moments: Numbers = np.maximum(np.maximum.accumulate(received), least)
        self.reached = int(moments[-1])
        return moments

    @staticmethod
    def due(moment: int) -> int:
        """When it comes to a moment though nothing more does."""
        return moment + int(limits.WINDOW_GRACE_SECONDS * SECOND)

    def advance(self, now: int) -> None:
        """At `now` nothing more will come that was received before, but for what is just being made durable."""
        settled = now - int(limits.WINDOW_GRACE_SECONDS * SECOND)
        self.reached = settled if self.reached is None else max(self.reached, settled)


@dataclass(frozen=True)
class Sighting:
    """What a watermark goes by, of one stream: the greatest event time, which counts no further than when the event
    was received, and when the last event was."""

    greatest: int
    received: int

    @classmethod
    def of(cls, times: Numbers, received: Numbers) -> Sighting:
        return cls(int(np.minimum(times, received).max()), int(received.max()))

    def and_then(self, other: Sighting) -> Sighting:
        return Sighting(max(self.greatest, other.greatest), max(self.received, other.received))


@dataclass
class Watermark:
    """Event time of one query: all its windows, over all its streams, close by it."""

    streams: tuple[str, ...]
    lateness: int
    begun: int
    """When the query was registered."""
    seen: dict[str, Sighting] = field(default_factory=dict)
    reached: int | None = None
    """None as long as no event came: until then nobody knows in which year the streams are."""

    def see(self, sightings: Mapping[str, Sighting]) -> None:
        for stream, sighting in sightings.items():
            known = self.seen.get(stream)
            self.seen[stream] = sighting if known is None else known.and_then(sighting)

    def advance(self, now: int) -> None:
        found = self._found(now)
        if found is not None:
            self.reached = found if self.reached is None else max(self.reached, found)

    def _found(self, now: int) -> int | None:
        """The least of all streams that are not idle; where all are, the greatest, moved on with the clock."""
        quiet = now - int(limits.WINDOW_IDLE_SECONDS * SECOND)
        busy = [name for name in self.streams if self._last(name) >= quiet]
        if any(name not in self.seen for name in busy):
            return None
        if busy:
            return min(self.seen[name].greatest for name in busy) - self.lateness
        return max(self._moved(quiet), default=None)

    def _last(self, stream: str) -> int:
        return self.seen[stream].received if stream in self.seen else self.begun

    def _moved(self, quiet: int) -> Iterable[int]:
        return (each.greatest + quiet - each.received - self.lateness for each in self.seen.values())

    def due(self, moment: int, now: int) -> int | None:
        """When, after now, it may come to a moment though nothing more does; None where that is never."""
        if not self.seen:
            return None
        idle = int(limits.WINDOW_IDLE_SECONDS * SECOND)
        quiet = [self._last(name) + idle + 1 for name in self.streams]
        passing = min(moment + self.lateness - each.greatest + each.received + idle for each in self.seen.values())
        return min(each for each in (*quiet, max(passing, *quiet, now + 1)) if each > now)

    def state(self) -> dict[str, Any]:
        """As JSON."""
        seen = {name: [each.greatest, each.received] for name, each in self.seen.items()}
        return {"begun": self.begun, "reached": self.reached, "seen": seen}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.begun, self.reached = state["begun"], state["reached"]
        self.seen = {name: Sighting(*each) for name, each in state["seen"].items()}
