"""Samples: some of the points of zones, each of which stands for a part of its zone's load.

Keys are long and are compared often, so that they are sorted once: within a sample a key is its rank among all.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from triplewire.lake.boxes import Interval
from triplewire.lake.keys import DIMENSIONS, Point

Lexicon = tuple[Sequence[str], ...]
"""For each dimension its keys, sorted, each once."""


@dataclass(frozen=True, eq=False)
class Sample:
    """Points in the order of a map, and how much each of them weighs. Samples of one lexicon can be joined."""

    lexicon: Lexicon
    ranks: npt.NDArray[np.int64]
    """A row for each point, a column for each dimension."""
    weights: npt.NDArray[np.float64]

    @cached_property
    def weight(self) -> float:
        return float(self.weights.sum())

    @property
    def is_point(self) -> bool:
        """Is there nothing to part?"""
        return not len(self.ranks) or bool((self.ranks == self.ranks[0]).all())

    def parted(self, dimension: str, bound: str) -> tuple[Sample, Sample]:
        """What lies under a bound, and the rest."""
        at = DIMENSIONS.index(dimension)
        under = self.ranks[:, at] < bisect_left(self.lexicon[at], bound)
        return self._chosen(under), self._chosen(~under)

    def __add__(self, other: Sample) -> Sample:
        ranks, weights = ((self.ranks, other.ranks), (self.weights, other.weights))
        return Sample(self.lexicon, np.concatenate(ranks), np.concatenate(weights))

    def column(self, dimension: str) -> Column:
        """Its keys in a dimension. It is made once."""
        if dimension not in self._columns:
            at = DIMENSIONS.index(dimension)
            places, inverse = np.unique(self.ranks[:, at], return_inverse=True)
            weights = np.bincount(inverse, self.weights, len(places))
            self._columns[dimension] = Column(self.lexicon[at], places, np.concatenate(([0.0], np.cumsum(weights))))
        return self._columns[dimension]

    @cached_property
    def _columns(self) -> dict[str, Column]:
        return {}

    def _chosen(self, those: npt.NDArray[np.bool_]) -> Sample:
        return Sample(self.lexicon, self.ranks[those], self.weights[those])


@dataclass(frozen=True, eq=False)
class Column:
    """Keys of a sample in one dimension, in order, each once."""

    lexicon: Sequence[str]
    ranks: npt.NDArray[np.int64]
    before: npt.NDArray[np.float64]
    """The weight before each key, and that of all of them."""

    def key(self, place: int) -> str:
        return self.lexicon[int(self.ranks[place])]

    @property
    def keys(self) -> list[str]:
        return [self.lexicon[rank] for rank in self.ranks.tolist()]

    @property
    def weights(self) -> npt.NDArray[np.float64]:
        return np.diff(self.before)

    def under(self, bound: str | None) -> float:
        """The weight under a bound."""
        if bound is None:
            return float(self.before[-1])
        return float(self.before[np.searchsorted(self.ranks, bisect_left(self.lexicon, bound))])

    def within(self, side: Interval) -> float:
        return self.under(side.below) - self.under(side.least)


def weighed(points: Mapping[str, Sequence[Point]], loads: Mapping[str, float]) -> tuple[dict[str, Sample], Sample]:
    """A sample for each load that is named, whose points weigh as much together as the load; and all of them as one."""
    named = {zone: points.get(zone, ()) for zone in loads}
    lexicon, ranks = _ranked([point for each in named.values() for point in each])
    samples, start = {}, 0
    for zone, each in named.items():
        rows = ranks[start : start + len(each)]
        samples[zone] = Sample(lexicon, rows, np.full(len(each), loads[zone] / max(1, len(each))))
        start += len(each)
    return samples, Sample(lexicon, ranks, np.concatenate([[], *(each.weights for each in samples.values())]))


def _ranked(points: Sequence[Point]) -> tuple[Lexicon, npt.NDArray[np.int64]]:
    lexicon = tuple(sorted({point[at] for point in points}) for at in range(len(DIMENSIONS)))
    places = [{found: rank for rank, found in enumerate(each)} for each in lexicon]
    rows = [[place[found] for place, found in zip(places, point, strict=True)] for point in points]
    return lexicon, np.array(rows, dtype=np.int64).reshape(len(points), len(DIMENSIONS))
