"""Samples: some of the points of a zone, each of which stands for a part of its load."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from triplewire.lake.boxes import Interval
from triplewire.lake.keys import DIMENSIONS, Point


@dataclass(frozen=True, eq=False)
class Sample:
    """Points in the order of a map, and how much each of them weighs."""

    points: Sequence[Point]
    weights: Sequence[float]

    @classmethod
    def of(cls, points: Sequence[Point], load: float) -> Sample:
        """Points that stand for a load together, each for as much as any other."""
        return cls(points, [load / len(points)] * len(points) if points else [])

    @cached_property
    def weight(self) -> float:
        return sum(self.weights)

    @property
    def is_point(self) -> bool:
        """Is there nothing to part?"""
        return all(each == self.points[0] for each in self.points)

    def parted(self, dimension: str, bound: str) -> tuple[Sample, Sample]:
        """What lies under a bound, and the rest."""
        at = DIMENSIONS.index(dimension)
        halves: tuple[tuple[list[Point], list[float]], ...] = (([], []), ([], []))
        for point, weight in zip(self.points, self.weights, strict=True):
            points, weights = halves[point[at] >= bound]
            points.append(point)
            weights.append(weight)
        return Sample(*halves[0]), Sample(*halves[1])

    def __add__(self, other: Sample) -> Sample:
        return Sample([*self.points, *other.points], [*self.weights, *other.weights])

    def column(self, dimension: str) -> Column:
        """Its keys in a dimension, sorted. It is made once."""
        if dimension not in self._columns:
            self._columns[dimension] = _column(self, DIMENSIONS.index(dimension))
        return self._columns[dimension]

    @cached_property
    def _columns(self) -> dict[str, Column]:
        return {}


@dataclass(frozen=True, eq=False)
class Column:
    """Keys of a sample in one dimension, in order, with the weight of each."""

    keys: Sequence[str]
    weights: Sequence[float]

    @cached_property
    def before(self) -> Sequence[float]:
        """The weight before each key, and that of all of them."""
        return [0.0, *accumulate(self.weights)]

    def under(self, bound: str | None) -> float:
        """The weight under a bound."""
        return self.before[-1 if bound is None else bisect_left(self.keys, bound)]

    def within(self, side: Interval) -> float:
        return self.under(side.below) - self.under(side.least)


def _column(sample: Sample, at: int) -> Column:
    order = sorted(range(len(sample.points)), key=lambda number: sample.points[number][at])
    return Column([sample.points[each][at] for each in order], [sample.weights[each] for each in order])


def together(samples: Mapping[str, Sample]) -> Sample:
    """All of them as one."""
    points = [point for each in samples.values() for point in each.points]
    return Sample(points, [weight for each in samples.values() for weight in each.weights])
