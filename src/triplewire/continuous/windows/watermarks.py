"""Watermarks: how far arrival time and event time have come, and revisions of windows for late events.

*Arrival time* is when the log took an event in. It never goes back: where the machine's clock was set back, or an
event became durable later than others that were received after it, the event counts from where time had come to
already. So no event is ever late by arrival.

*Event time* is set by publishers. A watermark follows the greatest of it at a distance, the lateness that the query
allows. For an idle stream it follows the clock instead, so that its windows close.

A time window is kept for revision as long after its end as the widest window of its query is wide, and no longer than
for `REVISED_WINDOWS` steps. Later events are dropped.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from triplewire.continuous.windows.assigners import Instant, Int64Array, SlidingWindows, TimedEvents
from triplewire.continuous.windows.panes import TimePane, WindowFiring, WindowView, last_close, next_close

WINDOW_GRACE_SECONDS: Final = 0.5
"""After the end of a window by arrival time, until it closes though nothing more came: an event that was received
before may yet be on its way to the disk. One that takes longer counts for the next window."""

WINDOW_IDLE_SECONDS: Final = 5.0
"""The idle time of a stream after which its watermark follows the clock, so that windows close by event time, too.
Other streams of the same query do not wait for it."""

REVISED_WINDOWS: Final = 1_000
"""Windows, by their steps, that are kept for revision when events come late; no longer than they are wide."""


SECOND = 1_000_000


class ArrivalClock:
    """Arrival time of a partition, the same for all its queries."""

    def __init__(self, reached: int | None = None) -> None:
        self.reached = reached
        """Everything that was received before has been processed."""

    def take(self, received: Int64Array) -> Int64Array:
        """Return when each of the next events, in the order of their positions, counts as received."""
        if not len(received):
            return received
        least = received[0] if self.reached is None else self.reached
        moments: Int64Array = np.maximum(np.maximum.accumulate(received), least)
        self.reached = int(moments[-1])
        return moments

    @staticmethod
    def due(moment: int) -> int:
        """Return when it reaches a moment even without events."""
        return moment + int(WINDOW_GRACE_SECONDS * SECOND)

    def advance(self, now: int) -> None:
        settled = now - int(WINDOW_GRACE_SECONDS * SECOND)
        self.reached = settled if self.reached is None else max(self.reached, settled)


@dataclass(frozen=True)
class StreamProgress:
    """The progress of one stream: the greatest event time, at most the time of receipt, and when the last event was
    received."""

    greatest: int
    received: int

    @classmethod
    def from_times(cls, times: Int64Array, received: Int64Array) -> StreamProgress:
        return cls(int(np.minimum(times, received).max()), int(received.max()))

    def and_then(self, other: StreamProgress) -> StreamProgress:
        return StreamProgress(max(self.greatest, other.greatest), max(self.received, other.received))


@dataclass
class Watermark:
    """Event time of one query: all its windows, over all its streams, close by it."""

    streams: tuple[str, ...]
    lateness: int
    begun: int
    """When the query was registered."""
    seen: dict[str, StreamProgress] = field(default_factory=dict)
    reached: int | None = None
    """None as long as no event came: until then nobody knows in which year the streams are."""

    def see(self, progress: Mapping[str, StreamProgress]) -> None:
        for stream, seen in progress.items():
            known = self.seen.get(stream)
            self.seen[stream] = seen if known is None else known.and_then(seen)

    def advance(self, now: int) -> None:
        time = self._event_time(now)
        if time is not None:
            self.reached = time if self.reached is None else max(self.reached, time)

    def _event_time(self, now: int) -> int | None:
        """Return the least of all streams that are not idle; if all are idle, the greatest, advanced by the clock."""
        quiet = now - int(WINDOW_IDLE_SECONDS * SECOND)
        busy = [name for name in self.streams if self._last(name) >= quiet]
        if any(name not in self.seen for name in busy):
            return None
        if busy:
            return min(self.seen[name].greatest for name in busy) - self.lateness
        advanced = (each.greatest + quiet - each.received - self.lateness for each in self.seen.values())
        return max(advanced, default=None)

    def _last(self, stream: str) -> int:
        return self.seen[stream].received if stream in self.seen else self.begun

    def due(self, moment: int, now: int) -> int | None:
        """Return when, after `now`, it may reach a moment even without events; None for never."""
        if not self.seen:
            return None
        idle = int(WINDOW_IDLE_SECONDS * SECOND)
        quiet = [self._last(name) + idle + 1 for name in self.streams]
        passing = min(moment + self.lateness - each.greatest + each.received + idle for each in self.seen.values())
        return min(each for each in (*quiet, max(passing, *quiet, now + 1)) if each > now)

    def state(self) -> dict[str, Any]:
        seen = {name: [each.greatest, each.received] for name, each in self.seen.items()}
        return {"begun": self.begun, "reached": self.reached, "seen": seen}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.begun, self.reached = state["begun"], state["reached"]
        self.seen = {name: StreamProgress(*each) for name, each in state["seen"].items()}


def revision_time(windows: Sequence[SlidingWindows]) -> int:
    """Return how long after its end a window of a query is kept for revision, in microseconds."""
    return min(max(each.width for each in windows), REVISED_WINDOWS * min(each.step for each in windows))


class WindowRevisions:
    """The revisions of a query all of whose windows are sliding."""

    def __init__(self, panes: Sequence[TimePane], spare: int, *, differences: bool) -> None:
        """Windows are kept for a `spare` time after their end. With `differences`, the result of a window depends on
        the one before it, too."""
        self._panes = tuple(panes)
        self._differences = differences
        self._closed: list[tuple[Instant, int]] = []
        """Up to where windows had closed, and up to which position events were known then."""
        self._revised: dict[Instant, tuple[int, int]] = {}
        """Revisions so far by instant: how many, and the position up to which events were known at the last."""
        self._due: set[Instant] = set()
        self._spare = spare

    def late(self, pane: TimePane, events: TimedEvents, begun: Instant, closed: Instant) -> None:
        """Schedule revisions for the events that come after windows have closed up to an instant."""
        sliding = pane.sliding
        least = max(begun, Instant(closed.moment - self._spare))
        first = (events.moments // sliding.step + 1) * sliding.step
        last = (events.moments + sliding.width) // sliding.step * sliding.step
        late = (first <= last) & (first <= closed.moment) & (last > least.moment - sliding.step)
        for start, end in np.unique(np.stack([first[late], last[late]], axis=1), axis=0).tolist():
            self._schedule(max(Instant(start - 1), least), min(Instant(end + sliding.step - 1), closed), closed)

    def _schedule(self, after: Instant, through: Instant, closed: Instant) -> None:
        instant = next_close(self._panes, after)
        while instant is not None and instant <= through:
            self._due.add(instant)
            instant = next_close(self._panes, instant)
        if self._differences and instant is not None and instant <= closed:
            self._due.add(instant)

    def closed(self, instant: Instant, position: int) -> None:
        """Record that windows have closed up to an instant, over the events up to a position. Forget what is over."""
        least = Instant(instant.moment - self._spare)
        self._closed = [each for each in self._closed if each[0] > least]
        if not self._closed or self._closed[-1][0] < instant:
            self._closed.append((instant, position))
        self._revised = {each: last for each, last in self._revised.items() if each > least}
        self._due = {each for each in self._due if each > least}

    def firings(self, begun: Instant, position: int, most: int) -> Iterator[WindowFiring]:
        """Yield the oldest revisions that are due, over the events up to a position."""
        for instant in sorted(self._due)[:most]:
            revision, known = self._revised.get(instant, (0, self._known(instant)))
            self._due.remove(instant)
            self._revised[instant] = revision + 1, position
            (now, before), was = (self._views(instant, begun, each) for each in (position, known))
            yield WindowFiring(now, before, revision + 1, was)

    def _views(self, instant: Instant, begun: Instant, position: int) -> tuple[WindowView, WindowView | None]:
        earlier = last_close(self._panes, instant)
        return self.view(instant, position), self.view(earlier, position) if earlier > begun else None

    def view(self, instant: Instant, position: int) -> WindowView:
        return WindowView(instant, tuple(each.at(instant, position) for each in self._panes))

    def _known(self, instant: Instant) -> int:
        """Return the position up to which events were known when windows closed at an instant."""
        return self._closed[bisect_left(self._closed, instant, key=lambda each: each[0])][1]

    @property
    def due(self) -> bool:
        """Is there anything to report again?"""
        return bool(self._due)

    def state(self) -> dict[str, Any]:
        return {
            "closed": [[*instant, position] for instant, position in self._closed],
            "revised": [[*instant, *last] for instant, last in self._revised.items()],
            "due": [[*instant] for instant in sorted(self._due)],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        self._closed = [(Instant(*instant), known) for *instant, known in state["closed"]]
        self._revised = {Instant(*instant): (count, known) for *instant, count, known in state["revised"]}
        self._due = {Instant(*each) for each in state["due"]}
