"""Leaves: what was published to a stream, in parts of bounded size whose ends never move.

```
position   1 · · 4 5 · · · · · · · · · · 16 17 18 · 20 ──▶      of one stream among others
leaf       └─── 0 ───┘ └────────── 1 ─────────┘ └─ 2 ─▶         0 and 1 are full, 2 is open
```

A leaf is full with its last event, and from then on the same for good: what is erased or not kept any longer is missing
in it, and no other event ever takes its place. Where the events of a leaf lie far apart it has several stretches of
positions, so that a stream of few events is read without those of all others in between.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from triplewire.config import limits

Stretch: TypeAlias = tuple[int, int]
"""The first and the last of some positions."""
Arrival: TypeAlias = tuple[int, int]
"""The position of an event, and the bytes of its text."""


@dataclass(frozen=True)
class Leaf:
    """Some events of a stream that follow each other. Times are those at which the first and the last were received,
    in microseconds."""

    number: int
    """Of the stream's leaves, from 0 on."""
    stretches: tuple[Stretch, ...]
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
        return self.events >= limits.LEAF_EVENTS or self.size >= limits.LEAF_BYTES


@dataclass(frozen=True)
class Volume:
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
    open: Leaf | None = None
    """The one that follows them, where there is an event in it."""
    rough: int = -1
    """The newest leaf in which the clock went back; times tell nothing of the order up to there."""

    @property
    def leaves(self) -> int:
        return self.closed + (self.open is not None)


def grown(volume: Volume, arrivals: Sequence[Arrival], received: int) -> tuple[Volume, list[Leaf]]:
    """The volume with events that came, in order and at one time; and the leaves that are full with them."""
    size = volume.size + sum(each for _, each in arrivals)
    full, leaf, rest = list[Leaf](), volume.open, iter(arrivals)
    for arrival in rest:
        leaf = leaf or Leaf(volume.closed + len(full), (), received, received)
        leaf = _filled(leaf, arrival, rest, received)
        if leaf.full:
            full.append(leaf)
            leaf = None
    since = volume.since if volume.events else received
    events, closed = volume.events + len(arrivals), volume.closed + len(full)
    rough = volume.rough if received >= volume.until else volume.closed
    return Volume(volume.stream, events, size, since, received, closed, leaf, rough), full


def _filled(leaf: Leaf, arrival: Arrival, rest: Iterable[Arrival], received: int) -> Leaf:
    """The leaf with an event, and with those of the rest that fit."""
    stretches, events, size = [*leaf.stretches], leaf.events, leaf.size
    most, heaviest, gap = limits.LEAF_EVENTS, limits.LEAF_BYTES, limits.LEAF_GAP
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
