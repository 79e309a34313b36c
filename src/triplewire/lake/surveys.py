"""Surveys: what lies in each zone of a lake, by its files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from triplewire.lake.boxes import Interval
from triplewire.lake.compactions import by_zone, fresh
from triplewire.lake.criteria import Load
from triplewire.lake.houses import count
from triplewire.lake.keys import DIMENSIONS, NUMBER, TIME, double, micros_at, place_of
from triplewire.lake.ports import DataFile, Snapshot
from triplewire.lake.zones import Zone, ZoneMap

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Holding:
    """What files hold: how many there are, and the load that they make."""

    files: int
    load: Load


@dataclass(frozen=True)
class Survey:
    """A zone map with what lies in its zones. `fresh` is what lies in none yet."""

    zones: ZoneMap
    holdings: Mapping[str, Holding]
    fresh: Holding
    version: int = -1
    """Of the table."""

    @property
    def quads(self) -> float:
        """In zones."""
        return sum(each.load.quads for each in self.holdings.values())

    def share(self, zone: str) -> float:
        """Of all quads in zones."""
        return self.holdings[zone].load.quads / self.quads if self.quads else 0.0


def survey(snapshot: Snapshot, zones: ZoneMap, reads: Mapping[str, float] | None = None) -> Survey:
    """What a snapshot's files say, and how often each zone was read where that is known."""
    held, read = by_zone(snapshot), reads or {}
    found = {zone.id: _holding(held.get(zone.id, ()), read.get(zone.id, 0.0)) for zone in zones.zones}
    return Survey(zones, found, _holding(fresh(snapshot)), snapshot.version)


def load_of(files: Sequence[DataFile], reads: float = 0.0) -> Load:
    return Load(count(files), sum(each.size for each in files), reads)


def totals(snapshot: Snapshot) -> dict[str, int]:
    """The whole lake in a few numbers."""
    return {
        "version": snapshot.version,
        "files": len(snapshot.files),
        "fresh": len(fresh(snapshot)),
        "bytes": snapshot.size,
        "quads": count(snapshot.files),
    }


def _holding(files: Sequence[DataFile], reads: float = 0.0) -> Holding:
    return Holding(len(files), load_of(files, reads))


def described(found: Survey) -> dict[str, Any]:
    """As JSON. Bounds are keys, and in the words of `words`."""
    return {
        "version": found.version,
        "order": found.zones.order,
        "costs": found.zones.transformation.costs,
        "quads": found.quads,
        "fresh": _figures(found.fresh),
        "zones": [
            {
                "zone": zone.id,
                **_figures(found.holdings[zone.id]),
                "share": round(found.share(zone.id), 6),
                "box": {name: _side(zone.box.side(name)) for name in DIMENSIONS},
                "words": words(zone),
            }
            for zone in found.zones.zones
        ],
    }


def _figures(held: Holding) -> dict[str, Any]:
    return {"files": held.files, "quads": held.load.quads, "bytes": held.load.bytes, "reads": held.load.reads}


def _side(side: Interval) -> dict[str, str | None]:
    return {"least": side.least or None, "below": side.below}


def words(zone: Zone) -> str:
    """The sides of a zone that have bounds, for people."""
    sides = [(name, zone.box.side(name)) for name in DIMENSIONS]
    said = [_said(name, side) for name, side in sides if side != Interval()]
    return ", ".join(said) or "everything"


def _said(name: str, side: Interval) -> str:
    low = f"{readable(side.least)} ≤ " if side.least else ""
    return f"{low}{name}" + (f" < {readable(side.below)}" if side.below is not None else "")


def readable(bound: str, most: int = 44) -> str:
    """A bound for people: a number and a time as such, a text with its middle left out where it is long."""
    if bound[:1] in (NUMBER, TIME) and len(bound) > 1:
        place, _ = place_of(bound)
        return f"{double(place):g}" if bound[0] == NUMBER else _moment(micros_at(place))
    plain = "".join(each if each.isprintable() else f"U+{ord(each):04X}" for each in bound)
    return plain if len(plain) <= most else f"{plain[: most // 4]}…{plain[-(most - most // 4 - 1) :]}"


def _moment(micros: int) -> str:
    try:
        return (_EPOCH + timedelta(microseconds=micros)).isoformat().replace("+00:00", "Z")
    except OverflowError:
        return f"{micros} µs"
