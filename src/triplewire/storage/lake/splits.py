"""Split points: where an overloaded zone is cut.

A rule proposes bounds in a dimension, which is the next in turn or the best one. The best cut leaves whole zones on
both sides and, among such cuts, saves the most reading. Samples are points of a zone, each weighing a part of its
load; a key is its rank among all keys of the sample. Means are computed on keys as fractions in radix 1,114,112, a
digit for each code point, as EventCloud does.
"""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from triplewire.storage.lake.keys import DIMENSIONS, QuadPoint
from triplewire.storage.lake.zones import ALL_KEYS, KeyInterval, Zone

CENTROID_CHARACTERS: Final = 96
"""How many of a key's first characters count for a mean of keys. Most IRIs are shorter."""


KeyDictionary = tuple[Sequence[str], ...]
"""For each dimension its keys, sorted, each once."""


@dataclass(frozen=True, eq=False)
class ZoneSample:
    """Points in the order of a map, and how much each of them weighs. Samples of one lexicon can be joined."""

    lexicon: KeyDictionary
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

    def parted(self, dimension: str, bound: str) -> tuple[ZoneSample, ZoneSample]:
        """Split a zone at a bound."""
        at = DIMENSIONS.index(dimension)
        under = self.ranks[:, at] < bisect_left(self.lexicon[at], bound)
        return self._chosen(under), self._chosen(~under)

    def __add__(self, other: ZoneSample) -> ZoneSample:
        ranks, weights = ((self.ranks, other.ranks), (self.weights, other.weights))
        return ZoneSample(self.lexicon, np.concatenate(ranks), np.concatenate(weights))

    def column(self, dimension: str) -> SampleColumn:
        """Its keys in a dimension. It is made once."""
        if dimension not in self._columns:
            at = DIMENSIONS.index(dimension)
            ranks, inverse = np.unique(self.ranks[:, at], return_inverse=True)
            weights = np.bincount(inverse, self.weights, len(ranks))
            self._columns[dimension] = SampleColumn(
                self.lexicon[at], ranks, np.concatenate(([0.0], np.cumsum(weights)))
            )
        return self._columns[dimension]

    @cached_property
    def _columns(self) -> dict[str, SampleColumn]:
        return {}

    def _chosen(self, those: npt.NDArray[np.bool_]) -> ZoneSample:
        return ZoneSample(self.lexicon, self.ranks[those], self.weights[those])


@dataclass(frozen=True, eq=False)
class SampleColumn:
    """Keys of a sample in one dimension, in order, each once."""

    lexicon: Sequence[str]
    ranks: npt.NDArray[np.int64]
    before: npt.NDArray[np.float64]
    """The weight before each key, and that of all of them."""

    def key(self, index: int) -> str:
        return self.lexicon[int(self.ranks[index])]

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

    def within(self, side: KeyInterval) -> float:
        return self.under(side.below) - self.under(side.least)


def weigh_samples(
    points: Mapping[str, Sequence[QuadPoint]], loads: Mapping[str, float]
) -> tuple[dict[str, ZoneSample], ZoneSample]:
    """A sample for each load that is named, whose points weigh as much together as the load; and all of them as one."""
    named = {zone: points.get(zone, ()) for zone in loads}
    lexicon, ranks = _rank_keys([point for each in named.values() for point in each])
    samples, start = {}, 0
    for zone, each in named.items():
        rows = ranks[start : start + len(each)]
        samples[zone] = ZoneSample(lexicon, rows, np.full(len(each), loads[zone] / max(1, len(each))))
        start += len(each)
    return samples, ZoneSample(lexicon, ranks, np.concatenate([[], *(each.weights for each in samples.values())]))


