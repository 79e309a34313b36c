"""Postings: the rows of a table by the constants in their columns."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from triplewire.config import limits
from triplewire.matching.bags.pairings import Int32, Int64, Partners


@dataclass
class Postings:
    """Rows of constants. Those that came last lie in no list yet, and are candidates each time."""

    rows: Int32
    _sorted: int = -1
    _lists: dict[int, tuple[Int64, Int64]] = field(default_factory=dict)
    """For each column where the rows of each constant begin, and the rows."""

    def __post_init__(self) -> None:
        if self._sorted < 0:
            self._sorted = len(self.rows)

    def with_rows(self, added: Int32) -> Postings:
        rows = np.concatenate([self.rows, added])
        if len(rows) - self._sorted > max(limits.BAG_LATE_ROWS, len(rows) // 20):
            return Postings(rows)
        return Postings(rows, self._sorted, self._lists)

    def cost(self, value: np.ndarray, columns: list[int], partners: Partners) -> int:
        """How many candidates there are, those that are there twice counted twice."""
        constant, _ = _partners_of(value, partners)
        found = 0
        for column in columns:
            start, _ = self._list(column)
            found += int((start[_bounded(constant + 1, start)] - start[_bounded(constant, start)]).sum())
        return found + (len(self.rows) - self._sorted) * len(value)

    def candidates(
        self, event: Int64, value: np.ndarray, columns: list[int], partners: Partners, events: Int64
    ) -> tuple[Int64, Int64]:
        """Pairs of event and row, each once."""
        constant, place = _partners_of(value, partners)
        pairs = [self._late(events)]
        for column in columns:
            start, rows = self._list(column)
            first, last = start[_bounded(constant, start)], start[_bounded(constant + 1, start)]
            at, which = _ranges(first, last)
            pairs.append(event[place[which]] * len(self.rows) + rows[at])
        found = np.unique(np.concatenate(pairs))
        return found // len(self.rows), found % len(self.rows)

    def _late(self, events: Int64) -> Int64:
        late = np.arange(self._sorted, len(self.rows))
        return (events[:, None] * len(self.rows) + late[None, :]).reshape(-1)

    def _list(self, column: int) -> tuple[Int64, Int64]:
        if column not in self._lists:
            constants = self.rows[: self._sorted, column]
            counts = np.bincount(constants) if len(constants) else np.zeros(0, np.int64)
            start = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
            self._lists[column] = (start, np.argsort(constants, kind="stable"))
        return self._lists[column]


def _bounded(constant: Int64, start: Int64) -> Int64:
    """A constant that the column has not yet has an empty list."""
    return np.minimum(constant, len(start) - 1)


def _partners_of(value: np.ndarray, partners: Partners) -> tuple[Int64, Int64]:
    """The partners of these values, and for each the place of its value."""
    at, which = _ranges(partners.start[value], partners.start[value + 1])
    return partners.constant[at].astype(np.int64), which


def _ranges(first: Int64, last: Int64) -> tuple[Int64, Int64]:
    """All numbers of the ranges one after another, and for each the range that it is of."""
    sizes = last - first
    which = np.repeat(np.arange(len(sizes)), sizes)
    before = np.cumsum(sizes) - sizes
    return np.arange(len(which)) - before[which] + first[which], which
