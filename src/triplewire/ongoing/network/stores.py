"""Stores: rows that are kept, found by their keys. They grow at the end, and are made anew when much has gone."""

from __future__ import annotations

import numpy as np

from triplewire.kernels.compiler import Bytes, Flags, Int32, Int64, Records
from triplewire.ongoing.network.arrays import ROW, Held
from triplewire.ongoing.network.tables import index_for, linked


class Store:
    """Triples, or partial results."""

    def __init__(self) -> None:
        self.size = 0
        self._used = 0
        self._rows = np.zeros(1024, ROW)
        self._numbers = np.full(1024, -1, np.int32)
        self._following = np.zeros(1024, np.int32)
        self._text = np.zeros(65_536, np.uint8)
        self._index = index_for(1024)

    @property
    def rows(self) -> Records:
        return self._rows[: self.size]

    @property
    def text(self) -> Bytes:
        return self._text[: self._used]

    @property
    def bytes(self) -> int:
        """What all of it takes."""
        arrays = (self._rows, self._numbers, self._following, self._text, self._index)
        return sum(each.nbytes for each in arrays)

    def held(self) -> Held:
        """As compiled code reads it."""
        return Held(self.rows, self._numbers[: self.size], self._text, self._following, self._index)

    def insert(self, rows: Records, numbers: Int32, text: Bytes) -> None:
        """Rows whose texts lie in another store, or in nobody's."""
        first, count = self.size, len(rows)
        size = int(rows["length"].sum())
        self._grow(first + count, self._used + size)
        places = np.cumsum(rows["length"], dtype=np.int64) - rows["length"]
        self._text[self._used : self._used + size] = _texts(rows, text, places, size)
        self._rows[first : first + count] = rows
        self._rows["start"][first : first + count] = places + self._used
        self._numbers[first : first + count] = numbers
        self.size, self._used = first + count, self._used + size
        linked(self._index, self._following, np.ascontiguousarray(rows["key"]), first)

    def heavy(self, limit: int) -> list[int]:
        """Keys that more rows have than a limit."""
        return [int(each) for each in self._index["key"][self._index["count"] > limit]]

    def renumber(self, numbers: Int32) -> None:
        """Under another plan: the node of each row."""
        self._numbers[: self.size] = numbers

    def keep(self, which: Flags) -> None:
        """These rows, and no others."""
        rows, numbers, text = self.rows[which].copy(), self._numbers[: self.size][which].copy(), self._text
        fresh = Store()
        fresh.insert(rows, numbers, text)
        self.__dict__.update(fresh.__dict__)

    def _grow(self, rows: int, used: int) -> None:
        if rows > len(self._rows):
            size = max(rows, 2 * len(self._rows))
            self._rows, self._numbers = _longer(self._rows, size), _longer(self._numbers, size)
            self._following = _longer(self._following, size)
        if used > len(self._text):
            self._text = _longer(self._text, max(used, 2 * len(self._text)))
        if 2 * rows > len(self._index):
            self._index = index_for(2 * rows)
            linked(self._index, self._following, np.ascontiguousarray(self.rows["key"]), 0)


def _longer(array: Records, size: int) -> Records:
    longer: Records = np.zeros(size, array.dtype)
    longer[: len(array)] = array
    return longer


def _texts(rows: Records, text: Bytes, places: Int64, size: int) -> Bytes:
    """Of rows, one after the other."""
    if not len(rows):
        return text[:0]
    first = int(rows["start"][0])
    if (rows["start"] == places + first).all():
        return text[first : first + size]
    found: Bytes = text[np.repeat(rows["start"] - places, rows["length"]) + np.arange(size)]
    return found
