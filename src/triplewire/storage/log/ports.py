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
from types import MappingProxyType
from typing import Final, Protocol, Self, TypeAlias

import pyarrow as pa

from triplewire.model import Erasure, Event

LEAF_EVENTS: Final = 500
"""Events of a stream that are one page of its history: read and written in some 20 ms, and some 300 kB of text. Who
follows a stream by its pages reads the newest again and again, half full on average."""

LEAF_BYTES: Final = 1024 * 1024
"""Text of events from which on such a page is full; the last of them may go over it."""

LEAF_GAP: Final = 64
"""Positions of other streams between two events of a page, from which on they are not read with it: 32,000 at worst in
one page, some 50 ms. What is noted of a gap are 16 bytes or so, for at least as many events."""


PositionRange: TypeAlias = tuple[int, int]
"""The first and the last of some positions."""
AppendedEvent: TypeAlias = tuple[int, int]
"""The position of an event, and the bytes of its text."""


@dataclass(frozen=True)
class Segment:
    """Some events of a stream that follow each other. Times are those at which the first and the last were received,
    in microseconds."""

    number: int
    """Of the stream's leaves, from 0 on."""
    stretches: tuple[PositionRange, ...]
    since: int
    until: int
    events: int = 0
    """When it was written: some may have been erased since."""
    size: int = 0

    @property
    def first(self) -> int:
        return self.stretches[0][0]

    @property
    def last(self) -> int:
        return self.stretches[-1][1]

    @property
    def full(self) -> bool:
        return self.events >= LEAF_EVENTS or self.size >= LEAF_BYTES


@dataclass(frozen=True)
class StreamVolume:
    """How much was ever published to a stream, and when."""

    stream: str
    events: int = 0
    size: int = 0
    """Bytes of text."""
    since: int = 0
    """When the first event was received, and when the newest, in microseconds."""
    until: int = 0
    closed: int = 0
    """How many leaves are full."""
    open: Segment | None = None
    """The one that follows them, where there is an event in it."""
    rough: int = -1
    """The newest leaf in which the clock went back; times tell nothing of the order up to there."""

    @property
    def leaves(self) -> int:
        return self.closed + (self.open is not None)


def extend_volume(
    volume: StreamVolume, arrivals: Sequence[AppendedEvent], received: int
) -> tuple[StreamVolume, list[Segment]]:
    """The volume with events that came, in order and at one time; and the leaves that are full with them."""
    size = volume.size + sum(each for _, each in arrivals)
    full, leaf, rest = list[Segment](), volume.open, iter(arrivals)
    for arrival in rest:
        leaf = leaf or Segment(volume.closed + len(full), (), received, received)
        leaf = _fill_segment(leaf, arrival, rest, received)
        if leaf.full:
            full.append(leaf)
            leaf = None
    since = volume.since if volume.events else received
    events, closed = volume.events + len(arrivals), volume.closed + len(full)
    rough = volume.rough if received >= volume.until else volume.closed
    return StreamVolume(volume.stream, events, size, since, received, closed, leaf, rough), full


def _fill_segment(leaf: Segment, arrival: AppendedEvent, rest: Iterable[AppendedEvent], received: int) -> Segment:
    """The leaf with an event, and with those of the rest that fit."""
    stretches, events, size = [*leaf.stretches], leaf.events, leaf.size
    most, heaviest, gap = LEAF_EVENTS, LEAF_BYTES, LEAF_GAP
    position, weight = arrival
    first, last = stretches.pop() if stretches else (position, position)
    while True:
        if position - last > gap:
            stretches.append((first, last))
            first = position
        last, events, size = position, events + 1, size + weight
        following = None if events >= most or size >= heaviest else next(iter(rest), None)
        if following is None:
            stretches.append((first, last))
            return replace(leaf, stretches=tuple(stretches), until=received, events=events, size=size)
        position, weight = following


_NOTHING: Mapping[str, int] = MappingProxyType({})


