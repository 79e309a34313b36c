"""Zones are half-open boxes of the (graph, subject, predicate, object) space; a zone layout tiles the space with them.

Every quad lies in exactly one zone. A tree of cuts, built from the boxes alone, finds the zone of a point in few
comparisons; after merges a box may stand on both sides of a cut. The zone of a row is also an SQL expression of its
columns.

Layouts are stored as a small Delta table beside the lake. A layout is written first and holds from the commit of the
lake that names its version; a crash in between leaves a version that nobody names.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from sqlglot import exp

from triplewire.sparql import sql
from triplewire.sparql.sql import Sql
from triplewire.storage.lake.keys import (
    DIMENSIONS,
    NUMBER,
    TIME,
    QuadPoint,
    Transformation,
    bound_ordinal,
    double_at,
    double_ordinal,
    find_transformation,
    micros_at,
)


@dataclass(frozen=True)
class KeyInterval:
    """The keys k with `least <= k < below`; None is above all keys."""

    least: str = ""
    below: str | None = None

    def __contains__(self, found: str) -> bool:
        return self.least <= found and (self.below is None or found < self.below)

    def meets(self, other: KeyInterval) -> bool:
        """Is there a text in both?"""
        return _under(self.least, other.below) and _under(other.least, self.below)

    def within(self, other: KeyInterval) -> bool:
        return other.least <= self.least and (
            other.below is None or (self.below is not None and self.below <= other.below)
        )

    def cuts(self, bound: str) -> bool:
        """Is the bound inside, so that both parts have a text?"""
        return self.least < bound and _under(bound, self.below)

    def cut(self, bound: str) -> tuple[KeyInterval, KeyInterval]:
        if not self.cuts(bound):
            raise ValueError(f"{bound!r} is not inside {self}")
        return KeyInterval(self.least, bound), KeyInterval(bound, self.below)


ALL_KEYS = KeyInterval()


def _under(least: str, below: str | None) -> bool:
    return below is None or least < below


@dataclass(frozen=True)
class KeyBox:
    """A part of the space: an interval of keys in each dimension."""

    graph: KeyInterval = ALL_KEYS
    subject: KeyInterval = ALL_KEYS
    predicate: KeyInterval = ALL_KEYS
    object: KeyInterval = ALL_KEYS

    @property
    def sides(self) -> tuple[KeyInterval, KeyInterval, KeyInterval, KeyInterval]:
        return self.graph, self.subject, self.predicate, self.object

    def side(self, dimension: str) -> KeyInterval:
        return self.sides[DIMENSIONS.index(dimension)]

    def __contains__(self, point: QuadPoint) -> bool:
        return all(found in side for found, side in zip(point, self.sides, strict=True))

    def cut(self, dimension: str, bound: str) -> tuple[KeyBox, KeyBox]:
        """The part under the bound and the rest. Raises ValueError if one of them would be empty."""
        low, high = self.side(dimension).cut(bound)
        return replace(self, **{dimension: low}), replace(self, **{dimension: high})

    def joined(self, other: KeyBox) -> tuple[KeyBox, str] | None:
        """The box that both make together and the dimension in which they are neighbours; None if it is no box."""
        apart = [name for name in DIMENSIONS if self.side(name) != other.side(name)]
        if len(apart) != 1:
            return None
        mine, theirs = self.side(apart[0]), other.side(apart[0])
        low, high = (mine, theirs) if mine.least < theirs.least else (theirs, mine)
        if low.below != high.least:
            return None
        return replace(self, **{apart[0]: KeyInterval(low.least, high.below)}), apart[0]


SPACE = KeyBox()
"""Everything."""


Tile: TypeAlias = tuple[str, KeyBox]
"""A box with the name of its zone."""


@dataclass(frozen=True)
class TreeCut:
    """Points under the bound lie in `low`, the others in `high`."""

    dimension: str
    bound: str
    low: ZoneTree
    high: ZoneTree


ZoneTree: TypeAlias = TreeCut | str
"""A leaf is the name of a zone."""


def build_tree(tiles: Sequence[Tile], part: KeyBox) -> ZoneTree:
    """The tree of boxes that tile this part of the space. Raises ValueError if they do not."""
    if len(tiles) == 1 and all(side.within(mine) for side, mine in zip(part.sides, tiles[0][1].sides, strict=True)):
        return tiles[0][0]
    if not (found := _best_cut(tiles, part)):
        raise ValueError(f"{', '.join(name for name, _ in tiles) or 'no zone'} does not tile {part}")
    dimension, bound = found
    low, high = part.cut(dimension, bound)
    under = [tile for tile in tiles if tile[1].side(dimension).meets(low.side(dimension))]
    over = [tile for tile in tiles if tile[1].side(dimension).meets(high.side(dimension))]
    return TreeCut(dimension, bound, build_tree(under, low), build_tree(over, high))


def find_zone(tree: ZoneTree, point: QuadPoint) -> str:
    """The name of the zone that a point lies in."""
    while isinstance(tree, TreeCut):
        tree = tree.low if point[DIMENSIONS.index(tree.dimension)] < tree.bound else tree.high
    return tree


def list_zones(tree: ZoneTree) -> list[str]:
    """The names of the zones of a tree; one that stands on both sides of a cut is named for each."""
    return [*list_zones(tree.low), *list_zones(tree.high)] if isinstance(tree, TreeCut) else [tree]


def _best_cut(tiles: Sequence[Tile], part: KeyBox) -> tuple[str, str] | None:
    """The cut through the fewest boxes; among those, the one with the fewest boxes on its fuller side. None if every
    cut leaves all boxes on one side, which does not happen if the boxes tile the zone."""
    found = (
        (*counted, dimension, bound)
        for dimension in DIMENSIONS
        for counted, bound in _count_sides([box.side(dimension) for _, box in tiles], part.side(dimension))
    )
    best = min(found, default=None)
    return None if best is None or best[1] == len(tiles) else (best[2], best[3])


def _count_sides(sides: Sequence[KeyInterval], part: KeyInterval) -> list[tuple[tuple[int, int], str]]:
    """For each bound inside the part: how many lie on its sides, a box on both twice, and on the fuller one alone."""
    leasts = sorted(side.least for side in sides)
    belows = sorted(side.below for side in sides if side.below is not None)
    found = []
    for bound in {*leasts, *belows}:
        if part.cuts(bound):
            low, high = bisect_left(leasts, bound), len(sides) - bisect_right(belows, bound)
            found.append(((low + high, max(low, high)), bound))
    return found


LAYOUT_SCHEMA = pa.schema(
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
    box: KeyBox
    turn: str = DIMENSIONS[0]


@dataclass(frozen=True)
class ZoneLayout:
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
        find_transformation(self.order)

    @cached_property
    def tree(self) -> ZoneTree:
        return build_tree([(zone.id, zone.box) for zone in self.zones], SPACE)

    @cached_property
    def transformation(self) -> Transformation:
        return find_transformation(self.order)

    def __getitem__(self, zone: str) -> Zone:
        return self._by_id[zone]

    def placed(self, point: QuadPoint) -> QuadPoint:
        """A point of keys in the order of this map."""
        if self.order == "none":
            return point
        graph, subject, predicate, found = map(self.transformation.of_key, point)
        return graph, subject, predicate, found

    def locate(self, placed: QuadPoint) -> str:
        """The id of the zone of a point in the order of this map."""
        return find_zone(self.tree, placed)

    def split(self, zone: str, dimension: str, bound: str) -> ZoneLayout:
        """With two zones for one: what lies under the bound, and the rest."""
        cut = self._by_id[zone]
        turn = _next_dimension(dimension)
        low, high = (Zone(id, box, turn) for id, box in zip(self._ids(2), cut.box.cut(dimension, bound), strict=True))
        return self._with([zone], [low, high])

    def merge(self, zone: str, other: str) -> ZoneLayout:
        """With one zone for two. Raises ValueError if their union is no box."""
        joined = self._by_id[zone].box.joined(self._by_id[other].box)
        if joined is None:
            raise ValueError(f"{zone} and {other} do not make a box")
        box, dimension = joined
        return self._with([zone, other], [Zone(self._ids(1)[0], box, dimension)])

    def to_table(self) -> pa.Table:
        """As a `ZONES` table."""
        return pa.Table.from_pylist([_zone_row(zone, self.order) for zone in self.zones], LAYOUT_SCHEMA)

    @staticmethod
    def from_table(table: pa.Table) -> ZoneLayout:
        """The map of a `ZONES` table, its rows in any order. Raises ValueError if its zones do not tile."""
        rows = table.select(LAYOUT_SCHEMA.names).to_pylist()
        (order,) = {row["transformation"] for row in rows}
        found = ZoneLayout(tuple(sorted((_parse_zone(row) for row in rows), key=_zone_number)), order)
        find_zone(found.tree, ("", "", "", ""))
        return found

    @property
    def unused(self) -> str:
        """An id that no zone of a map before this one has had."""
        return self._ids(1)[0]

    def _with(self, gone: Sequence[str], made: Sequence[Zone]) -> ZoneLayout:
        return replace(self, zones=(*(zone for zone in self.zones if zone.id not in gone), *made))

    def _ids(self, count: int) -> list[str]:
        first = 1 + max(map(_zone_number, self.zones))
        return [f"z{number}" for number in range(first, first + count)]

    @cached_property
    def _by_id(self) -> Mapping[str, Zone]:
        return {zone.id: zone for zone in self.zones}


def _zone_number(zone: Zone) -> int:
    return int(zone.id[1:])


def _next_dimension(dimension: str) -> str:
    return DIMENSIONS[(DIMENSIONS.index(dimension) + 1) % len(DIMENSIONS)]


def _zone_row(zone: Zone, order: str) -> dict[str, str | None]:
    row: dict[str, str | None] = {"zone": zone.id, "turn": zone.turn, "transformation": order}
    for name in DIMENSIONS:
        side = zone.box.side(name)
        row |= {f"least_{name}": side.least or None, f"below_{name}": side.below}
    return row


def _parse_zone(row: Mapping[str, str | None]) -> Zone:
    sides = {name: KeyInterval(row[f"least_{name}"] or "", row[f"below_{name}"]) for name in DIMENSIONS}
    return Zone(str(row["zone"]), KeyBox(**sides), str(row["turn"]))


def zone_expression(zones: ZoneLayout, table: str | None = None) -> Sql:
    """The id of the zone of a row, of its columns `graph`, `subject`, `predicate`, `object`, `object_number` and
    `object_time`; qualified by the name of a table where one is given. `to_sql` writes it for an engine."""
    return _tree_expression(zones.tree, zones.transformation, table)


def below_expression(dimension: str, bound: str, order: Transformation, table: str | None = None) -> Sql:
    """Is the key of a row under a bound?"""
    text = order.of_column(exp.column(dimension, table))
    plain = sql.compare("<", text, sql.text(bound))
    if dimension != "object":
        return plain
    number, time = (exp.column(f"object_{facet}", table) for facet in ("number", "time"))
    original = exp.column("object", table)
    return sql.case(
        (sql.present(number), _number_under(number, original, bound)),
        (sql.present(time), _time_under(time, original, bound)),
        default=plain,
    )


def _tree_expression(tree: ZoneTree, order: Transformation, table: str | None) -> Sql:
    if isinstance(tree, str):
        return sql.text(tree)
    low, high = (_tree_expression(each, order, table) for each in (tree.low, tree.high))
    return sql.case((below_expression(tree.dimension, tree.bound, order, table), low), default=high)


def _number_under(number: Sql, text: Sql, bound: str) -> Sql:
    if not bound.startswith(NUMBER):
        return sql.truth(bound > NUMBER)
    ordinal, rest = bound_ordinal(bound)
    if ordinal > double_ordinal(float("nan")):
        return sql.truth(True)
    if ordinal < double_ordinal(float("-inf")):
        return sql.truth(False)
    return _pair_under(number, sql.double(double_at(ordinal)), text, rest)


def _time_under(time: Sql, text: Sql, bound: str) -> Sql:
    if not bound.startswith(TIME):
        return sql.truth(bound > TIME)
    ordinal, rest = bound_ordinal(bound)
    if ordinal >= 1 << 64:
        return sql.truth(True)
    return _pair_under(sql.call("TW_MICROS", time), _cast_integer(micros_at(ordinal)), text, rest)


def _pair_under(value: Sql, bound: Sql, text: Sql, rest: str) -> Sql:
    """Is (value, text) under (bound, rest)?"""
    less = sql.compare("<", value, bound)
    if not rest:
        return less
    return sql.some(less, sql.every(sql.equal(value, bound), sql.compare("<", text, sql.text(rest))))


def _cast_integer(value: int) -> Sql:
    """As a text that is cast: the least of all has no positive counterpart that an engine could negate."""
    return sql.cast(sql.text(str(value)), exp.DataType.build("BIGINT"))


class ZoneLayoutStore:
    """By version. -1 is the map of one zone."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._known: dict[int, ZoneLayout] = {-1: ZoneLayout()}

    def write(self, zones: ZoneLayout) -> int:
        """The version under which it is read."""
        write_deltalake(self.path, zones.to_table().cast(LAYOUT_SCHEMA), mode="overwrite", name="zones")
        version = DeltaTable(self.path).version()
        self._known[version] = zones
        return version

    def forget(self) -> None:
        """Read layouts again: they were rewritten under their own versions."""
        self._known = {-1: ZoneLayout()}

    def read(self, version: int) -> ZoneLayout:
        if version not in self._known:
            self._known[version] = ZoneLayout.from_table(pa.table(DeltaTable(self.path, version).to_pyarrow_table()))
        return self._known[version]
