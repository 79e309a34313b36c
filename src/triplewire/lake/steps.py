"""Steps: what is done to a zone map, and what that means for the rows of the table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from triplewire.lake.zones import Zone, ZoneMap


@dataclass(frozen=True)
class Split:
    """A zone is cut in two."""

    zone: str
    dimension: str
    bound: str
    made: tuple[str, str]

    def __call__(self, zones: ZoneMap) -> ZoneMap:
        return zones.split(self.zone, self.dimension, self.bound)


@dataclass(frozen=True)
class Merge:
    """Two zones that make a box become one."""

    zones: tuple[str, str]
    made: str

    def __call__(self, zones: ZoneMap) -> ZoneMap:
        return zones.merge(*self.zones)


Step: TypeAlias = Split | Merge


@dataclass(frozen=True)
class Move:
    """Zones that go and zones that come, which are the same part of the space: rows of the ones move to the others, and
    no rows of any other zone do."""

    gone: tuple[Zone, ...]
    made: tuple[Zone, ...]


def moves(before: ZoneMap, steps: Iterable[Step]) -> tuple[Move, ...]:
    """What steps come to, in as many moves as can be made one without the other."""
    zones = before
    made_of: dict[str, frozenset[str]] = {}
    for step in steps:
        sources = (step.zone,) if isinstance(step, Split) else step.zones
        roots = frozenset[str]().union(*(made_of.get(each, frozenset({each})) for each in sources))
        names = step.made if isinstance(step, Split) else (step.made,)
        made_of |= dict.fromkeys(names, roots)
        zones = step(zones)
    return tuple(_move(before, zones, group, made_of) for group in _groups(made_of.values()))


def _groups(found: Iterable[frozenset[str]]) -> list[frozenset[str]]:
    """Sets that share something, put together."""
    groups: list[frozenset[str]] = []
    for each in found:
        sharing = [group for group in groups if group & each]
        groups = [*(group for group in groups if group not in sharing), each.union(*sharing)]
    return groups


def _move(before: ZoneMap, after: ZoneMap, group: frozenset[str], made_of: dict[str, frozenset[str]]) -> Move:
    gone = tuple(zone for zone in before.zones if zone.id in group)
    return Move(gone, tuple(zone for zone in after.zones if made_of.get(zone.id, frozenset()) & group))
