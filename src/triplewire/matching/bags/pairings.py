"""Pairings: whether pairs of an event and a subscription hold, clause by clause; compiled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from triplewire.native.functions import compiled

Int64 = npt.NDArray[np.int64]
Int32 = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]

_SOME, _EQUAL, _SUB, _SUPER = 0, 1, 2, 3
_ELEMENTS = 64


class Values(NamedTuple):
    """The values of each clause and event, by number: those of clause c and event e lie from `start[c * events + e]`
    on. `there` says whether the event has the predicate at all."""

    start: Int64
    value: Int32
    there: Bools
    events: int


class Partners(NamedTuple):
    """The constants that each value is in a relation with, in order."""

    start: Int64
    constant: Int32


class Rows(NamedTuple):
    """The constants of each subscription. Those of a clause are the columns from `first[c]` to `first[c + 1]`."""

    constants: Int32
    first: Int64
    how: Int64


class Scratch(NamedTuple):
    """What a pairing works on: for each value its elements as bits and the one that it holds; for each element the
    value that holds it and the one that it was reached from; and those that are still to be looked at."""

    masks: Int64
    held: Int64
    owner: Int64
    way: Int64
    queue: Int64

    @classmethod
    def of(cls, values: int) -> Scratch:
        sizes = (values, values, _ELEMENTS, _ELEMENTS, _ELEMENTS)
        return cls(*(np.zeros(size, np.int64) for size in sizes))


def holding(event: Int64, row: Int64, values: Values, partners: Partners, rows: Rows) -> Bools:
    """For each pair whether all clauses hold."""
    found = np.zeros(len(event), np.bool_)
    scratch = Scratch.of(int(np.diff(values.start).max(initial=1)))
    _hold(event, row, values, partners, rows, scratch, found)
    return found


@compiled
def _hold(
    event: Int64, row: Int64, values: Values, partners: Partners, rows: Rows, scratch: Scratch, found: Bools
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
            if not _possible(rows.how[clause], last - first, size):
                holds = False
                break
            seen, each = _masked(values.value[first:last], partners, rows, clause, row[pair], masks)
            if rows.how[clause] == _SOME:
                holds = seen != 0
            else:
                full = seen == (1 << size) - 1
                holds = (each or rows.how[clause] == _SUPER) and (full or rows.how[clause] == _SUB)
                wanted = size if rows.how[clause] == _SUPER else last - first
                if holds and wanted > 1:
                    holds = _paired(last - first, wanted, scratch)
            if not holds:
                break
        found[pair] = holds


@compiled
def _possible(how: int, count: int, size: int) -> bool:
    """By numbers alone."""
    if how == _EQUAL:
        return count == size
    return count <= size if how == _SUB else count >= size


@compiled
def _masked(given: Int32, partners: Partners, rows: Rows, clause: int, row: int, masks: Int64) -> tuple[int, bool]:
    """A bit for each element that a value can be paired with, for each value; all of them together, and whether each
    value has some."""
    seen, each = 0, True
    for at in range(len(given)):
        mask = 0
        start, stop = partners.start[given[at]], partners.start[given[at] + 1]
        for column in range(rows.first[clause], rows.first[clause + 1]):
            if _among(partners.constant, start, stop, rows.constants[row, column]):
                mask |= 1 << (column - rows.first[clause])
        masks[at] = mask
        seen |= mask
        each = each and mask != 0
    return seen, each


@compiled
def _among(sorted_: Int32, low: int, high: int, sought: int) -> bool:
    end = high
    while low < high:
        middle = (low + high) >> 1
        if sorted_[middle] < sought:
            low = middle + 1
        else:
            high = middle
    return low < end and sorted_[low] == sought


@compiled
def _paired(count: int, wanted: int, scratch: Scratch) -> bool:
    """Whether so many of the values can be paired, each with an element of its own. By augmenting paths: a value
    without a free element takes one whose value can move on to another."""
    for element in range(_ELEMENTS):
        scratch.owner[element] = -1
    found = 0
    for value in range(count):
        scratch.held[value] = -1
        if _placed(value, scratch):
            found += 1
            if found == wanted:
                return True
        elif wanted == count:
            return False
    return found >= wanted


@compiled
def _placed(value: int, scratch: Scratch) -> bool:
    """Find an element for a value by looking breadth first."""
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
