"""Readings: what is known, before a query runs, of the rows that each scan of it can use.

By these a reader passes over files. They follow from the conditions of the query, so that no answer depends on
whether anybody goes by them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["text", "number", "time"]


@dataclass(frozen=True)
class Constant:
    """A constant as it is written in SQL: a text, a double, or a time in UTC that is moved by some hours."""

    kind: Kind
    text: str
    hours: int = 0

    def filled(self, fillings: Mapping[str, str]) -> Constant:
        return replace(self, text=fillings[self.text]) if self.text in fillings else self


@dataclass(frozen=True)
class Interval:
    """Values that are at least each of the one and at most each of the other constants, these included. Without any
    it is all values there are; NULL is none."""

    least: tuple[Constant, ...] = ()
    greatest: tuple[Constant, ...] = ()

    def met(self, other: Interval) -> Interval:
        """What lies in both."""
        least = dict.fromkeys((*self.least, *other.least))
        return Interval(tuple(least), tuple(dict.fromkeys((*self.greatest, *other.greatest))))

    def filled(self, fillings: Mapping[str, str]) -> Interval:
        least, greatest = (tuple(each.filled(fillings) for each in part) for part in (self.least, self.greatest))
        return Interval(least, greatest)


Intervals: TypeAlias = tuple[Interval, ...]
"""Values that lie in one of them; in none at all there are none."""


@dataclass(frozen=True)
class Bound:
    """A row is of no use unless its value in the column lies in one of the intervals."""

    column: str
    intervals: Intervals

    def filled(self, fillings: Mapping[str, str]) -> Bound:
        return Bound(self.column, tuple(each.filled(fillings) for each in self.intervals))


@dataclass(frozen=True)
class Tie:
    """A row is of no use unless its value in the column is that of another column, in a row of use to another scan."""

    column: str
    alias: str
    """Of the other scan."""
    other: str


@dataclass(frozen=True)
class Reading:
    """A scan of `quads` or `events` under an alias. A row is of use only if it is within all bounds of one of the ways
    in which the scan takes part in the query, and has all ties."""

    relation: str
    alias: str
    ways: tuple[tuple[Bound, ...], ...]
    ties: tuple[Tie, ...] = ()

    def filled(self, fillings: Mapping[str, str]) -> Reading:
        return replace(self, ways=tuple(tuple(each.filled(fillings) for each in way) for way in self.ways))
