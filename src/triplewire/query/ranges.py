"""Ranges: which files of the lake can hold a row that a scan can use, by the least and greatest of their columns."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import inf, isfinite, isnan
from typing import Any, TypeAlias

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
    """The files that have values in a column, by number, with these; and those of which that is not known."""

    spans: tuple[tuple[int, Any, Any], ...]
    unknown: frozenset[int]


class Ranges:
    """Of the files of one snapshot."""

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
        if not known.unknown.isdisjoint(numbers):
            return None
        return _merged([(first, last) for number, first, last in known.spans if number in numbers])

    def meeting(self, numbers: Set[int], column: str, spans: Spans) -> frozenset[int]:
        """Those of the files that may have a value in one of the spans."""
        known = self._column(column)
        starts, ends = [each[0] for each in spans], [each[1] for each in spans]
        met = (n for n, first, last in known.spans if n in numbers and _meets(starts, ends, first, last))
        return known.unknown.intersection(numbers).union(met)

    def _within(self, way: tuple[Bound, ...]) -> Set[int]:
        chosen = set(range(len(self._files)))
        for bound in way:
            chosen.intersection_update(self._touched(bound), *map(self._touched, implied(bound)))
        return self._sieved(way, chosen)

    def _sieved(self, way: tuple[Bound, ...], chosen: Set[int]) -> Set[int]:
        for bound in way:
            if self._sieve is not None and _kind(bound.column) == "text" and (names := _points(bound)):
                chosen = self._sieve(bound.column, names, chosen)
        return chosen

    def _touched(self, bound: Bound) -> frozenset[int]:
        intervals = [_ends(each, _kind(bound.column)) for each in bound.intervals]
        kept = _merged([each for each in intervals if each[0] <= each[1]])
        if not kept:
            return frozenset()
        column = self._column(bound.column)
        if len(kept) == 1:
            ((least, greatest),) = kept
            return column.unknown.union(n for n, first, last in column.spans if first <= greatest and last >= least)
        starts, ends = [each[0] for each in kept], [each[1] for each in kept]
        return column.unknown.union(n for n, first, last in column.spans if _meets(starts, ends, first, last))

    def _column(self, name: str) -> _Column:
        if name not in self._columns:
            told = [(number, file.ranges.get(name)) for number, file in enumerate(self._files)]
            spans = tuple((number, *found) for number, found in told if found is not None and found[0] is not None)
            unknown = frozenset(number for number, found in told if found is None)
            self._columns[name] = _Column(spans, unknown)
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


def _meets(starts: list[Any], ends: list[Any], first: Any, last: Any) -> bool:  # noqa: ANN401 - values of one kind
    """Does the first interval that does not end before the file begins start before the file ends?"""
    place = bisect_left(ends, first)
    return place < len(starts) and starts[place] <= last
