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

BLOOM_FILTER_BYTES: Final = 32 * 1024 * 1024
"""Bloom filters that a query process keeps, those of the files used last: one or two bytes for each term of a file."""

BLOOM_FILTER_FILES: Final = 8
"""Candidate files up to which no filter is used: so few are opened in two milliseconds."""

BLOOM_FILTER_TERMS: Final = 16
"""Terms in one condition up to which filters are used. With more terms, nearly every file has one of them."""

BLOOM_FILTERS_QUEUED: Final = 4_096
"""Files whose filters are built when a query process is idle: at worst 1 MB of paths."""


COLUMNS = frozenset({"graph", "subject"})
"""Columns in which single terms are looked up."""

_BITS = 8
"""Bits for each term, at least: false positives are below 1 in 40."""

_SHIFTS = (0, 16, 32, 48)
"""Shifts of a hash that give its four bit positions."""

FileColumn = tuple[str, str]
"""A file's path and a column."""


class BloomFilters:
    """Bloom filters of the files used most recently, built over one connection."""

    def __init__(self, duck: duckdb.DuckDBPyConnection) -> None:
        self._duck = duck
        self._filters: OrderedDict[FileColumn, bytes] = OrderedDict()
        self._queue: OrderedDict[FileColumn, None] = OrderedDict()
        self._size = 0

    def select_files(self, paths: Sequence[str], column: str, names: Sequence[str], numbers: Set[int]) -> Set[int]:
        """Return the files that may contain one of the names. Filters that are missing are queued."""
        if column not in COLUMNS or len(names) > BLOOM_FILTER_TERMS or len(numbers) <= BLOOM_FILTER_FILES:
            return numbers
        hashes = _hash_names(names).tolist()
        return {each for each in numbers if self._may_have((paths[each], column), hashes)}

    def build_next(self) -> bool:
        """Build one queued filter; return whether there was one."""
        if not self._queue:
            return False
        key, _ = self._queue.popitem(last=False)
        path, column = key
        try:
            found = self._duck.sql(f"SELECT DISTINCT {column} AS name FROM {parquet_relation([path])}").to_arrow_table()
        except duckdb.IOException:
            # The file belonged to a version that was removed.
            return True
        self._store(key, build_filter(_hash_names(found["name"].to_pylist())))
        return True

    def _may_have(self, key: FileColumn, hashes: Iterable[int]) -> bool:
        bits = self._filters.get(key)
        if bits is None:
            self._enqueue(key)
            return True
        self._filters.move_to_end(key)
        return any(may_contain(bits, each) for each in hashes)

    def _enqueue(self, key: FileColumn) -> None:
        self._queue[key] = None
        if len(self._queue) > BLOOM_FILTERS_QUEUED:
            self._queue.popitem(last=False)

    def _store(self, key: FileColumn, bits: bytes) -> None:
        self._filters[key] = bits
        self._size += len(bits)
        while self._size > BLOOM_FILTER_BYTES:
            _, oldest = self._filters.popitem(last=False)
            self._size -= len(oldest)


def _hash_names(names: Sequence[str]) -> NDArray[np.uint64]:
    """Hash with Python's own function, seeded for each process: to hash one name in the engine takes a millisecond."""
    return np.fromiter(map(hash, names), np.int64, len(names)).view(np.uint64)


def build_filter(hashes: NDArray[np.uint64]) -> bytes:
    """Return a filter of a power of two bits, with four bits set for each hash."""
    size = 1 << max(8, (_BITS * len(hashes) - 1).bit_length())
    bits = np.zeros(size, np.bool_)
    for shift in _SHIFTS:
        bits[hashes >> np.uint64(shift) & np.uint64(size - 1)] = True
    return np.packbits(bits, bitorder="little").tobytes()


def may_contain(bits: bytes, name_hash: int) -> bool:
    """Return False if the hash is not in the filter."""
    last = 8 * len(bits) - 1
    for shift in _SHIFTS:
        bit = name_hash >> shift & last
        if not bits[bit >> 3] >> (bit & 7) & 1:
            return False
    return True
