"""Names: whether an event of an id is in a stream already, for a few microseconds.

A name is 64 bits of stream and id. In the log's file they lie in the order of positions, so that a commit appends some
bytes and no tree is torn open. To be found they are sorted in memory, in runs that grow by being merged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from triplewire.config import limits

Name: TypeAlias = tuple[str, str]
"""A stream, and the id of an event in it."""

Hashes: TypeAlias = npt.NDArray[np.uint64]

NONE = 0
"""In place of a hash: the event at that position is not known by a name."""


def hashed(name: Name) -> int:
    """The 64 bits of a name, never `NONE`."""
    stream, id = name
    return int.from_bytes(blake2b(f"{stream}\n{id}".encode(), digest_size=8).digest(), "little") or 1


def packed(names: Sequence[Name | None], hashes: Mapping[Name, int]) -> bytes:
    """The hashes of events at successive positions."""
    return np.array([NONE if name is None else hashes[name] for name in names], np.uint64).tobytes()


def unpacked(data: bytes) -> Hashes:
    return np.frombuffer(data, np.uint64)


@dataclass(frozen=True)
class Run:
    """Hashes in order, with their positions."""

    hashes: Hashes
    positions: npt.NDArray[np.int64]


class Names:
    """Hashes of names and where they are. It may say a position too many, never one too few; whoever asks looks."""

    def __init__(self) -> None:
        self.upto = 0
        """The position of the last hashes that were added."""
        self._runs: list[Run] = []

    def add(self, blobs: Sequence[tuple[int, bytes]]) -> None:
        """Hashes of events, each time from a position on; all are above those that were added."""
        if not blobs:
            return
        self.upto = blobs[-1][0]
        found = [unpacked(data) for _, data in blobs]
        places = [np.arange(first, first + len(each)) for (first, _), each in zip(blobs, found, strict=True)]
        hashes, positions = np.concatenate(found), np.concatenate(places)
        there = np.flatnonzero(hashes != NONE)
        for start in range(0, len(there), limits.NAMES_RUN):
            rows = there[start : start + limits.NAMES_RUN]
            self._runs.append(_sorted(hashes[rows], positions[rows]))
            while len(self._runs) > 1 and self._may_merge(*self._runs[-2:]):
                self._runs[-2:] = [_merged(*self._runs[-2:])]

    def find(self, hashes: Sequence[int]) -> list[int]:
        """Positions at which one of the hashes may be."""
        asked = np.array(hashes, np.uint64)
        return [position for run in self._runs for position in _found(run, asked)]

    def forget(self, before: int) -> None:
        """Let go of runs that end before a position."""
        self._runs = [run for run in self._runs if run.positions.max() >= before]

    @staticmethod
    def _may_merge(older: Run, newer: Run) -> bool:
        sizes = len(older.hashes), len(newer.hashes)
        return sizes[0] < 2 * sizes[1] and sum(sizes) <= limits.NAMES_RUN


def _sorted(hashes: Hashes, positions: npt.NDArray[np.int64]) -> Run:
    order = np.argsort(hashes)
    return Run(hashes[order], positions[order])


def _merged(older: Run, newer: Run) -> Run:
    return _sorted(np.concatenate([older.hashes, newer.hashes]), np.concatenate([older.positions, newer.positions]))


def _found(run: Run, asked: Hashes) -> Iterator[int]:
    starts = np.searchsorted(run.hashes, asked)
    hits = np.flatnonzero(run.hashes[np.minimum(starts, len(run.hashes) - 1)] == asked)
    for hit in hits:
        end = np.searchsorted(run.hashes, asked[hit], side="right")
        yield from run.positions[starts[hit] : end].tolist()