def _rank_keys(points: Sequence[QuadPoint]) -> tuple[KeyDictionary, npt.NDArray[np.int64]]:
    lexicon = tuple(sorted({point[at] for point in points}) for at in range(len(DIMENSIONS)))
    numbers = [{found: rank for rank, found in enumerate(each)} for each in lexicon]
    rows = [[ranks[found] for ranks, found in zip(numbers, point, strict=True)] for point in points]
    return lexicon, np.array(rows, dtype=np.int64).reshape(len(points), len(DIMENSIONS))


RADIX = sys.maxunicode + 1


def interval_middle(side: KeyInterval, space: KeyInterval) -> str | None:
    """The mean of an interval's bounds, those of the space where it has none. None if no text lies between."""
    least, below = side.least, side.below
    if least < space.least and (below is None or space.least < below):
        least = space.least
    if below is None:
        below = space.below if space.below is not None and space.below > least else chr(sys.maxunicode)
    width = max(len(least), len(below)) + 1
    return _to_bound(side, (_to_integer(least, width) + _to_integer(below, width)) // 2, width)


def weighted_mean(keys: Sequence[str], weights: npt.ArrayLike, side: KeyInterval) -> str | None:
    """The mean of keys, as far as their first characters tell. None if it is no bound inside the interval."""
    width = CENTROID_CHARACTERS
    digits = np.array(keys, dtype=f"U{width}").view(np.uint32).reshape(len(keys), width)
    # In whole thousandths, so that sums are exact however long they grow.
    parts = np.maximum(1, np.rint(np.asarray(weights) * 1_000)).astype(np.int64)
    sums = (digits.astype(np.int64) * parts[:, None]).sum(axis=0).tolist()
    total = 0
    for each in sums:
        total = total * RADIX + each
    return _to_bound(side, total // int(parts.sum()), width)


def _to_integer(text: str, width: int) -> int:
    found = 0
    for index in range(width):
        found = found * RADIX + (ord(text[index]) if index < len(text) else 0)
    return found


def _to_bound(side: KeyInterval, value: int, width: int) -> str | None:
    """The fraction as a bound inside the interval."""
    digits = []
    for _ in range(width):
        value, digit = divmod(value, RADIX)
        digits.append(digit)
    exact = digits[::-1]
    # A text has neither halves of surrogate pairs nor, for the sake of engines, a zero; its neighbours do as well.
    over = "".join(chr(0xE000 if 0xD800 <= digit < 0xE000 else digit or 1) for digit in exact)
    under = "".join(chr(0xD7FF if 0xD800 <= digit < 0xE000 else digit) for digit in exact).split("\0")[0]
    return next((bound for bound in (under, over) if side.cuts(bound)), None)


_QUERY_WEIGHTS: Mapping[str, float] = {"predicate": 2.0, "subject": 1.0, "object": 0.125, "graph": 0.0625}
"""Weights of dimensions: how much it is worth to read less for a constant in each. Most patterns have a constant
predicate, few a subject, fewer an object; queries for single events give a time."""


@dataclass(frozen=True)
class SplitRequest:
    """A zone that is to be split, what is known of it and of everything, and into how many zones it will be, in the
    end. Cuts that leave zones off the mean by less than `slack`, as a share of it, are as good as exact. `space` bounds
    keys where nothing else does."""

    zone: Zone
    sample: ZoneSample
    everything: ZoneSample
    parts: int = 2
    slack: float = 0.02
    space: KeyInterval = ALL_KEYS


@dataclass(frozen=True)
class SplitProposal:
    """A bound in a dimension."""

    dimension: str
    bound: str


SplitRule = Callable[[SplitRequest, str], Iterator[str]]
"""Proposes bounds inside a zone's side in a dimension."""

DimensionChoice = Callable[[SplitRequest, SplitRule], SplitProposal | None]


def _propose_middle(wish: SplitRequest, dimension: str) -> Iterator[str]:
    """The mean of the zone's bounds, whatever lies there."""
    bound = interval_middle(wish.zone.box.side(dimension), wish.space)
    if bound is not None:
        yield bound


def _propose_centroid(wish: SplitRequest, dimension: str) -> Iterator[str]:
    """The mean of the keys."""
    column = wish.sample.column(dimension)
    bound = weighted_mean(column.keys, column.weights, wish.zone.box.side(dimension))
    if bound is not None:
        yield bound


def _propose_quantile(wish: SplitRequest, dimension: str) -> Iterator[str]:
    """Where the sample has what a whole number of zones will hold under it, or nearly that: at the most even key, and
    at the one nearest to the middle that is even enough."""
    column = wish.sample.column(dimension)
    if len(column.ranks) < 2:
        return
    wanted = column.before[-1] * np.arange(1, wish.parts) / wish.parts
    near = np.searchsorted(column.before, wanted)
    indexes = np.unique(np.clip(np.concatenate((near, near - 1)), 1, len(column.ranks) - 1))
    shares = column.before[indexes] / column.before[-1]
    slips = _imbalances(shares, wish.parts)
    central = np.where(slips <= wish.slack, np.abs(shares - 0.5), 1 + slips)
    for index in {int(indexes[np.argmin(slips)]), int(indexes[np.argmin(central)])}:
        yield separator(column.key(index - 1), column.key(index))


def separator(under: str, over: str) -> str:
    """The shortest text that is greater than one key and not greater than another one that is."""
    length = next(index for index, each in enumerate(over) if index >= len(under) or under[index] != each)
    return over[: length + 1]


RULES: Mapping[str, SplitRule] = {
    "middle": _propose_middle,
    "centroid": _propose_centroid,
    "quantile": _propose_quantile,
}


def _choose_in_turn(wish: SplitRequest, rule: SplitRule) -> SplitProposal | None:
    """In the dimension whose turn it is; in a later one only if there the rule finds none."""
    start = DIMENSIONS.index(wish.zone.turn)
    for dimension in (*DIMENSIONS[start:], *DIMENSIONS[:start]):
        found = [SplitProposal(dimension, bound) for bound in rule(wish, dimension)]
        if found:
            return min(found, key=lambda each: _imbalance(wish, each))
    return None


def _choose_best(wish: SplitRequest, rule: SplitRule) -> SplitProposal | None:
    found = {SplitProposal(dimension, bound) for dimension in DIMENSIONS for bound in rule(wish, dimension)}
    slips = {each: _imbalance(wish, each) for each in found}
    least = min(slips.values(), default=0.0)
    good = [each for each in found if slips[each] <= max(least, wish.slack)]
    return max(good, key=lambda each: (_reading_saved(wish, each), each.dimension, each.bound), default=None)


DIMENSION_CHOICES: Mapping[str, DimensionChoice] = {"turn": _choose_in_turn, "best": _choose_best}


def _imbalance(wish: SplitRequest, proposal: SplitProposal) -> float:
    share = wish.sample.column(proposal.dimension).under(proposal.bound) / wish.sample.weight
    return float(_imbalances(np.array([share]), wish.parts)[0])


def _imbalances(shares: npt.NDArray[np.float64], parts: int) -> npt.NDArray[np.float64]:
    """How far the zones that a cut will end in are from even, as a share of what one of them holds; for cuts with such
    shares of the load under them."""
    low = np.clip(np.round(shares * parts), 1, parts - 1)
    return np.abs(shares * parts - low) / np.minimum(low, parts - low)


def _reading_saved(wish: SplitRequest, proposal: SplitProposal) -> float:
    """How much less is read with the cut, by questions with a constant in its dimension: these read a zone as often as
    their constants lie in its side."""
    side = wish.zone.box.side(proposal.dimension)
    all_keys, mine = (each.column(proposal.dimension) for each in (wish.everything, wish.sample))
    read = all_keys.within(side) * mine.within(side)
    for part in side.cut(proposal.bound):
        read -= all_keys.within(part) * mine.within(part)
    return read * _QUERY_WEIGHTS[proposal.dimension]