@dataclass(frozen=True)
class Publication:
    """Events to append, together and in order."""

    stream: str | Sequence[str]
    """Of all of them, or of each."""
    events: Sequence[Event]
    key: str | None = None
    """By which it is known when it comes again."""
    given: Set[str] = frozenset()
    """Ids of those events that have theirs from the publisher: each is stored once in its stream."""
    apart: bool = False
    """Each event is taken or refused by itself, if its id is taken; else all are, together."""


class AppendResult(tuple[int, ...]):
    """Positions of the events of a publication some of which were there before."""

    repeated: int
    """How many were."""
    others: Mapping[str, int]
    """Ids of its events that others with another text have, and where these are. If there are any, nothing of it is
    stored, and the positions are those; of events that are taken apart, the rest is."""

    def __new__(cls, positions: Iterable[int], repeated: int = 0, others: Mapping[str, int] = _NOTHING) -> Self:
        made = super().__new__(cls, positions)
        made.repeated, made.others = repeated, others
        return made

    def moved(self, start: int) -> AppendResult:
        """The same, with -1, -2 and so on as `start` and what follows it."""

        def place(position: int) -> int:
            return position if position >= 0 else start - 1 - position

        return AppendResult(map(place, self), self.repeated, {id: place(at) for id, at in self.others.items()})


@dataclass(frozen=True)
class LogRetention:
    """What the log keeps: an entry goes when it is older than `age` seconds or beyond the newest `size` bytes.

    Entries go oldest first, up to the first that is kept. Size counts the text of events, as UTF-8.
    """

    age: float | None = None
    size: int | None = None


class Log(Protocol):
    """Events in one order of positions, shared with the registry.

    Called from any thread. Every twin passes the same contract suite (`tests/storage/log/test_contract.py`).
    """

    def append(self, publications: Sequence[Publication]) -> list[Sequence[int]]:
        """Store all of them in one transaction; the positions of each publication, in order.

        Returns only after they are durable. Raises StorageFull when the disk refuses; then none is stored. They are a
        range where all is new. Where a key is known nothing is stored again: the publication gets the range that it
        had. Where ids are given and known, `Places` tell where these events are. Both hold while the log keeps them.
        """

    def read(self, after: int, upto: int, limit: int) -> pa.Table:
        """At most `limit` entries at positions p with `after < p <= upto`, in order, as an `ENTRIES` table."""

    def head(self) -> int:
        """The newest position of log and registry together; 0 before the first."""

    def trim(self, retention: LogRetention, before: int) -> int:
        """Drop what retention lets go, only at positions below `before`; the number of entries dropped."""


class MeasuredLog(Log, Protocol):
    """A log that also knows how long it is."""

    def begin(self) -> int:
        """The position of the oldest entry that was not trimmed away, erased or not; one above the head if there is
        none. What is not there above it was erased."""

    def gone(self, stream: str | None = None) -> int:
        """The position of the newest event of a stream, or of any, that was trimmed away; START where none was. Of what
        was erased before that nobody is told."""

    def reach(self, after: int, upto: int, size: int) -> int:
        """The last position p up to `upto` for which the entries at positions q with `after < q <= p` hold at most
        `size` bytes of text and extensions, not counting the last of them. At least the first entry is among
        them."""


class SegmentedLog(Protocol):
    """A log that knows its streams leaf by leaf, also those whose events it has let go."""

    def volumes(self, after: str = "", limit: int | None = None) -> list[StreamVolume]:
        """Of streams to which anything was ever published, in the order of their names: those after a name, so many at
        most."""

    def volume(self, stream: str) -> StreamVolume | None:
        """Of one stream; None where nothing was ever published to it."""

    def leaves(self, stream: str, numbers: Sequence[int]) -> list[Segment]:
        """Those of the full leaves of a stream that have these numbers, in order. It costs what it gives."""


class ErasableLog(MeasuredLog, Protocol):
    """A log that can forget for good."""

    def losses(self, erasure: Erasure) -> pa.Table:
        """What its entries would lose, as `LOSSES`."""

    def erase(self, erasure: Erasure) -> None:
        """Delete what an erasure names, so that no byte of it is left. An entry that goes whole is read no more; its
        position is not given to another. Doing it again does nothing. Raises StorageFull, or Unavailable where
        somebody is in the way; then it is to be done again."""
