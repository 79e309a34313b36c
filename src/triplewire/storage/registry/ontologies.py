"""Ontologies as registry entries, and the intervals of a subscription's life in which one set of them holds.

```
       begins ── past ──▶ made ──▶ ontology loaded ──▶ next version ──▶ … ──▶ until
```
Within an interval all events are matched in the same way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from triplewire.model import START, Subscription
from triplewire.storage.registry.codec import EntryCodec
from triplewire.storage.registry.ports import Registry, RegistryChange
from triplewire.storage.registry.subscriptions import read_original

BATCH_EVENTS: Final = 20_000
"""Events in one micro-batch. Bounds a worker's memory to about 100 MB, a batch to a few seconds."""


ONTOLOGY = "ontology"
ONTOLOGIES_VERSION = "ontologies"
"""The kind of one entry that is put with every change to an ontology: its position tells whether any has changed,
without reading them."""
NEWEST_ONTOLOGIES = "newest"


@dataclass(frozen=True)
class LoadedOntology:
    """An ontology as it was loaded. `text` has a line `subject⇥predicate⇥object` for each triple, in canonical terms;
    `version` is the position at which it was loaded."""

    name: str
    text: str
    triples: int
    classes: int
    properties: int
    version: int = 0


_ONTOLOGIES = EntryCodec(LoadedOntology, key="name", position="version")
ontology_to_value = _ONTOLOGIES.to_value
ontology_from_change = _ONTOLOGIES.from_change


@dataclass(frozen=True)
class MatchInterval:
    """Events at positions p with `start < p < stop` are matched by `version`, with the ontologies that were loaded at
    these positions."""

    start: int
    stop: int
    version: Subscription
    ontologies: tuple[int, ...]


def past_interval(registry: Registry, subscription: Subscription) -> MatchInterval:
    """The interval before a subscription was made. Its first version is evaluated; or, if the visibility of its owner
    has changed since, the newest."""
    first = read_original(registry, subscription)
    asked = first if first.visibility == subscription.visibility else subscription
    return MatchInterval(first.floor, first.made, asked, first.ontologies)


def present_intervals(
    registry: Registry, versions: Sequence[Subscription], through: int, window: int = BATCH_EVENTS
) -> Iterator[MatchInterval]:
    """The intervals since a subscription with a `begins` was made, in order. `versions` are those that are known, in
    order; others have none. Ontologies that were loaded after a position are ignored. `window` positions are read
    at a time."""
    (*_, newest) = versions
    loads = _ontology_changes(registry, newest.made, through, window)
    loaded = {each.key: each.position for at in newest.ontologies for each in registry.changes(at - 1, at)}
    begun = {newest.made, *(each.since for each in versions), *(each.position for each in loads)}
    cuts = [each for each in sorted(begun) if newest.made <= each < newest.until]
    for start, stop in pairwise([*cuts, newest.until]):
        known = _apply_loads(loaded, [each for each in loads if each.position <= start])
        for version in versions:
            if version.since <= start < version.until:
                yield MatchInterval(start, stop, version, known)


def _ontology_changes(registry: Registry, made: int, through: int, window: int) -> list[RegistryChange]:
    """Changes to ontologies since shortly before a subscription was made, without their text."""
    after, newest = max(START, made - window), registry.get(ONTOLOGIES_VERSION, NEWEST_ONTOLOGIES)
    if newest is None or newest.position <= after:
        return []
    found = []
    for start in range(after, through, window):
        changes = registry.changes(start, min(through, start + window))
        found += [_without_text(each) for each in changes if each.kind == ONTOLOGY]
    return found


def _without_text(change: RegistryChange) -> RegistryChange:
    return RegistryChange(change.position, change.kind, change.key, None if change.value is None else {})


def _apply_loads(loaded: dict[str, int], loads: Sequence[RegistryChange]) -> tuple[int, ...]:
    """The positions of the loaded ontologies after some changes, of which some may be applied already."""
    there = dict(loaded)
    for each in loads:
        if each.position > there.get(each.key, START):
            there[each.key] = each.position
            if each.value is None:
                del there[each.key]
    return tuple(sorted(there.values()))
