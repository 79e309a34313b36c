"""Journals: which changes of the registry concern more than the index, so that not every worker has to look at all.

An entry is a number, a position and what happened there; the change itself is in the registry.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import IntEnum
from itertools import pairwise
from typing import Protocol

import numpy as np

from triplewire.config.limits import INDEX_CHANGES
from triplewire.native.arrays import Int64
from triplewire.storage.registry.ontologies import ONTOLOGY
from triplewire.storage.registry.ports import RegistryChange
from triplewire.storage.registry.subscriptions import LANE, SHAPE, SUBSCRIPTION

_NEAR = 64
"""Positions between two changes that are read together with what lies between them."""


class Entry(IntEnum):
    """What happened. A lane is one that a shape left the main one for; both last ones are about subscriptions that the
    index does not decide."""

    SHAPE = 0
    ONTOLOGY = 1
    LANE = 2
    MADE = 3
    ENDED = 4

    def at(self, position: int) -> int:
        """As a number."""
        return position * len(Entry) + self


_KINDS = {
    Entry.SHAPE: SHAPE,
    Entry.ONTOLOGY: ONTOLOGY,
    Entry.LANE: LANE,
    Entry.MADE: SUBSCRIPTION,
    Entry.ENDED: SUBSCRIPTION,
}


class Changes(Protocol):
    """That of a registry which matching needs."""

    def changes(self, after: int, upto: int, most: int | None = None) -> Sequence[RegistryChange]:
        """Those at positions p with `after < p <= upto`, in order; or the first of them."""


def looked_up(registry: Changes, numbers: Int64) -> Iterator[RegistryChange]:
    """The changes that entries stand for, in order. Who has ended is told so, whatever came in its place."""
    positions = numbers // len(Entry)
    for number, change in zip(numbers.tolist(), _at(registry, positions, numbers % len(Entry)), strict=True):
        gone = number % len(Entry) == Entry.ENDED
        yield RegistryChange(change.position, change.kind, change.key, None) if gone else change


def made_at(registry: Changes, positions: Int64) -> Iterator[RegistryChange]:
    """The subscriptions that were made at these positions, in order."""
    return _at(registry, positions, np.full(len(positions), Entry.MADE))


def _at(registry: Changes, positions: Int64, entries: Int64) -> Iterator[RegistryChange]:
    """Neighbours are read together."""
    gaps = np.flatnonzero(np.diff(positions) > _NEAR) + 1
    for start, stop in pairwise([0, *gaps.tolist(), len(positions)]):
        for first in range(start, stop, INDEX_CHANGES // _NEAR):
            part = slice(first, min(first + INDEX_CHANGES // _NEAR, stop))
            wanted = positions[part].tolist()
            found = {(each.position, each.kind): each for each in registry.changes(int(wanted[0]) - 1, int(wanted[-1]))}
            yield from (found[at, _KINDS[Entry(kind)]] for at, kind in zip(wanted, entries[part], strict=True))
