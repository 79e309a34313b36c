"""File pruning by zone maps (min/max of each column) and by joins: scans read only files that can hold a row for them.

Data that lie close in time lie close in most columns. So the ranges of the files that one scan is left with also prune
the files of the scans that it is joined with. No file is read for this.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from math import inf, isfinite, isnan
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from triplewire.sparql import CompiledQuery, Dialect
from triplewire.sparql.compiler.scan_predicates import (
    ColumnBound,
    ConstantKind,
    ScanPredicate,
    SqlConstant,
    ValueInterval,
)
from triplewire.sparql.constants import parse_constant
from triplewire.storage.lake.ports import DataFile, Snapshot, Value

ColumnBounds: TypeAlias = tuple[Any, Any]
"""The least and the greatest; of one kind, so that they can be compared."""

ColumnSpans: TypeAlias = Sequence[ColumnBounds]
"""In order, none of which meets another."""

FileFilter: TypeAlias = Callable[[str, Sequence[str], Set[int]], Set[int]]
"""Which of some files may have one of some texts in a column, by more than the least and the greatest of it."""

_KINDS: dict[str, ConstantKind] = {
    "object_number": "number",
    "object_time": "time",
    "time": "time",
    "received": "time",
}
_SLACK = 2.0**-20
"""More than rounding to an xsd:float changes."""

_WHOLE: dict[ConstantKind, ColumnBounds] = {
    "text": ("", chr(0x10FFFF) * 2),
    "number": (-inf, inf),
    "time": (datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)),
}
"""What holds every value. No term begins with the last of all characters."""


@dataclass(frozen=True)
class _Column:
    """The least and the greatest value of each file, as places in the order of all such values: to look at every file
    is to compare small numbers. A file without values ends before all of them, and begins after; one of which nothing
    is known begins before all, and ends after."""

    values: Sequence[Any]
    least: NDArray[np.int32]
    greatest: NDArray[np.int32]

    @classmethod
    def of(cls, files: Sequence[DataFile], name: str) -> _Column:
        told = [file.ranges.get(name) for file in files]
        values = sorted({each for ends in told if ends is not None and ends[0] is not None for each in ends})
        before, after = -1, len(values)
        place: dict[Value | None, int] = dict(zip(values, range(after), strict=True))
        least = (before if ends is None else place.get(ends[0], after) for ends in told)
        greatest = (after if ends is None else place.get(ends[1], before) for ends in told)
        return cls(values, np.fromiter(least, np.int32, len(told)), np.fromiter(greatest, np.int32, len(told)))

    def meeting(self, spans: ColumnSpans) -> NDArray[np.bool_]:
        """Which files may have a value in one of the spans: the first of these that does not end before the file begins
        starts before the file ends."""
        starts = [bisect_left(self.values, first) for first, _ in spans]
        ends = [bisect_right(self.values, last) for _, last in spans]
        reached = np.searchsorted(np.array(ends, np.int32), self.least, "right")
        never = len(self.values) + 1
        return np.array([*starts, never], np.int32)[reached] <= self.greatest

    def spans(self, numbers: Set[int]) -> ColumnSpans | None:
        """Where the values of some files lie. None where that is not known of all of them."""
        chosen = np.fromiter(numbers, np.int64, len(numbers))
        ends = list(zip(self.least[chosen].tolist(), self.greatest[chosen].tolist(), strict=True))
        if any(least < 0 for least, _ in ends):
            return None
        there = _merge_intervals([each for each in ends if each[0] <= each[1]])
        return [(self.values[least], self.values[greatest]) for least, greatest in there]


class ZoneMaps:
    """Of the files of one snapshot, all of which are looked at at once."""

    def __init__(self, files: Sequence[DataFile], sieve: FileFilter | None = None) -> None:
        self._files = files
        self._sieve = sieve
        self._columns: dict[str, _Column] = {}

    def within(self, reading: ScanPredicate) -> frozenset[int]:
        """The numbers of the files that a scan has to read."""
        return frozenset[int]().union(*map(self._within, reading.alternatives))

    def spans(self, numbers: Set[int], column: str) -> ColumnSpans | None:
        """Where the values of a column lie in these files. None where that is not known of all of them."""
        return self._column(column).spans(numbers)

    def meeting(self, numbers: Set[int], column: str, spans: ColumnSpans) -> Set[int]:
        """Those of the files that may have a value in one of the spans."""
        return _file_numbers(self._column(column).meeting(spans)) & numbers

    def _within(self, way: tuple[ColumnBound, ...]) -> Set[int]:
        touched = np.ones(len(self._files), np.bool_)
        for bound in way:
            for each in (bound, *implied_bounds(bound)):
                touched &= self._touched(each)
        return self._sieved(way, _file_numbers(touched))

    def _sieved(self, way: tuple[ColumnBound, ...], chosen: Set[int]) -> Set[int]:
        for bound in way:
            if self._sieve is not None and _kind(bound.column) == "text" and (names := _constant_texts(bound)):
                chosen = self._sieve(bound.column, names, chosen)
        return chosen

    def _touched(self, bound: ColumnBound) -> NDArray[np.bool_]:
        intervals = [_ends(each, _kind(bound.column)) for each in bound.intervals]
        return self._column(bound.column).meeting(_merge_intervals([each for each in intervals if each[0] <= each[1]]))

    def _column(self, name: str) -> _Column:
        if name not in self._columns:
            self._columns[name] = _Column.of(self._files, name)
        return self._columns[name]


def implied_bounds(bound: ColumnBound) -> Iterator[ColumnBound]:
    """What follows for the value of an object from its text, where all are numbers, or all are times. The table may
    have another of the last digits."""
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
    """The texts one of which it must be; none where it may be others."""
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
    """The last of what it must at least be, and the first of what at most. A constant of another kind, or one that is
    not a number, says nothing."""
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
    made: list[ColumnBounds] = []
    for least, greatest in sorted(intervals):
        if made and least <= made[-1][1]:
            made[-1] = (made[-1][0], max(made[-1][1], greatest))
        else:
            made.append((least, greatest))
    return made


def _file_numbers(files: NDArray[np.bool_]) -> set[int]:
    return set(np.flatnonzero(files).tolist())


# Narrowings: files that a scan need not read, because what it is joined with lies elsewhere.
#
# What lies close in time lies close in most columns: where one scan is left with the files of an hour, the subjects
# and positions of these leave the others with about that hour, too. Nothing is read to find it out.

_FEWER = 2
"""How many times as many files a scan must have for another to narrow it: looking at them all takes time, too."""


def prune_joins(readings: Iterable[ScanPredicate], ranges: ZoneMaps) -> dict[str, tuple[int, ...]]:
    """The numbers of the files that each scan has to read, in order, by its alias."""
    known = {each.alias: each for each in readings}
    chosen: dict[str, Set[int]] = {alias: ranges.within(each) for alias, each in known.items()}
    waiting = set(known)
    while waiting:
        fewest = min(waiting, key=lambda alias: (len(chosen[alias]), alias))
        waiting.remove(fewest)
        for alias in waiting:
            chosen[alias] = _prune_by_join(known[alias], fewest, chosen, ranges)
    return {alias: tuple(sorted(numbers)) for alias, numbers in chosen.items()}


def _prune_by_join(reading: ScanPredicate, by: str, chosen: dict[str, Set[int]], ranges: ZoneMaps) -> Set[int]:
    """What is left of the files of a scan by its ties with another."""
    left = chosen[reading.alias]
    for tie in reading.ties:
        if tie.alias == by and len(chosen[by]) * _FEWER <= len(left):
            spans = ranges.spans(chosen[by], tie.other)
            left = left if spans is None else ranges.meeting(left, tie.column, spans)
    return left


# Prunings: a compiled query with each of its scans over those files alone that can hold a row for it.

ScanSource: TypeAlias = Callable[[str, str, tuple[int, ...]], str]
"""What to write in FROM for a relation under an alias over the files of these numbers."""

# Texts are passed over: what somebody asks for may have the name of a relation in it.
_SCANS: Mapping[Dialect, re.Pattern[str]] = {
    "duckdb": re.compile(r"'(?:[^']|'')*'|\b(quads|events)\b(?: AS (\w+))?"),
    "spark": re.compile(r"'(?:[^'\\]|\\.)*'|\b(quads|events)\b(?: AS (\w+))?", re.DOTALL),
}


@dataclass(frozen=True)
class ScannedFiles:
    """The files that the scans of a query read, by number, under the aliases of these."""

    snapshot: Snapshot
    scans: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    @property
    def files(self) -> list[DataFile]:
        """Each once, however many scans read it."""
        numbers = sorted({number for each in self.scans.values() for number in each})
        return [self.snapshot.files[number] for number in numbers]

    @property
    def zones_scanned(self) -> Iterator[str | None]:
        """The zone of each file, as often as it is scanned."""
        return (self.snapshot.files[number].zone for each in self.scans.values() for number in each)

    @property
    def zones(self) -> frozenset[str]:
        """Those that the files lie in, but for fresh ones."""
        return count_zones(self.files)


def count_zones(files: Iterable[DataFile]) -> frozenset[str]:
    return frozenset(each.zone for each in files if each.zone is not None)


@dataclass
class ScanRewriter:
    """Rewrites one query. `source` is asked once for each scan."""

    snapshot: Snapshot
    ranges: ZoneMaps
    dialect: Dialect
    source: ScanSource
    _scans: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def pruned(self, compiled: CompiledQuery) -> tuple[CompiledQuery, ScannedFiles]:
        """The same query, and what it reads."""
        chosen = prune_joins(compiled.scan_predicates, self.ranges)
        steps = tuple(
            replace(step, sql=self._written(step.sql, chosen), following=self._written(step.following, chosen))
            for step in compiled.steps
        )
        made = replace(compiled, sql=self._written(compiled.sql, chosen), steps=steps)
        return made, ScannedFiles(self.snapshot, self._scans)

    def _written(self, sql: str, chosen: Mapping[str, tuple[int, ...]]) -> str:
        def written(found: re.Match[str]) -> str:
            relation, alias = found[1], found[2]
            if relation is None:
                return found[0]
            numbers = chosen[alias] if alias in chosen else tuple(range(len(self.snapshot.files)))
            self._scans[alias or relation] = numbers
            return self.source(relation, alias or relation, numbers)

        return _SCANS[self.dialect].sub(written, sql)


def find_scanned(compiled: CompiledQuery, snapshot: Snapshot, ranges: ZoneMaps, dialect: Dialect) -> ScannedFiles:
    """What a query would read."""
    return ScanRewriter(snapshot, ranges, dialect, lambda relation, alias, numbers: relation).pruned(compiled)[1]
