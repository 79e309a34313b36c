"""Row stores: append-only arrays of rows with a hash index by join key, rebuilt when many rows have expired.

Hash tables use open addressing and are read by compiled code.
"""

from __future__ import annotations

import numpy as np

from triplewire.continuous.join_network.layout import ROW, SLOT, StoredRows
from triplewire.kernels.arrays import Bytes, Flags, Int32, Int64, Records, UInt64
from triplewire.kernels.compiler import compiled, inlined

_ONE = np.uint64(1)
_TURN = np.uint64(29)


@inlined
def nonzero_key(key: np.uint64) -> np.uint64:
    """Return the key, or one for zero, which marks an empty slot."""
    return key if key != 0 else _ONE


@inlined
def find_slot(index: Records, key: np.uint64) -> int:
    """Return the slot that has a key, or would have it."""
    mask = np.uint64(len(index) - 1)
    place = (key ^ (key >> _TURN)) & mask
    while index[place].key != 0 and index[place].key != key:
        place = (place + _ONE) & mask
    return place  # type: ignore[return-value]


@compiled
def link_rows(index: Records, following: Int32, keys: UInt64, first: int) -> None:
    """Link rows under their keys, the newest first. The first is number `first`; the arrays must be large enough."""
    for each in range(len(keys)):
        key = nonzero_key(keys[each])
        slot = index[find_slot(index, key)]
        if slot.key == 0:
            slot.key = key
            slot.head = -1
        following[first + each] = slot.head
        slot.head = first + each
        slot.count += 1


@compiled
def add_keys(found: UInt64, keys: UInt64) -> None:
    mask = np.uint64(len(found) - 1)
    for each in range(len(keys)):
        key = nonzero_key(keys[each])
        place = (key ^ (key >> _TURN)) & mask
        while found[place] != 0 and found[place] != key:
            place = (place + _ONE) & mask
        found[place] = key


@inlined
def contains_key(found: UInt64, key: np.uint64) -> bool:
    mask = np.uint64(len(found) - 1)
    place = (key ^ (key >> _TURN)) & mask
    while found[place] != 0 and found[place] != key:
        place = (place + _ONE) & mask
    return found[place] == key


def table_size(count: int) -> int:
    """Return the size of a table for some keys: a power of two, at most half full."""
    return 1 << max(4, (2 * count).bit_length())


def empty_index(count: int) -> Records:
    return np.zeros(table_size(count), SLOT)


class RowStore:
    """The triples, or the partial results, of a partition."""

    def __init__(self) -> None:
        self.size = 0
        self._used = 0
        self._rows = np.zeros(1024, ROW)
        self._numbers = np.full(1024, -1, np.int32)
        self._following = np.zeros(1024, np.int32)
        self._text = np.zeros(65_536, np.uint8)
        self._index = empty_index(1024)

    @property
    def rows(self) -> Records:
        return self._rows[: self.size]

    @property
    def text(self) -> Bytes:
        return self._text[: self._used]

    @property
    def bytes(self) -> int:
        arrays = (self._rows, self._numbers, self._following, self._text, self._index)
        return sum(each.nbytes for each in arrays)

    def held(self) -> StoredRows:
        return StoredRows(self.rows, self._numbers[: self.size], self._text, self._following, self._index)

    def insert(self, rows: Records, numbers: Int32, text: Bytes) -> None:
        """Copy rows and their texts, which are in a buffer of others, to the end."""
        first, count = self.size, len(rows)
        size = int(rows["length"].sum())
        self._grow(first + count, self._used + size)
        places = np.cumsum(rows["length"], dtype=np.int64) - rows["length"]
        self._text[self._used : self._used + size] = _gather_text(rows, text, places, size)
        self._rows[first : first + count] = rows
        self._rows["start"][first : first + count] = places + self._used
        self._numbers[first : first + count] = numbers
        self.size, self._used = first + count, self._used + size
        link_rows(self._index, self._following, np.ascontiguousarray(rows["key"]), first)

    def heavy_keys(self, limit: int) -> list[int]:
        """Return the keys with more rows than a limit."""
        return [int(each) for each in self._index["key"][self._index["count"] > limit]]

    def renumber(self, numbers: Int32) -> None:
        """Set the node of each row under another plan."""
        self._numbers[: self.size] = numbers

    def keep(self, which: Flags) -> None:
        """Drop all other rows."""
        rows, numbers, text = self.rows[which].copy(), self._numbers[: self.size][which].copy(), self._text
        fresh = RowStore()
        fresh.insert(rows, numbers, text)
        self.__dict__.update(fresh.__dict__)

    def _grow(self, rows: int, used: int) -> None:
        if rows > len(self._rows):
            size = max(rows, 2 * len(self._rows))
            self._rows, self._numbers = _grow_array(self._rows, size), _grow_array(self._numbers, size)
            self._following = _grow_array(self._following, size)
        if used > len(self._text):
            self._text = _grow_array(self._text, max(used, 2 * len(self._text)))
        if 2 * rows > len(self._index):
            self._index = empty_index(2 * rows)
            link_rows(self._index, self._following, np.ascontiguousarray(self.rows["key"]), 0)


def _grow_array(array: Records, size: int) -> Records:
    longer: Records = np.zeros(size, array.dtype)
    longer[: len(array)] = array
    return longer


def _gather_text(rows: Records, text: Bytes, places: Int64, size: int) -> Bytes:
    """Return the texts of rows without gaps."""
    if not len(rows):
        return text[:0]
    first = int(rows["start"][0])
    if (rows["start"] == places + first).all():
        return text[first : first + size]
    found: Bytes = text[np.repeat(rows["start"] - places, rows["length"]) + np.arange(size)]
    return found
