"""Ontologies as registry entries, and the intervals of a subscription's life in which one set of them holds.

```
       begins ── past ──▶ made ──▶ ontology loaded ──▶ next version ──▶ … ──▶ until
```
Within an interval all events are matched in the same way.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from triplewire.model import START, Subscription
from triplewire.model.errors import BadRequest
from triplewire.sparql.syntax.windows import STREAM_NAME_CHARACTERS
from triplewire.storage.registry.ports import Registry, RegistryChange
from triplewire.storage.registry.subscriptions import read_original

BATCH_EVENTS: Final = 20_000
"""Events in one micro-batch. Bounds a worker's memory to about 100 MB, a batch to a few seconds."""


ONTOLOGY = "ontology"
ONTOLOGIES_VERSION = "ontologies"
"""The kind of one entry, always under the same key, that is put with every change to an ontology: its position tells
whether any has changed, without reading them."""
NEWEST_ONTOLOGIES = "newest"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._~-]*")


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


def ontology_to_value(loaded: LoadedOntology) -> Mapping[str, Any]:
    """What is stored under (`ontology`, name). The version is not in it: it is the position of the change itself."""
    return {
        "text": loaded.text,
        "triples": loaded.triples,
        "classes": loaded.classes,
        "properties": loaded.properties,
    }


def ontology_from_change(change: RegistryChange) -> LoadedOntology:
    """The ontology that a change loaded. A removal loads none: raises ValueError."""
    if change.value is None:
        raise ValueError(f"{change.kind} {change.key} was removed at {change.position}")
    return LoadedOntology(name=change.key, version=change.position, **change.value)


def check_ontology_name(text: str) -> str:
    """The name, if it is one: it stands in addresses, so that nothing in it ever needs to be escaped."""
    if len(text) > STREAM_NAME_CHARACTERS:
        raise BadRequest(f"an ontology's name has at most {STREAM_NAME_CHARACTERS} characters, not {len(text)}")
    if not _NAME.fullmatch(text):
        raise BadRequest(f"{text!r} is no ontology's name: letters, digits and . _ ~ - are, a letter or digit first")
    return text


# Stretches: parts of a subscription's time in which events are matched in one and the same way.
#
# ```
#        begins ── past ──▶ made ──▶ ontology loaded ──▶ next version ──▶ … ──▶ until
# ```


@dataclass(frozen=True)
class MatchInterval:
    """Events at positions p with `start < p < stop` are asked `version`, by the ontologies that were loaded at certain
    positions."""

    start: int
    stop: int
    version: Subscription
    ontologies: tuple[int, ...]


def past_interval(registry: Registry, subscription: Subscription) -> MatchInterval:
    """The stretch before a subscription was made, which is asked what was asked first; or, where its owner has come to
    see more or less since, what is asked now."""
    first = read_original(registry, subscription)
    asked = first if first.sight == subscription.sight else subscription
    return MatchInterval(first.floor, first.made, asked, first.ontologies)


def present_intervals(registry: Registry, versions: Sequence[Subscription], upto: int) -> Iterator[MatchInterval]:
    """The stretches since a subscription with a `begins` was made, in order. `versions` are those that are remembered,
    in order; there is nothing of others. Ontologies that are loaded after a position are not looked for."""
    (*_, newest) = versions
    loads = _ontology_changes(registry, newest.made, upto)
    loaded = {each.key: each.position for at in newest.ontologies for each in registry.changes(at - 1, at)}
    begun = {newest.made, *(each.since for each in versions), *(each.position for each in loads)}
    cuts = [each for each in sorted(begun) if newest.made <= each < newest.until]
    for start, stop in pairwise([*cuts, newest.until]):
        known = _apply_loads(loaded, [each for each in loads if each.position <= start])
        for version in versions:
            if version.since <= start < version.until:
                yield MatchInterval(start, stop, version, known)


def _ontology_changes(registry: Registry, made: int, upto: int) -> list[RegistryChange]:
    """What became of ontologies since a subscription was made, or was about to be, without their text."""
    after, newest = max(START, made - BATCH_EVENTS), registry.get(ONTOLOGIES_VERSION, NEWEST_ONTOLOGIES)
    if newest is None or newest.position <= after:
        return []
    found = []
    for start in range(after, upto, BATCH_EVENTS):
        changes = registry.changes(start, min(upto, start + BATCH_EVENTS))
        found += [_without_text(each) for each in changes if each.kind == ONTOLOGY]
    return found


def _without_text(change: RegistryChange) -> RegistryChange:
    return RegistryChange(change.position, change.kind, change.key, None if change.value is None else {})


def _apply_loads(loaded: dict[str, int], loads: Sequence[RegistryChange]) -> tuple[int, ...]:
    """Where those were loaded that are there after some changes, of which some may have been seen to before."""
    there = dict(loaded)
    for each in loads:
        if each.position > there.get(each.key, START):
            there[each.key] = each.position
            if each.value is None:
                del there[each.key]
    return tuple(sorted(there.values()))
