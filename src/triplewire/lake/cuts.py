"""Cuts: where a zone is split.

A rule proposes bounds in a dimension; the dimension is the next in turn or the best one. The best cut leaves on both
sides what whole zones hold, and of such cuts it saves the most reading.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from triplewire.lake import fractions
from triplewire.lake.boxes import ALL_KEYS, Interval
from triplewire.lake.keys import DIMENSIONS
from triplewire.lake.samples import Sample
from triplewire.lake.zones import Zone

_ASKED: Mapping[str, float] = {"predicate": 2.0, "subject": 1.0, "object": 0.125, "graph": 0.0625}
"""What it is worth to read less for a constant in a dimension. Most patterns name a predicate, few a subject, fewer an
object; who asks for one event alone knows its time."""


@dataclass(frozen=True)
class Wish:
    """A zone that is to be split, what is known of it and of everything, and into how many zones it will be, in the
    end. Cuts that leave zones off the mean by less than `slack`, as a share of it, are as good as exact. `space` bounds
    keys where nothing else does."""

    zone: Zone
    sample: Sample
    everything: Sample
    parts: int = 2
    slack: float = 0.02
    space: Interval = ALL_KEYS


@dataclass(frozen=True)
class Proposal:
    """A bound in a dimension."""

    dimension: str
    bound: str


Rule = Callable[[Wish, str], Iterator[str]]
"""Proposes bounds inside a zone's side in a dimension."""

Choice = Callable[[Wish, Rule], Proposal | None]


def _middle(wish: Wish, dimension: str) -> Iterator[str]:
    """The mean of the zone's bounds, whatever lies there."""
    bound = fractions.middle(wish.zone.box.side(dimension), wish.space)
    if bound is not None:
        yield bound


def _centroid(wish: Wish, dimension: str) -> Iterator[str]:
    """The mean of the keys."""
    column = wish.sample.column(dimension)
    bound = fractions.mean(column.keys, column.weights, wish.zone.box.side(dimension))
    if bound is not None:
        yield bound


def _quantile(wish: Wish, dimension: str) -> Iterator[str]:
    """Where the sample has what a whole number of zones will hold under it, or nearly that: at the most even place, and
    at the one nearest to the middle that is even enough."""
    column = wish.sample.column(dimension)
    if len(column.ranks) < 2:
        return
    wanted = column.before[-1] * np.arange(1, wish.parts) / wish.parts
    near = np.searchsorted(column.before, wanted)
    places = np.unique(np.clip(np.concatenate((near, near - 1)), 1, len(column.ranks) - 1))
    shares = column.before[places] / column.before[-1]
    slips = _slips(shares, wish.parts)
    central = np.where(slips <= wish.slack, np.abs(shares - 0.5), 1 + slips)
    for place in {int(places[np.argmin(slips)]), int(places[np.argmin(central)])}:
        yield separator(column.key(place - 1), column.key(place))


def separator(under: str, over: str) -> str:
    """The shortest text that is greater than one key and not greater than another one that is."""
    length = next(place for place, each in enumerate(over) if place >= len(under) or under[place] != each)
    return over[: length + 1]


RULES: Mapping[str, Rule] = {"middle": _middle, "centroid": _centroid, "quantile": _quantile}


def _turn(wish: Wish, rule: Rule) -> Proposal | None:
    """In the dimension whose turn it is; in a later one only if there the rule finds none."""
    start = DIMENSIONS.index(wish.zone.turn)
    for dimension in (*DIMENSIONS[start:], *DIMENSIONS[:start]):
        found = [Proposal(dimension, bound) for bound in rule(wish, dimension)]
        if found:
            return min(found, key=lambda each: _slip(wish, each))
    return None


def _best(wish: Wish, rule: Rule) -> Proposal | None:
    found = {Proposal(dimension, bound) for dimension in DIMENSIONS for bound in rule(wish, dimension)}
    slips = {each: _slip(wish, each) for each in found}
    least = min(slips.values(), default=0.0)
    good = [each for each in found if slips[each] <= max(least, wish.slack)]
    return max(good, key=lambda each: (_saved(wish, each), each.dimension, each.bound), default=None)


DIMENSION_CHOICES: Mapping[str, Choice] = {"turn": _turn, "best": _best}


def _slip(wish: Wish, proposal: Proposal) -> float:
    share = wish.sample.column(proposal.dimension).under(proposal.bound) / wish.sample.weight
    return float(_slips(np.array([share]), wish.parts)[0])


def _slips(shares: npt.NDArray[np.float64], parts: int) -> npt.NDArray[np.float64]:
    """How far the zones that a cut will end in are from even, as a share of what one of them holds; for cuts with such
    shares of the load under them."""
    low = np.clip(np.round(shares * parts), 1, parts - 1)
    return np.abs(shares * parts - low) / np.minimum(low, parts - low)


def _saved(wish: Wish, proposal: Proposal) -> float:
    """How much less is read with the cut, by questions with a constant in its dimension: these read a zone as often as
    their constants lie in its side."""
    side = wish.zone.box.side(proposal.dimension)
    all_keys, mine = (each.column(proposal.dimension) for each in (wish.everything, wish.sample))
    read = all_keys.within(side) * mine.within(side)
    for part in side.cut(proposal.bound):
        read -= all_keys.within(part) * mine.within(part)
    return read * _ASKED[proposal.dimension]
