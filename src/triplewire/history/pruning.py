"""File pruning by zone maps (min/max of each column), Bloom filters and joins: scans read only files that can hold a
row for them.

Data that lie close in time lie close in most columns. So the ranges of the files that one scan is left with also prune
the files of the scans that it is joined with. Bloom filters skip files whose range covers a term that they do not
contain. They are built while no query runs, for files that were asked for by name; files never change their names, so
that a filter stays valid for as long as its file exists.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from math import inf, isfinite, isnan
from typing import Any, Final, TypeAlias

import duckdb
import numpy as np
from numpy.typing import NDArray

from triplewire.model.cache import BoundedCache
from triplewire.sparql import CompiledQuery, Dialect
from triplewire.sparql.compiler.scan_predicates import (
    ColumnBound,
    ConstantKind,
    ScanPredicate,
    SqlConstant,
    ValueInterval,
)
from triplewire.sparql.constants import parse_constant
from triplewire.storage.lake.data_files import parquet_relation
from triplewire.storage.lake.ports import DataFile, Snapshot, Value

ColumnBounds: TypeAlias = tuple[Any, Any]
"""Minimum and maximum, of one kind."""

ColumnSpans: TypeAlias = Sequence[ColumnBounds]
"""Disjoint intervals, in order."""

FileFilter: TypeAlias = Callable[[str, Sequence[str], Set[int]], Set[int]]
"""From a column, terms and files to the files that may contain one of the terms (Bloom filters)."""

_KINDS: dict[str, ConstantKind] = {"object_number": "number", "object_time": "time", "time": "time", "received": "time"}
_SLACK = 2.0**-20
"""Relative slack, more than rounding to an xsd:float changes."""

_WHOLE: dict[ConstantKind, ColumnBounds] = {
    "text": ("", chr(0x10FFFF) * 2),
    "number": (-inf, inf),
    "time": (datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)),
}
"""Intervals that hold every value. No term begins with the last of all characters."""


@dataclass(frozen=True)
class _Column:
    """The zone map of a column: minimum and maximum of each file, as ranks among all such values.

    A file without values has its minimum after all ranks and its maximum before; a file without statistics the other
    way round.
    """

    values: Sequence[Any]
    least: NDArray[np.int32]
    greatest: NDArray[np.int32]

    @classmethod
    def from_files(cls, files: Sequence[DataFile], name: str) -> _Column:
        ranges = [file.ranges.get(name) for file in files]
        values = sorted({each for ends in ranges if ends is not None and ends[0] is not None for each in ends})
        before, after = -1, len(values)
        rank: dict[Value | None, int] = dict(zip(values, range(after), strict=True))
        least = (before if ends is None else rank.get(ends[0], after) for ends in ranges)
        greatest = (after if ends is None else rank.get(ends[1], before) for ends in ranges)
        return cls(values, np.fromiter(least, np.int32, len(ranges)), np.fromiter(greatest, np.int32, len(ranges)))

    def meeting(self, spans: ColumnSpans) -> NDArray[np.bool_]:
        """Return which files may have a value in one of the spans: the first span that does not end before the file's
        minimum starts before its maximum."""
        starts = [bisect_left(self.values, first) for first, _ in spans]
        ends = [bisect_right(self.values, last) for _, last in spans]
        reached = np.searchsorted(np.array(ends, np.int32), self.least, "right")
        never = len(self.values) + 1
        return np.array([*starts, never], np.int32)[reached] <= self.greatest

    def spans(self, numbers: Set[int]) -> ColumnSpans | None:
        """Return the spans of the values of some files, None without statistics of one of them."""
        chosen = np.fromiter(numbers, np.int64, len(numbers))
        ends = list(zip(self.least[chosen].tolist(), self.greatest[chosen].tolist(), strict=True))
        if any(least < 0 for least, _ in ends):
            return None
        spans = _merge_intervals([each for each in ends if each[0] <= each[1]])
        return [(self.values[least], self.values[greatest]) for least, greatest in spans]


class ZoneMaps:
    """Minimum and maximum of each column for the files of one snapshot, compared as arrays."""

    def __init__(self, files: Sequence[DataFile], file_filter: FileFilter | None = None) -> None:
        self._files = files
        self._file_filter = file_filter
        self._columns: dict[str, _Column] = {}

    def select_files(self, reading: ScanPredicate) -> frozenset[int]:
        """Return the numbers of the files that a scan has to read."""
        return frozenset[int]().union(*map(self._select_files, reading.alternatives))

    def spans(self, numbers: Set[int], column: str) -> ColumnSpans | None:
        """Return the spans of a column in these files, None without statistics of one of them."""
        return self._column(column).spans(numbers)

    def meeting(self, numbers: Set[int], column: str, spans: ColumnSpans) -> Set[int]:
        """Return the files that may have a value in one of the spans."""
        return _file_numbers(self._column(column).meeting(spans)) & numbers

    def _select_files(self, way: tuple[ColumnBound, ...]) -> Set[int]:
        touched = np.ones(len(self._files), np.bool_)
        for bound in way:
            for each in (bound, *implied_bounds(bound)):
                touched &= self._touched(each)
        return self._apply_filter(way, _file_numbers(touched))

    def _apply_filter(self, way: tuple[ColumnBound, ...], chosen: Set[int]) -> Set[int]:
        for bound in way:
            if self._file_filter is not None and _kind(bound.column) == "text" and (names := _constant_texts(bound)):
                chosen = self._file_filter(bound.column, names, chosen)
        return chosen

    def _touched(self, bound: ColumnBound) -> NDArray[np.bool_]:
        intervals = [_ends(each, _kind(bound.column)) for each in bound.intervals]
        return self._column(bound.column).meeting(_merge_intervals([each for each in intervals if each[0] <= each[1]]))

    def _column(self, name: str) -> _Column:
        if name not in self._columns:
            self._columns[name] = _Column.from_files(self._files, name)
        return self._columns[name]


def implied_bounds(bound: ColumnBound) -> Iterator[ColumnBound]:
    """Yield bounds on the numeric or time value of an object that follow from its text, if all constants have one.

    The stored value may differ in the last digits.
    """
    points = [each.least[0].text for each in bound.intervals if each.least and each.least == each.greatest]
    if bound.column != "object" or len(points) != len(bound.intervals):
        return
    known = [parse_constant(each) for each in points]
    if all(each.number is not None and isfinite(each.number) for each in known):
        yield ColumnBound("object_number", tuple(_around(each.number or 0.0) for each in known))
    if all(each.time is not None for each in known):
        times = [each.time.isoformat(" ") for each in known if each.time is not None]
        yield ColumnBound("object_time", tuple(ValueInterval((_hour(each, -1),), (_hour(each, 1),)) for each in times))


def _constant_texts(bound: ColumnBound) -> list[str]:
    """Return the only possible texts; empty if others are possible."""
    ends = [_ends(each, "text") for each in bound.intervals]
    return [least for least, greatest in ends if least == greatest] if all(a == b for a, b in ends) else []


def _around(number: float) -> ValueInterval:
    slack = abs(number) * _SLACK
    least, greatest = (SqlConstant("number", repr(each)) for each in (number - slack, number + slack))
    return ValueInterval((least,), (greatest,))


def _hour(time: str, by: int) -> SqlConstant:
    return SqlConstant("time", time, by)


def _kind(column: str) -> ConstantKind:
    return _KINDS.get(column, "text")


def _ends(interval: ValueInterval, kind: ConstantKind) -> ColumnBounds:
    """Return the greatest lower and the least upper bound. Constants of another kind, and NaN, give none."""
    whole = _WHOLE[kind]
    least = [_value(each) for each in interval.least if each.kind == kind]
    greatest = [_value(each) for each in interval.greatest if each.kind == kind]
    return (
        max((each for each in least if each is not None), default=whole[0]),
        min((each for each in greatest if each is not None), default=whole[1]),
    )


def _value(constant: SqlConstant) -> Any:  # noqa: ANN401 - of the kind that the constant says
    match constant.kind:
        case "text":
            return constant.text
        case "number":
            number = float(constant.text)
            return None if isnan(number) else number
    try:
        return datetime.fromisoformat(constant.text).replace(tzinfo=UTC) + timedelta(hours=constant.hours)
    except OverflowError:
        return _WHOLE["time"][0 if constant.hours < 0 else 1]


def _merge_intervals(intervals: list[ColumnBounds]) -> ColumnSpans:
    merged: list[ColumnBounds] = []
    for least, greatest in sorted(intervals):
        if merged and least <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], greatest))
        else:
            merged.append((least, greatest))
    return merged


def _file_numbers(files: NDArray[np.bool_]) -> set[int]:
    return set(np.flatnonzero(files).tolist())


_FEWER = 2
"""A scan is pruned by another that has at most one file for so many of its own: a comparison takes time, too."""


def prune_joins(readings: Iterable[ScanPredicate], zone_maps: ZoneMaps) -> dict[str, tuple[int, ...]]:
    """Return the numbers of the files that each scan has to read, in order, by its alias.

    The scan with the fewest files prunes those that it is joined with, and so on.
    """
    known = {each.alias: each for each in readings}
    chosen: dict[str, Set[int]] = {alias: zone_maps.select_files(each) for alias, each in known.items()}
    waiting = set(known)
    while waiting:
        fewest = min(waiting, key=lambda alias: (len(chosen[alias]), alias))
        waiting.remove(fewest)
        for alias in waiting:
            chosen[alias] = _prune_by_join(known[alias], fewest, chosen, zone_maps)
    return {alias: tuple(sorted(numbers)) for alias, numbers in chosen.items()}


def _prune_by_join(reading: ScanPredicate, by: str, chosen: dict[str, Set[int]], zone_maps: ZoneMaps) -> Set[int]:
    """Return the files of a scan that can join with the files of another."""
    files = chosen[reading.alias]
    for tie in reading.ties:
        if tie.alias == by and len(chosen[by]) * _FEWER <= len(files):
            spans = zone_maps.spans(chosen[by], tie.other)
            files = files if spans is None else zone_maps.meeting(files, tie.column, spans)
    return files


ScanSource: TypeAlias = Callable[[str, str, tuple[int, ...]], str]
"""From a relation, an alias and the numbers of files to the text in FROM."""

# Strings are skipped: they may contain the name of a relation.
_SCANS: Mapping[Dialect, re.Pattern[str]] = {
    "duckdb": re.compile(r"'(?:[^']|'')*'|\b(quads|events)\b(?: AS (\w+))?"),
    "spark": re.compile(r"'(?:[^'\\]|\\.)*'|\b(quads|events)\b(?: AS (\w+))?", re.DOTALL),
}


@dataclass(frozen=True)
class ScannedFiles:
    """The numbers of the files that the scans of a query read, by the alias of the scan."""

    snapshot: Snapshot
    scans: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    @property
    def files(self) -> list[DataFile]:
        """The files, each once."""
        numbers = sorted({number for each in self.scans.values() for number in each})
        return [self.snapshot.files[number] for number in numbers]

    @property
    def zones_scanned(self) -> Iterator[str | None]:
        """The zone of each file, once for each scan."""
        return (self.snapshot.files[number].zone for each in self.scans.values() for number in each)

    @property
    def zones(self) -> frozenset[str]:
        """The zones of the files; new files have none yet."""
        return count_zones(self.files)


def count_zones(files: Iterable[DataFile]) -> frozenset[str]:
    return frozenset(each.zone for each in files if each.zone is not None)


@dataclass
class ScanRewriter:
    """Rewrites the scans of one query to read only the files that can hold a row for them.

    `source` is called once for each scan.
    """

    snapshot: Snapshot
    zone_maps: ZoneMaps
    dialect: Dialect
    source: ScanSource
    _scans: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def prune(self, compiled: CompiledQuery) -> tuple[CompiledQuery, ScannedFiles]:
        """Return the rewritten query and the files that it reads."""
        chosen = prune_joins(compiled.scan_predicates, self.zone_maps)
        steps = tuple(
            replace(step, sql=self._rewrite(step.sql, chosen), following=self._rewrite(step.following, chosen))
            for step in compiled.steps
        )
        rewritten = replace(compiled, sql=self._rewrite(compiled.sql, chosen), steps=steps)
        return rewritten, ScannedFiles(self.snapshot, self._scans)

    def _rewrite(self, sql: str, chosen: Mapping[str, tuple[int, ...]]) -> str:
        def replace_scan(match: re.Match[str]) -> str:
            relation, alias = match[1], match[2]
            if relation is None:
                return match[0]
            numbers = chosen[alias] if alias in chosen else tuple(range(len(self.snapshot.files)))
            self._scans[alias or relation] = numbers
            return self.source(relation, alias or relation, numbers)

        return _SCANS[self.dialect].sub(replace_scan, sql)


def find_scanned(compiled: CompiledQuery, snapshot: Snapshot, zone_maps: ZoneMaps, dialect: Dialect) -> ScannedFiles:
    return ScanRewriter(snapshot, zone_maps, dialect, lambda relation, alias, numbers: relation).prune(compiled)[1]


# Bloom filters by file and column: skip files whose min/max range covers a term that they do not contain.
#
# A filter takes four bits of a name's hash. It is built while no query runs, for files that were asked for by name;
# files never change their names, so that it stays valid for as long as they exist.

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

    def __init__(
        self,
        duck: duckdb.DuckDBPyConnection,
        size: int = BLOOM_FILTER_BYTES,
        files: int = BLOOM_FILTER_FILES,
        terms: int = BLOOM_FILTER_TERMS,
    ) -> None:
        self._duck = duck
        self._files, self._terms = files, terms
        self._filters = BoundedCache[FileColumn, bytes](size, len)
        self._queue = BoundedCache[FileColumn, FileColumn](BLOOM_FILTERS_QUEUED)

    def select_files(self, paths: Sequence[str], column: str, names: Sequence[str], numbers: Set[int]) -> Set[int]:
        """Return the files that may contain one of the names. Filters that are missing are queued."""
        if column not in COLUMNS or len(names) > self._terms or len(numbers) <= self._files:
            return numbers
        hashes = _hash_names(names).tolist()
        return {each for each in numbers if self._may_have((paths[each], column), hashes)}

    def build_next(self) -> bool:
        """Build one queued filter; return whether there was one."""
        if not self._queue:
            return False
        key, (path, column) = self._queue.pop_oldest()
        try:
            found = self._duck.sql(f"SELECT DISTINCT {column} AS name FROM {parquet_relation([path])}").to_arrow_table()
        except duckdb.IOException:
            # The file belonged to a version that was removed.
            return True
        self._filters.put(key, build_filter(_hash_names(found["name"].to_pylist())))
        return True

    def _may_have(self, key: FileColumn, hashes: Iterable[int]) -> bool:
        bits = self._filters.get(key)
        if bits is None:
            self._queue.put(key, key)
            return True
        return any(may_contain(bits, each) for each in hashes)


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
