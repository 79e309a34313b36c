"""Pairing of bags: candidate pairs from posting lists, and a compiled bipartite matching that decides each.

A value without a free element takes one whose value can move on to another (augmenting paths).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final, NamedTuple

import numpy as np

from triplewire.kernels.arrays import Flags, Int32, Int64
from triplewire.kernels.compiler import compiled

BAG_LATE_ROWS: Final = 500
"""Subscriptions with bags that are candidates for every event until they are added to the posting lists, which means
to rebuild these."""


class BagTest(IntEnum):
    """The condition on the values of a predicate."""

    SOME = 0
    """One value is related to the one element."""
    EQUAL = 1
    SUB = 2
    SUPER = 3


_SOME, _EQUAL, _SUB, _SUPER = map(int, BagTest)
_ELEMENTS = 64


class ClauseValues(NamedTuple):
    """The values of each clause and event, by number: those of clause c and event e start at `start[c * events +
    e]`. `there` says whether the event has the predicate at all."""

    start: Int64
    value: Int32
    there: Flags
    events: int


class Partners(NamedTuple):
    """The constants that each value is related to, in order."""

    start: Int64
    constant: Int32


class SubscriptionRows(NamedTuple):
    """The constants of each subscription. Clause c has the columns from `first[c]` to `first[c + 1]`."""

    constants: Int32
    first: Int64
    how: Int64


class PairingScratch(NamedTuple):
    """Working memory of a pairing: for each value its elements as bits and the one that it holds; for each element
    the value that holds it and the one that it was reached from; and the search queue."""

    masks: Int64
    held: Int64
    owner: Int64
    way: Int64
    queue: Int64

    @classmethod
    def of(cls, values: int) -> PairingScratch:
        sizes = (values, values, _ELEMENTS, _ELEMENTS, _ELEMENTS)
        return cls(*(np.zeros(size, np.int64) for size in sizes))


def match_pairs(event: Int64, row: Int64, values: ClauseValues, partners: Partners, rows: SubscriptionRows) -> Flags:
    """For each pair, whether all clauses hold."""
    found = np.zeros(len(event), np.bool_)
    scratch = PairingScratch.of(int(np.diff(values.start).max(initial=1)))
    _match_clauses(event, row, values, partners, rows, scratch, found)
    return found


@compiled
def _match_clauses(
    event: Int64,
    row: Int64,
    values: ClauseValues,
    partners: Partners,
    rows: SubscriptionRows,
    scratch: PairingScratch,
    found: Flags,
) -> None:
    masks = scratch.masks
    for pair in range(len(event)):
        holds = True
        for clause in range(len(rows.how)):
            place = clause * values.events + event[pair]
            if not values.there[place]:
                holds = False
                break
            first, last = values.start[place], values.start[place + 1]
            size = rows.first[clause + 1] - rows.first[clause]
            if not _is_possible(rows.how[clause], last - first, size):
                holds = False
                break
            seen, each = _fill_masks(values.value[first:last], partners, rows, clause, row[pair], masks)
            if rows.how[clause] == _SOME:
                holds = seen != 0
            else:
                full = seen == (1 << size) - 1
                holds = (each or rows.how[clause] == _SUPER) and (full or rows.how[clause] == _SUB)
                wanted = size if rows.how[clause] == _SUPER else last - first
                if holds and wanted > 1:
                    holds = _has_pairing(last - first, wanted, scratch)
            if not holds:
                break
        found[pair] = holds


@compiled
def _is_possible(how: int, count: int, size: int) -> bool:
    """Can the counts of values and elements fit?"""
    if how == _EQUAL:
        return count == size
    return count <= size if how == _SUB else count >= size


@compiled
def _fill_masks(
    given: Int32, partners: Partners, rows: SubscriptionRows, clause: int, row: int, masks: Int64
) -> tuple[int, bool]:
    """Set a bit for each element that a value can be paired with. Return the union of all, and whether each value
    has some."""
    seen, each = 0, True
    for at in range(len(given)):
        mask = 0
        start, stop = partners.start[given[at]], partners.start[given[at] + 1]
        for column in range(rows.first[clause], rows.first[clause + 1]):
            if _contains(partners.constant, start, stop, rows.constants[row, column]):
                mask |= 1 << (column - rows.first[clause])
        masks[at] = mask
        seen |= mask
        each = each and mask != 0
    return seen, each


@compiled
def _contains(sorted_: Int32, low: int, high: int, sought: int) -> bool:
    end = high
    while low < high:
        middle = (low + high) >> 1
        if sorted_[middle] < sought:
            low = middle + 1
        else:
            high = middle
    return low < end and sorted_[low] == sought


@compiled
def _has_pairing(count: int, wanted: int, scratch: PairingScratch) -> bool:
    """Can `count` of the values be paired, each with an element of its own? By augmenting paths: a value without a
    free element takes one whose value can move on to another."""
    for element in range(_ELEMENTS):
        scratch.owner[element] = -1
    found = 0
    for value in range(count):
        scratch.held[value] = -1
        if _find_element(value, scratch):
            found += 1
            if found == wanted:
                return True
        elif wanted == count:
            return False
    return found >= wanted


@compiled
def _find_element(value: int, scratch: PairingScratch) -> bool:
    """Find an element for a value, breadth first."""
    masks, held, owner, way, queue = scratch
    reached, head, tail, current = 0, 0, 0, value
    while True:
        left = masks[current] & ~reached
        reached |= left
        element = 0
        while left:
            if left & 1:
                way[element] = current
                queue[tail] = element
                tail += 1
            left >>= 1
            element += 1
        if head == tail:
            return False
        element = queue[head]
        head += 1
        current = owner[element]
        if current < 0:
            break
    while True:
        taker = way[element]
        before = held[taker]
        owner[element], held[taker] = taker, element
        if taker == value:
            return True
        element = before


@dataclass
class Postings:
    """Rows of constants by the constants in their columns. The newest rows are in no posting list yet and are always
    candidates."""

    rows: Int32
    late_rows: int = BAG_LATE_ROWS
    _sorted: int = -1
    _lists: dict[int, tuple[Int64, Int64]] = field(default_factory=dict)
    """For each column, the start of each constant's rows, and the rows."""

    def __post_init__(self) -> None:
        if self._sorted < 0:
            self._sorted = len(self.rows)

    def with_rows(self, added: Int32) -> Postings:
        rows = np.concatenate([self.rows, added])
        if len(rows) - self._sorted > max(self.late_rows, len(rows) // 20):
            return Postings(rows, self.late_rows)
        return Postings(rows, self.late_rows, self._sorted, self._lists)

    def cost(self, value: np.ndarray, columns: list[int], partners: Partners) -> int:
        """An upper bound of the number of candidates."""
        constant, _ = _partners_of(value, partners)
        found = 0
        for column in columns:
            start, _ = self._list(column)
            found += int((start[_clip(constant + 1, start)] - start[_clip(constant, start)]).sum())
        return found + (len(self.rows) - self._sorted) * len(value)

    def candidates(
        self, event: Int64, value: np.ndarray, columns: list[int], partners: Partners, events: Int64
    ) -> tuple[Int64, Int64]:
        """Pairs of event and row, each once."""
        constant, place = _partners_of(value, partners)
        pairs = [self._late(events)]
        for column in columns:
            start, rows = self._list(column)
            first, last = start[_clip(constant, start)], start[_clip(constant + 1, start)]
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


def _clip(constant: Int64, start: Int64) -> Int64:
    """A constant that the column does not have yet has an empty list."""
    return np.minimum(constant, len(start) - 1)


def _partners_of(value: np.ndarray, partners: Partners) -> tuple[Int64, Int64]:
    """The partners of these values, and the index of the value of each."""
    at, which = _ranges(partners.start[value], partners.start[value + 1])
    return partners.constant[at].astype(np.int64), which


def _ranges(first: Int64, last: Int64) -> tuple[Int64, Int64]:
    """The concatenated ranges, and the index of the range of each number."""
    sizes = last - first
    which = np.repeat(np.arange(len(sizes)), sizes)
    before = np.cumsum(sizes) - sizes
    return np.arange(len(which)) - before[which] + first[which], which
