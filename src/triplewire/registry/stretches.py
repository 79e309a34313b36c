"""Stretches: parts of a subscription's time in which events are matched in one and the same way.

```
       begins ── past ──▶ made ──▶ ontology loaded ──▶ next version ──▶ … ──▶ until
```
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from triplewire.config import limits
from triplewire.model import START, Subscription
from triplewire.registry.ontologies import NEWEST, ONTOLOGY, VERSION
from triplewire.registry.ports import Change, Registry
from triplewire.registry.subscriptions import original


@dataclass(frozen=True)
class Stretch:
    """Events at positions p with `start < p < stop` are asked `version`, by the ontologies that were loaded at certain
    positions."""

    start: int
    stop: int
    version: Subscription
    ontologies: tuple[int, ...]


def past(registry: Registry, subscription: Subscription) -> Stretch:
    """The stretch before a subscription was made, which is asked what was asked first; or, where its owner has come to
    see more or less since, what is asked now."""
    first = original(registry, subscription)
    asked = first if first.sight == subscription.sight else subscription
    return Stretch(first.floor, first.made, asked, first.ontologies)


def present(registry: Registry, versions: Sequence[Subscription], upto: int) -> Iterator[Stretch]:
    """The stretches since a subscription with a `begins` was made, in order. `versions` are those that are remembered,
    in order; there is nothing of others. Ontologies that are loaded after a position are not looked for."""
    (*_, newest) = versions
    loads = _loads(registry, newest.made, upto)
    loaded = {each.key: each.position for at in newest.ontologies for each in registry.changes(at - 1, at)}
    begun = {newest.made, *(each.since for each in versions), *(each.position for each in loads)}
    cuts = [each for each in sorted(begun) if newest.made <= each < newest.until]
    for start, stop in pairwise([*cuts, newest.until]):
        known = _after(loaded, [each for each in loads if each.position <= start])
        for version in versions:
            if version.since <= start < version.until:
                yield Stretch(start, stop, version, known)


def _loads(registry: Registry, made: int, upto: int) -> list[Change]:
    """What became of ontologies since a subscription was made, or was about to be, without their text."""
    after, newest = max(START, made - limits.BATCH_EVENTS), registry.get(VERSION, NEWEST)
    if newest is None or newest.position <= after:
        return []
    found = []
    for start in range(after, upto, limits.BATCH_EVENTS):
        changes = registry.changes(start, min(upto, start + limits.BATCH_EVENTS))
        found += [_brief(each) for each in changes if each.kind == ONTOLOGY]
    return found


def _brief(change: Change) -> Change:
    return Change(change.position, change.kind, change.key, None if change.value is None else {})


def _after(loaded: dict[str, int], loads: Sequence[Change]) -> tuple[int, ...]:
    """Where those were loaded that are there after some changes, of which some may have been seen to before."""
    there = dict(loaded)
    for each in loads:
        if each.position > there.get(each.key, START):
            there[each.key] = each.position
            if each.value is None:
                del there[each.key]
    return tuple(sorted(there.values()))
