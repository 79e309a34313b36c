"""Tilings: boxes that cover a part of the space without gap or overlap, as a tree of cuts.

The tree finds the box of a point in few comparisons. It is made of the boxes alone: where zones were merged, no cut may
be left that parts all of them, and then a box stands on both sides of one.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from triplewire.lake.boxes import Box, Interval
from triplewire.lake.keys import DIMENSIONS, Point

Tile: TypeAlias = tuple[str, Box]
"""A box with the name of its zone."""


@dataclass(frozen=True)
class Cut:
    """Points under the bound lie in `low`, the others in `high`."""

    dimension: str
    bound: str
    low: Tree
    high: Tree


Tree: TypeAlias = Cut | str
"""A leaf is the name of a zone."""


def tree_of(tiles: Sequence[Tile], part: Box) -> Tree:
    """The tree of boxes that tile this part of the space. Raises ValueError if they do not."""
    if len(tiles) == 1 and all(side.within(mine) for side, mine in zip(part.sides, tiles[0][1].sides, strict=True)):
        return tiles[0][0]
    if not (found := _best(tiles, part)):
        raise ValueError(f"{', '.join(name for name, _ in tiles) or 'no zone'} does not tile {part}")
    dimension, bound = found
    low, high = part.cut(dimension, bound)
    under = [tile for tile in tiles if tile[1].side(dimension).meets(low.side(dimension))]
    over = [tile for tile in tiles if tile[1].side(dimension).meets(high.side(dimension))]
    return Cut(dimension, bound, tree_of(under, low), tree_of(over, high))


def leaf_of(tree: Tree, place: Point) -> str:
    """The name of the zone that a point lies in."""
    while isinstance(tree, Cut):
        tree = tree.low if place[DIMENSIONS.index(tree.dimension)] < tree.bound else tree.high
    return tree


def leaves_of(tree: Tree) -> list[str]:
    """The names of the zones of a tree; one that stands on both sides of a cut is named for each."""
    return [*leaves_of(tree.low), *leaves_of(tree.high)] if isinstance(tree, Cut) else [tree]


def _best(tiles: Sequence[Tile], part: Box) -> tuple[str, str] | None:
    """Of the cuts through the fewest boxes, the one with the fewest on its fuller side. None if each leaves all of them
    on one, which it never does where they tile the part: whatever touches a bound from below ends there."""
    found = (
        (*counted, dimension, bound)
        for dimension in DIMENSIONS
        for counted, bound in _counted([box.side(dimension) for _, box in tiles], part.side(dimension))
    )
    best = min(found, default=None)
    return None if best is None or best[1] == len(tiles) else (best[2], best[3])


def _counted(sides: Sequence[Interval], part: Interval) -> list[tuple[tuple[int, int], str]]:
    """For each bound inside the part: how many lie on its sides, a box on both twice, and on the fuller one alone."""
    leasts = sorted(side.least for side in sides)
    belows = sorted(side.below for side in sides if side.below is not None)
    found = []
    for bound in {*leasts, *belows}:
        if part.cuts(bound):
            low, high = bisect_left(leasts, bound), len(sides) - bisect_right(belows, bound)
            found.append(((low + high, max(low, high)), bound))
    return found
