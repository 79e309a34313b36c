"""Bloom filters by file and column: skip files whose min/max range covers a term that they do not contain.

A filter takes four bits of a name's hash. It is built while no query runs, for files that were asked for by name;
files never change their names, so that it stays valid for as long as they exist.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence, Set
from typing import Final

import duckdb
import numpy as np
from numpy.typing import NDArray

from triplewire.storage.lake.data_files import parquet_relation

ROSTER_BYTES: Final = 32 * 1024 * 1024
"""What a process of queries remembers of the names in files that were asked for by name, of those that were asked for
last: one or two bytes for each name in a file."""

ROSTER_FILES: Final = 8
"""Files that a name may lie in up to which nothing is remembered of them: they are opened in two milliseconds."""

ROSTER_NAMES: Final = 16
"""Names in one condition up to which files are passed over by what is remembered of them. Of more, one is in nearly
every file."""

ROSTERS_WANTED: Final = 4_096
"""Files that wait until a process of queries has nothing to do, and looks at the names in them: at worst 1 MB of
paths."""


COLUMNS = frozenset({"graph", "subject"})
"""Those in which names are looked up one by one."""

_BITS = 8
"""For each name, at least: one that is not there is taken to be there in one of 40 cases at most."""

_SHIFTS = (0, 16, 32, 48)
"""Where in a hash the places of its bits are taken from."""

FileColumn = tuple[str, str]
"""A file's path and a column."""


class BloomFilters:
    """Of the files that were asked for most recently. Belongs to one connection."""

    def __init__(self, duck: duckdb.DuckDBPyConnection) -> None:
        self._duck = duck
        self._known: OrderedDict[FileColumn, bytes] = OrderedDict()
        self._wanted: OrderedDict[FileColumn, None] = OrderedDict()
        self._size = 0

    def left(self, paths: Sequence[str], column: str, names: Sequence[str], numbers: Set[int]) -> Set[int]:
        """Those of the files that may have one of the names. What is not known of them is looked at later."""
        if column not in COLUMNS or len(names) > ROSTER_NAMES or len(numbers) <= ROSTER_FILES:
            return numbers
        hashes = _hash_names(names).tolist()
        return {each for each in numbers if self._may_have((paths[each], column), hashes)}

    def take(self) -> bool:
        """Look at one file that was asked for; whether there was one."""
        if not self._wanted:
            return False
        key, _ = self._wanted.popitem(last=False)
        path, column = key
        try:
            found = self._duck.sql(f"SELECT DISTINCT {column} AS name FROM {parquet_relation([path])}").to_arrow_table()
        except duckdb.IOException:
            # It was in a version that is no more.
            return True
        self._keep(key, build_filter(_hash_names(found["name"].to_pylist())))
        return True

    def _may_have(self, key: FileColumn, hashes: Iterable[int]) -> bool:
        found = self._known.get(key)
        if found is None:
            self._want(key)
            return True
        self._known.move_to_end(key)
        return any(may_contain(found, each) for each in hashes)

    def _want(self, key: FileColumn) -> None:
        self._wanted[key] = None
        if len(self._wanted) > ROSTERS_WANTED:
            self._wanted.popitem(last=False)

    def _keep(self, key: FileColumn, made: bytes) -> None:
        self._known[key] = made
        self._size += len(made)
        while self._size > ROSTER_BYTES:
            _, oldest = self._known.popitem(last=False)
            self._size -= len(oldest)


def _hash_names(names: Sequence[str]) -> NDArray[np.uint64]:
    """Python's own, which are others in every process: to ask the engine for that of one name takes a millisecond."""
    return np.fromiter(map(hash, names), np.int64, len(names)).view(np.uint64)


def build_filter(hashes: NDArray[np.uint64]) -> bytes:
    """Four bits for each hash, in a power of two of them."""
    size = 1 << max(8, (_BITS * len(hashes) - 1).bit_length())
    bits = np.zeros(size, np.bool_)
    for shift in _SHIFTS:
        bits[hashes >> np.uint64(shift) & np.uint64(size - 1)] = True
    return np.packbits(bits, bitorder="little").tobytes()


def may_contain(made: bytes, name: int) -> bool:
    """May the hash be one of those that a roster was made of?"""
    last = 8 * len(made) - 1
    for shift in _SHIFTS:
        place = name >> shift & last
        if not made[place >> 3] >> (place & 7) & 1:
            return False
    return True
