"""The log port: an ordered, durable sequence of events, and the segments of streams.

```
position   1 · · 4 5 · · · · · · · · · · 16 17 18 · 20 ──▶      of one stream among others
segment    └─── 0 ───┘ └────────── 1 ─────────┘ └─ 2 ─▶         0 and 1 are full, 2 is open
```
A segment is full with its last event and never changes from then on: events that are erased or trimmed are missing in
it, and no other event ever takes their position. Where the events of a segment lie far apart it has several ranges of
positions, so that a stream of few events is read without those of all others in between.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import repeat
from types import MappingProxyType
from typing import Final, Protocol, Self, TypeAlias

import pyarrow as pa

from triplewire.model import Erasure, Event, EventColumns

SEGMENT_EVENTS: Final = 500
"""Events in one segment, a page of a stream's history: read and written in 20 ms, 300 kB of text. Clients that follow a
stream by pages read the newest page again and again, half full on average."""

SEGMENT_BYTES: Final = 1024 * 1024
"""Bytes of text from which on a segment is full; its last event may exceed them."""

SEGMENT_GAP: Final = 64
"""Positions of other streams between two events of a segment from which on they are in separate ranges: at worst a
segment spans 32,000 positions, 50 ms. A gap costs 16 bytes, for at least as many events."""

LOOKUP_POSITIONS: Final = 100_000
"""Positions of the log, the newest, that are looked through for a dry run, or for an event by its id: some seconds."""

AppendedEvent: TypeAlias = tuple[int, int]
"""The position of an event, and the bytes of its text."""


@dataclass(frozen=True)
class SegmentLimits:
    """The bounds of one segment."""

    events: int = SEGMENT_EVENTS
    size: int = SEGMENT_BYTES
    gap: int = SEGMENT_GAP


SEGMENT_LIMITS = SegmentLimits()


@dataclass(frozen=True)
class Segment:
    """Consecutive events of a stream. Times are those at which the first and the last were received, in
    microseconds."""

    number: int
    """The number among the segments of the stream, from 0 on."""
    ranges: tuple[tuple[int, int], ...]
    """The first and the last of consecutive positions, or nearly so."""
    since: int
    until: int
    events: int = 0
    """Events when it was written: some may have been erased since."""
    size: int = 0

    @property
    def first(self) -> int:
        return self.ranges[0][0]

    @property
    def last(self) -> int:
        return self.ranges[-1][1]


@dataclass(frozen=True)
class StreamVolume:
    """Totals of a stream since its first event."""

    stream: str
    events: int = 0
    size: int = 0
    since: int = 0
    """Microseconds at which the first event was received; `until` is that of the newest."""
    until: int = 0
    closed: int = 0
    """The number of full segments."""
    open: Segment | None = None
    """The segment after the full ones, if it has an event."""
    unordered: int = -1
    """The newest segment in which the clock went back: up to there, times say nothing about the order."""

    @property
    def segments(self) -> int:
        """The number of segments, full or not."""
        return self.closed + (self.open is not None)


def extend_volume(
    volume: StreamVolume, arrivals: Sequence[AppendedEvent], received: int, limits: SegmentLimits = SEGMENT_LIMITS
) -> tuple[StreamVolume, list[Segment]]:
    """Add events, in order and received at one time; return the new volume, and the segments that are full now."""
    full, segment, taken = list[Segment](), volume.open, 0
    while taken < len(arrivals):
        before = segment or Segment(volume.closed + len(full), (), received, received)
        segment = _fill_segment(before, arrivals[taken : taken + limits.events - before.events], received, limits)
        taken += segment.events - before.events
        if segment.events >= limits.events or segment.size >= limits.size:
            full.append(segment)
            segment = None
    return StreamVolume(
        volume.stream,
        volume.events + len(arrivals),
        volume.size + sum(size for _, size in arrivals),
        volume.since if volume.events else received,
        received,
        volume.closed + len(full),
        segment,
        volume.unordered if received >= volume.until else volume.closed,
    ), full


def _fill_segment(segment: Segment, arrivals: Sequence[AppendedEvent], received: int, limits: SegmentLimits) -> Segment:
    """Fill a segment with events until it is full by bytes; at least with the first."""
    ranges, events, size = [*segment.ranges], segment.events, segment.size
    first, last = ranges.pop() if ranges else (arrivals[0][0], arrivals[0][0])
    for position, weight in arrivals:
        if position - last > limits.gap:
            ranges.append((first, last))
            first = position
        last, events, size = position, events + 1, size + weight
        if size >= limits.size:
            break
    return replace(segment, ranges=(*ranges, (first, last)), until=received, events=events, size=size)


_NOTHING: Mapping[str, int] = MappingProxyType({})


@dataclass(frozen=True)
class Publication:
    """Events to append, together and in order."""

    stream: str | Sequence[str]
    """The stream of all events, or of each."""
    events: Sequence[Event]
    key: str | None = None
    """The idempotency key."""
    given: Set[str] = frozenset()
    """Ids that the publisher gave: each is stored once in its stream."""
    apart: bool = False
    """Whether an event whose id is taken is refused by itself; otherwise all are."""

    @property
    def streams(self) -> Iterable[str]:
        """The stream of each event, or the one of all, again and again."""
        return repeat(self.stream) if isinstance(self.stream, str) else self.stream

    @property
    def ids(self) -> Sequence[str]:
        return self.events.ids if isinstance(self.events, EventColumns) else [event.id for event in self.events]

    @property
    def size(self) -> int:
        """The length of all texts."""
        if isinstance(self.events, EventColumns):
            return int(self.events.texts.nbytes)
        return sum(len(event.text) for event in self.events)


class AppendResult(tuple[int, ...]):
    """Positions of the events of a publication, some of which were stored before."""

    repeated: int
    """The number of events that were stored before."""
    others: Mapping[str, int]
    """Ids that other events with another text have, with their positions. If there are any, nothing is stored, and the
    positions are those; with `apart`, the rest is stored."""

    def __new__(cls, positions: Iterable[int], repeated: int = 0, others: Mapping[str, int] = _NOTHING) -> Self:
        made = super().__new__(cls, positions)
        made.repeated, made.others = repeated, others
        return made

    def shifted(self, start: int) -> AppendResult:
        """The same, with `start` and the positions after it for -1, -2 and so on."""

        def shift(position: int) -> int:
            return position if position >= 0 else start - 1 - position

        return AppendResult(map(shift, self), self.repeated, {id: shift(at) for id, at in self.others.items()})


@dataclass(frozen=True)
class LogRetention:
    """Retention of the log: an entry is dropped when it is older than `age` seconds or beyond the newest `size` bytes.

    Entries go oldest first, up to the first that is kept. Size counts the text of events, as UTF-8.
    """

    age: float | None = None
    size: int | None = None


class Log(Protocol):
    """Events in one order of positions, which the log shares with the registry.

    Called from any thread. Every twin passes the same contract suite (`tests/storage/log/test_contract.py`).
    """

    def append(self, publications: Sequence[Publication]) -> list[Sequence[int]]:
        """Store all of them in one transaction; the positions of each publication, in order.

        Returns only after they are durable. Raises StorageFull when the disk refuses; then none is stored. They are a
        range where all is new. Where a key is known nothing is stored again: the publication gets the range that it
        had. Where ids are given and known, an `AppendResult` has the positions of these events. Both hold while the
        log keeps them.
        """

    def read(self, after: int, through: int, limit: int) -> pa.Table:
        """At most `limit` entries at positions p with `after < p <= through`, in order, as an `ENTRIES` table."""

    def head(self) -> int:
        """The newest position of log and registry together; 0 before the first."""

    def trim(self, retention: LogRetention, before: int) -> int:
        """Drop what retention lets go, only at positions below `before`; the number of entries dropped."""


class MeasuredLog(Log, Protocol):
    """A log that knows its extent."""

    def begin(self) -> int:
        """The position of the oldest entry that was not trimmed, erased or not; one above the head if there is none.
        Entries that are missing above it were erased."""

    def floor(self, stream: str | None = None) -> int:
        """The position of the newest trimmed event of a stream, or of any; START if there is none. Events that were
        erased before do not count."""

    def page_end(self, after: int, through: int, size: int) -> int:
        """The last position p up to `through` for which the entries at positions q with `after < q <= p` hold at most
        `size` bytes of text and extensions, not counting the last of them. At least the first entry is among
        them."""


class SegmentedLog(Protocol):
    """A log with an index of its streams by segment, which also covers trimmed events."""

    def volumes(self, after: str = "", limit: int | None = None) -> list[StreamVolume]:
        """Volumes of all streams ever published to, by name: those after a name, at most `limit`."""

    def volume(self, stream: str) -> StreamVolume | None:
        """The volume of a stream; None if nothing was ever published to it."""

    def segments(self, stream: str, numbers: Sequence[int]) -> list[Segment]:
        """The full segments of a stream with these numbers, in order."""


class EdgeLog(SegmentedLog, MeasuredLog, Protocol):
    """A log that also finds single entries: to expand matches, and to resume from an event."""

    def find(self, event: str, stream: str | None = None) -> int | None:
        """The newest position of the event with this id, in a stream or in any, if it is among the newest
        positions."""

    def entries(self, positions: Sequence[int]) -> pa.Table:
        """The entries at these positions that are still there, in order of position."""


class ErasableLog(MeasuredLog, Protocol):
    """A log whose events can be erased."""

    def losses(self, erasure: Erasure) -> pa.Table:
        """The losses of its entries, as `LOSSES`."""

    def erase(self, erasure: Erasure) -> None:
        """Delete what an erasure names, so that no byte of it is left. An entry that goes whole is read no more; its
        position is not given to another. Doing it again does nothing. Raises StorageFull, or Unavailable where
        somebody is in the way; then it is to be done again."""
