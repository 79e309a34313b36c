"""Hierarchies: names that stand under names; in a hierarchy what is under what is under is under."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from triplewire.config import limits
from triplewire.model.errors import InputError

Pair = tuple[str, str]


@dataclass(frozen=True)
class Pairs:
    """Names under names, as they stand."""

    pairs: frozenset[Pair]

    def under(self, name: str) -> frozenset[str]:
        return self._under.get(name, frozenset())

    @cached_property
    def _under(self) -> Mapping[str, frozenset[str]]:
        found: defaultdict[str, set[str]] = defaultdict(set)
        for lower, upper in self.pairs:
            found[upper].add(lower)
        return {upper: frozenset(lowers) for upper, lowers in found.items()}


@dataclass(frozen=True)
class Hierarchy:
    """Made of the pairs (lower, upper) that somebody stated. Each name is below itself, also one that nobody stated;
    names on a cycle are all below one another."""

    stated: frozenset[Pair]

    def below(self, name: str) -> frozenset[str]:
        """The names under this one, with itself."""
        return self._below.get(name, frozenset()) | {name}

    def under(self, name: str) -> frozenset[str]:
        """The other names under this one."""
        return self._below.get(name, frozenset()) - {name}

    def above(self, name: str) -> frozenset[str]:
        """The names over this one, with itself."""
        return self._above.get(name, frozenset()) | {name}

    @cached_property
    def pairs(self) -> frozenset[Pair]:
        """Every (lower, upper) of two names. Raises InputError if there are too many to be used."""
        return frozenset((lower, upper) for lower, uppers in self._above.items() for upper in uppers if upper != lower)

    @cached_property
    def _above(self) -> Mapping[str, frozenset[str]]:
        return _closed(self.stated)

    @cached_property
    def _below(self) -> Mapping[str, frozenset[str]]:
        return _closed((upper, lower) for lower, upper in self.stated)


def _closed(pairs: Iterable[Pair]) -> Mapping[str, frozenset[str]]:
    steps: defaultdict[str, set[str]] = defaultdict(set)
    for start, end in pairs:
        steps[start].add(end)
    found, count = dict[str, frozenset[str]](), 0
    for name in steps:
        found[name] = _reached(name, steps)
        count += len(found[name])
        if count > limits.ONTOLOGY_PAIRS:
            raise InputError(f"the ontology has more than {limits.ONTOLOGY_PAIRS} pairs of names below one another")
    return found


def _reached(start: str, steps: Mapping[str, set[str]]) -> frozenset[str]:
    """What one step or more leads to."""
    found, edge = set[str](), {start}
    while edge:
        edge = {end for name in edge for end in steps.get(name, ())} - found
        found |= edge
    return frozenset(found)
