"""Boxes: parts of the (graph, subject, predicate, object) space, half open on every side."""

from __future__ import annotations

from dataclasses import dataclass, replace

from triplewire.lake.keys import DIMENSIONS, Point


@dataclass(frozen=True)
class Interval:
    """The keys k with `least <= k < below`; None is above all keys."""

    least: str = ""
    below: str | None = None

    def __contains__(self, found: str) -> bool:
        return self.least <= found and (self.below is None or found < self.below)

    def meets(self, other: Interval) -> bool:
        """Is there a text in both?"""
        return _under(self.least, other.below) and _under(other.least, self.below)

    def within(self, other: Interval) -> bool:
        return other.least <= self.least and (
            other.below is None or (self.below is not None and self.below <= other.below)
        )

    def cuts(self, bound: str) -> bool:
        """Is the bound inside, so that both parts have a text?"""
        return self.least < bound and _under(bound, self.below)

    def cut(self, bound: str) -> tuple[Interval, Interval]:
        if not self.cuts(bound):
            raise ValueError(f"{bound!r} is not inside {self}")
        return Interval(self.least, bound), Interval(bound, self.below)


ALL_KEYS = Interval()


def _under(least: str, below: str | None) -> bool:
    return below is None or least < below


@dataclass(frozen=True)
class Box:
    """A part of the space: an interval of keys in each dimension."""

    graph: Interval = ALL_KEYS
    subject: Interval = ALL_KEYS
    predicate: Interval = ALL_KEYS
    object: Interval = ALL_KEYS

    @property
    def sides(self) -> tuple[Interval, Interval, Interval, Interval]:
        return self.graph, self.subject, self.predicate, self.object

    def side(self, dimension: str) -> Interval:
        return self.sides[DIMENSIONS.index(dimension)]

    def __contains__(self, place: Point) -> bool:
        return all(found in side for found, side in zip(place, self.sides, strict=True))

    def cut(self, dimension: str, bound: str) -> tuple[Box, Box]:
        """The part under the bound and the rest. Raises ValueError if one of them would be empty."""
        low, high = self.side(dimension).cut(bound)
        return replace(self, **{dimension: low}), replace(self, **{dimension: high})

    def joined(self, other: Box) -> tuple[Box, str] | None:
        """The box that both make together and the dimension in which they are neighbours; None if it is no box."""
        apart = [name for name in DIMENSIONS if self.side(name) != other.side(name)]
        if len(apart) != 1:
            return None
        mine, theirs = self.side(apart[0]), other.side(apart[0])
        low, high = (mine, theirs) if mine.least < theirs.least else (theirs, mine)
        if low.below != high.least:
            return None
        return replace(self, **{apart[0]: Interval(low.least, high.below)}), apart[0]


SPACE = Box()
"""Everything."""
