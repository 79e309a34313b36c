"""Relocations: rows move to the zones of a map under which the load is more even.

Each move is one commit: files of the zones that go become files of the zones that come, and the new map holds from
there on. A crash leaves the lake as it was before or after one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa

from triplewire.config import limits
from triplewire.lake.assignments import assignment
from triplewire.lake.balance import Balance, estimates
from triplewire.lake.boxes import SPACE
from triplewire.lake.compactions import by_zone, file_rows
from triplewire.lake.criteria import Load, verdict
from triplewire.lake.houses import House, count
from triplewire.lake.keys import KEYED, Point, points
from triplewire.lake.plans import Plan, plan
from triplewire.lake.ports import Change, DataFile, Snapshot
from triplewire.lake.relations import engine, parquet
from triplewire.lake.rewrites import Rewrite
from triplewire.lake.steps import Move
from triplewire.lake.surveys import load_of
from triplewire.lake.zones import Zone, ZoneMap
from triplewire.sparql import to_sql

Reads = Mapping[str, float]
"""How often zones were read."""


def balance(house: House, settings: Balance, reads: Reads | None = None, *, reorder: bool = False) -> Plan:
    """Split and merge zones until their load is even; what was done. The order of terms stays that of the map, unless
    there is no map yet or it is to be changed, which moves everything."""
    snapshot = house.lake.files()
    zones, loads = house.zones(snapshot), zone_loads(snapshot, reads or {})
    if zones.order != settings.transformation and (reorder or snapshot.zones < 0):
        return _reorder(house, snapshot, settings)
    if is_even(loads, zones, settings):
        return Plan(zones, zones, ())
    made = plan(zones, loads, sampled(house, snapshot, zones), settings)
    for move in made.moves:
        _relocate(house, move, zones.order)
    return made


def _reorder(house: House, snapshot: Snapshot, settings: Balance) -> Plan:
    """Everything moves at once: boxes of one order mean nothing in another."""
    zones = house.zones(snapshot)
    whole = ZoneMap((Zone(zones.unused, SPACE),), settings.transformation)
    loads = sum(zone_loads(snapshot, {}).values(), Load())
    seen = [point for its in sampled(house, snapshot, whole).values() for point in its]
    made = plan(whole, {zones.unused: loads}, {zones.unused: seen}, settings)
    _relocate(house, Move(zones.zones, made.after.zones), settings.transformation)
    return Plan(zones, made.after, made.steps)


def is_even(loads: Mapping[str, Load], zones: ZoneMap, settings: Balance) -> bool:
    """Is there nothing to do?"""
    known = [loads.get(zone.id, Load()) for zone in zones.zones]
    if settings.strategy == "static":
        return len(known) >= settings.zones
    wanted = estimates(known, settings)
    return all(verdict(each, wanted, settings.criteria).state == "normal" for each in known)


def zone_loads(snapshot: Snapshot, reads: Reads) -> dict[str, Load]:
    """By what the table tells of its files."""
    return {zone: load_of(files, reads.get(zone, 0.0)) for zone, files in by_zone(snapshot).items()}


@dataclass(frozen=True)
class _Look:
    """Some files of a zone, and how many of their rows are looked at."""

    zone: str
    files: tuple[str, ...]
    rows: int


def sampled(house: House, snapshot: Snapshot, zones: ZoneMap) -> dict[str, list[Point]]:
    """Points of each zone, in the order of the map, taken from files that are spread over time."""
    total = max(1, count(snapshot.files))
    looks = [
        _Look(zone, _some(files), max(1, limits.ZONE_SAMPLE * count(files) // total))
        for zone, files in by_zone(snapshot).items()
    ]
    found = house.run(partial(_seen, house.table), looks) if looks else []
    return {zone: [zones.placed(each) for each in its] for zone, its in found}


def _some(files: Sequence[DataFile]) -> tuple[str, ...]:
    step = max(1, len(files) // limits.SAMPLED_FILES)
    return tuple(each.path for each in files[::step])


def _seen(table: Path, look: _Look) -> Iterator[tuple[str, list[Point]]]:
    with engine() as duck:
        query = f"SELECT {', '.join(KEYED)} FROM {parquet(str(table / each) for each in look.files)}"
        # Always the same rows, so that two looks at the same files decide the same.
        rows = pa.table(duck.sql(f"{query} USING SAMPLE reservoir({look.rows} ROWS) REPEATABLE (1)"))
    yield look.zone, points(rows)


def _relocate(house: House, move: Move, order: str) -> None:
    """Rows of the zones that go into those that come."""
    snapshot = house.lake.files()
    gone = {zone.id for zone in move.gone}
    zones = house.zones(snapshot)
    after = ZoneMap((*(each for each in zones.zones if each.id not in gone), *move.made), order)
    files = tuple(each for each in snapshot.files if each.zone in gone)
    made = house.rewritten("balancing zones", [*_rewrites(files, after, move, file_rows(snapshot))], count(files))
    house.lake.replace(Change(files, made, zones=house.maps.write(after)))


def _rewrites(files: Sequence[DataFile], after: ZoneMap, move: Move, rows: int) -> Iterator[Rewrite]:
    """Files that lie side by side in time go together, as many as make whole files again."""
    assigned = to_sql(assignment(after), "duckdb")
    names = tuple(each.id for each in move.made)
    together: list[DataFile] = []
    for number, each in enumerate(files, 1):
        together.append(each)
        if count(together) >= rows * len(names) or number == len(files):
            yield Rewrite(tuple(file.path for file in together), rows, names, assigned)
            together = []
