"""Zones: boxes that tile the space, so that every quad lies in exactly one of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

from triplewire.lake.boxes import SPACE, Box, Interval
from triplewire.lake.keys import DIMENSIONS, Point
from triplewire.lake.tilings import Tree, leaf_of, tree_of
from triplewire.lake.transformations import Transformation, transformation

ZONES = pa.schema(
    [
        pa.field("zone", pa.string()),
        pa.field("turn", pa.string()),
        pa.field("transformation", pa.string()),
        *(pa.field(f"{end}_{name}", pa.string()) for name in DIMENSIONS for end in ("least", "below")),
    ]
)
"""A zone map as a table: a row for each zone. The transformation is the same in all of them; null is unbounded."""


@dataclass(frozen=True)
class Zone:
    """A box with a name. `turn` is the dimension that is to be cut next where they are cut in turn."""

    id: str
    box: Box
    turn: str = DIMENSIONS[0]


@dataclass(frozen=True)
class ZoneMap:
    """Zones that tile the space. An id is never given twice: those of an operation follow the greatest that there is,
    and the zones that it makes have the greatest from then on.

    Boxes, and points that `locate` takes, are in the order that the map's transformation makes of keys. `tree` raises
    ValueError for zones that do not tile; splits and merges of such that do always do."""

    zones: tuple[Zone, ...] = (Zone("z0", SPACE),)
    order: str = "none"
    """The name of the transformation."""

    def __post_init__(self) -> None:
        if len(self._by_id) != len(self.zones):
            raise ValueError("two zones have one id")
        transformation(self.order)

    @cached_property
    def tree(self) -> Tree:
        return tree_of([(zone.id, zone.box) for zone in self.zones], SPACE)

    @cached_property
    def transformation(self) -> Transformation:
        return transformation(self.order)

    def __getitem__(self, zone: str) -> Zone:
        return self._by_id[zone]

    def placed(self, point: Point) -> Point:
        """A point of keys in the order of this map."""
        if self.order == "none":
            return point
        graph, subject, predicate, found = map(self.transformation.of_key, point)
        return graph, subject, predicate, found

    def locate(self, placed: Point) -> str:
        """The id of the zone of a point in the order of this map."""
        return leaf_of(self.tree, placed)

    def split(self, zone: str, dimension: str, bound: str) -> ZoneMap:
        """With two zones for one: what lies under the bound, and the rest."""
        cut = self._by_id[zone]
        turn = _next(dimension)
        low, high = (Zone(id, box, turn) for id, box in zip(self._ids(2), cut.box.cut(dimension, bound), strict=True))
        return self._with([zone], [low, high])

    def merge(self, zone: str, other: str) -> ZoneMap:
        """With one zone for two. Raises ValueError if their union is no box."""
        joined = self._by_id[zone].box.joined(self._by_id[other].box)
        if joined is None:
            raise ValueError(f"{zone} and {other} do not make a box")
        box, dimension = joined
        return self._with([zone, other], [Zone(self._ids(1)[0], box, dimension)])

    def to_table(self) -> pa.Table:
        """As a `ZONES` table."""
        return pa.Table.from_pylist([_row(zone, self.order) for zone in self.zones], ZONES)

    @staticmethod
    def from_table(table: pa.Table) -> ZoneMap:
        """The map of a `ZONES` table, its rows in any order. Raises ValueError if its zones do not tile."""
        rows = table.select(ZONES.names).to_pylist()
        (order,) = {row["transformation"] for row in rows}
        found = ZoneMap(tuple(sorted((_zone(row) for row in rows), key=_number)), order)
        leaf_of(found.tree, ("", "", "", ""))
        return found

    @property
    def unused(self) -> str:
        """An id that no zone of a map before this one has had."""
        return self._ids(1)[0]

    def _with(self, gone: Sequence[str], made: Sequence[Zone]) -> ZoneMap:
        return replace(self, zones=(*(zone for zone in self.zones if zone.id not in gone), *made))

    def _ids(self, count: int) -> list[str]:
        first = 1 + max(map(_number, self.zones))
        return [f"z{number}" for number in range(first, first + count)]

    @cached_property
    def _by_id(self) -> Mapping[str, Zone]:
        return {zone.id: zone for zone in self.zones}


def _number(zone: Zone) -> int:
    return int(zone.id[1:])


def _next(dimension: str) -> str:
    return DIMENSIONS[(DIMENSIONS.index(dimension) + 1) % len(DIMENSIONS)]


def _row(zone: Zone, order: str) -> dict[str, str | None]:
    row: dict[str, str | None] = {"zone": zone.id, "turn": zone.turn, "transformation": order}
    for name in DIMENSIONS:
        side = zone.box.side(name)
        row |= {f"least_{name}": side.least or None, f"below_{name}": side.below}
    return row


def _zone(row: Mapping[str, str | None]) -> Zone:
    sides = {name: Interval(row[f"least_{name}"] or "", row[f"below_{name}"]) for name in DIMENSIONS}
    return Zone(str(row["zone"]), Box(**sides), str(row["turn"]))
