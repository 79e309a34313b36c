"""Ranges: which files of the lake can hold a row that a scan can use, by the least and greatest of their columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import inf, isfinite, isnan
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from triplewire.lake.ports import DataFile
from triplewire.sparql.compile.statics import static
from triplewire.sparql.readings import Bound, Constant, Interval, Kind, Reading

Ends: TypeAlias = tuple[Any, Any]
"""The least and the greatest; of one kind, so that they can be compared."""

Spans: TypeAlias = Sequence[Ends]
"""In order, none of which meets another."""

Sieve: TypeAlias = Callable[[str, Sequence[str], Set[int]], Set[int]]
"""Which of some files may have one of some texts in a column, by more than the least and the greatest of it."""

_KINDS: dict[str, Kind] = {
    "object_number": "number",
    "object_time": "time",
    "time": "time",
    "received": "time",
}
_SLACK = 2.0**-20
"""More than rounding to an xsd:float changes."""

_WHOLE: dict[Kind, Ends] = {
    "text": ("", chr(0x10FFFF) * 2),
    "number": (-inf, inf),
    "time": (datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)),
}
"""What holds every value. No term begins with the last of all characters."""


@dataclass(frozen=True)
class _Column:
    """The files that have values in a column, by number, with the least and the greatest of each; and those of which
    that is not known."""

    numbers: NDArray[np.int64]
    least: NDArray[np.object_]
    greatest: NDArray[np.object_]
    unknown: frozenset[int]

    @classmethod
    def of(cls, files: Sequence[DataFile], name: str) -> _Column:
        told = [file.ranges.get(name) for file in files]
        there = [(number, *found) for number, found in enumerate(told) if found is not None and found[0] is not None]
        numbers, least, greatest = zip(*there, strict=True) if there else ((), (), ())
        unknown = frozenset(number for number, found in enumerate(told) if found is None)
        return cls(np.array(numbers, np.int64), _values(least), _values(greatest), unknown)

    def meeting(self, spans: Spans) -> set[int]:
        """The files that may have a value in one of the spans: the first of these that does not end before the file
        begins starts before the file ends."""
        if len(spans) == 1:
            ((first, last),) = spans
            met = (self.least <= last) & (self.greatest >= first)
        else:
            starts, ends = _values([each[0] for each in spans]), _values([each[1] for each in spans])
            place = np.searchsorted(ends, self.least)
            met = place < len(ends)
            met[met] = starts[place[met]] <= self.greatest[met]
        return {*self.unknown, *self.numbers[met].tolist()}

    def spans(self, numbers: Set[int]) -> Spans:
        """Where the values of some files lie."""
        chosen = np.isin(self.numbers, np.fromiter(numbers, np.int64, len(numbers)))
        return _merged(list(zip(self.least[chosen], self.greatest[chosen], strict=True)))


class Ranges:
    """Of the files of one snapshot, all of which are looked at at once."""

    def __init__(self, files: Sequence[DataFile], sieve: Sieve | None = None) -> None:
        self._files = files
        self._sieve = sieve
        self._columns: dict[str, _Column] = {}

    def within(self, reading: Reading) -> frozenset[int]:
        """The numbers of the files that a scan has to read."""
        return frozenset[int]().union(*map(self._within, reading.ways))

    def spans(self, numbers: Set[int], column: str) -> Spans | None:
        """Where the values of a column lie in these files. None where that is not known of all of them."""
        known = self._column(column)
        return known.spans(numbers) if known.unknown.isdisjoint(numbers) else None

    def meeting(self, numbers: Set[int], column: str, spans: Spans) -> Set[int]:
        """Those of the files that may have a value in one of the spans."""
        return self._column(column).meeting(spans) & numbers

    def _within(self, way: tuple[Bound, ...]) -> Set[int]:
        touched = [self._touched(each) for bound in way for each in (bound, *implied(bound))]
        return self._sieved(way, set.intersection(*touched) if touched else set(range(len(self._files))))

    def _sieved(self, way: tuple[Bound, ...], chosen: Set[int]) -> Set[int]:
        for bound in way:
            if self._sieve is not None and _kind(bound.column) == "text" and (names := _points(bound)):
                chosen = self._sieve(bound.column, names, chosen)
        return chosen

    def _touched(self, bound: Bound) -> set[int]:
        intervals = [_ends(each, _kind(bound.column)) for each in bound.intervals]
        kept = _merged([each for each in intervals if each[0] <= each[1]])
        return self._column(bound.column).meeting(kept) if kept else set()

    def _column(self, name: str) -> _Column:
        if name not in self._columns:
            self._columns[name] = _Column.of(self._files, name)
        return self._columns[name]


def implied(bound: Bound) -> Iterator[Bound]:
    """What follows for the value of an object from its text, where all are numbers, or all are times. The table may
    have another of the last digits."""
    points = [each.least[0].text for each in bound.intervals if each.least and each.least == each.greatest]
    if bound.column != "object" or len(points) != len(bound.intervals):
        return
    known = [static(each) for each in points]
    if all(each.number is not None and isfinite(each.number) for each in known):
        yield Bound("object_number", tuple(_around(each.number or 0.0) for each in known))
    if all(each.time is not None for each in known):
        times = [each.time.isoformat(" ") for each in known if each.time is not None]
        yield Bound("object_time", tuple(Interval((_hour(each, -1),), (_hour(each, 1),)) for each in times))


def _points(bound: Bound) -> list[str]:
    """The texts one of which it must be; none where it may be others."""
    ends = [_ends(each, "text") for each in bound.intervals]
    return [least for least, greatest in ends if least == greatest] if all(a == b for a, b in ends) else []


def _around(number: float) -> Interval:
    slack = abs(number) * _SLACK
    least, greatest = (Constant("number", repr(each)) for each in (number - slack, number + slack))
    return Interval((least,), (greatest,))


def _hour(time: str, by: int) -> Constant:
    return Constant("time", time, by)


def _kind(column: str) -> Kind:
    return _KINDS.get(column, "text")


def _ends(interval: Interval, kind: Kind) -> Ends:
    """The last of what it must at least be, and the first of what at most. A constant of another kind, or one that is
    not a number, says nothing."""
    whole = _WHOLE[kind]
    least = [_value(each) for each in interval.least if each.kind == kind]
    greatest = [_value(each) for each in interval.greatest if each.kind == kind]
    return (
        max((each for each in least if each is not None), default=whole[0]),
        min((each for each in greatest if each is not None), default=whole[1]),
    )


def _value(constant: Constant) -> Any:  # noqa: ANN401 - of the kind that the constant says
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


def _merged(intervals: list[Ends]) -> Spans:
    made: list[Ends] = []
    for least, greatest in sorted(intervals):
        if made and least <= made[-1][1]:
            made[-1] = (made[-1][0], max(made[-1][1], greatest))
        else:
            made.append((least, greatest))
    return made


def _values(values: Sequence[Any]) -> NDArray[np.object_]:
    """As they are, so that they are compared as Python compares them."""
    made = np.empty(len(values), np.object_)
    made[:] = values
    return made
