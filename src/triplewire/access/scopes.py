"""Scopes: sets of names, as patterns that are allowed and patterns that are denied.

A pattern is a name, or the beginning of names with `*` after it; `*` alone is all names. Names of streams are written
as they are. IRIs stand in angle brackets, which a pattern opens but does not close: `<https://example.org/ns#*`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

ALL = "*"


@dataclass(frozen=True)
class Scope:
    """The names that an allowed pattern covers and no denied one does. Made by `of` it is in its shortest form, so that
    two of one meaning are equal, but for what only a longer look would tell."""

    allowed: tuple[str, ...] = (ALL,)
    denied: tuple[str, ...] = ()

    @classmethod
    def of(cls, allowed: Iterable[str], denied: Iterable[str] = ()) -> Scope:
        deny = _shortest(denied)
        allow = tuple(each for each in _shortest(allowed) if not covered(each, deny))
        return cls(allow, tuple(each for each in deny if any(overlap(each, other) for other in allow)))

    def __contains__(self, name: str) -> bool:
        (allowed, allowed_starts), (denied, denied_starts) = self._parted
        if name in denied or name.startswith(denied_starts):
            return False
        return name in allowed or name.startswith(allowed_starts)

    def met(self, other: Scope) -> Scope:
        """What lies in both."""
        pairs = ((one, two) for one in self.allowed for two in other.allowed if overlap(one, two))
        return Scope.of((_narrower(*each) for each in pairs), (*self.denied, *other.denied))

    @cached_property
    def is_all(self) -> bool:
        return self == EVERYTHING

    @property
    def is_empty(self) -> bool:
        return not self.allowed

    @cached_property
    def _parted(self) -> tuple[tuple[frozenset[str], tuple[str, ...]], tuple[frozenset[str], tuple[str, ...]]]:
        return parted(self.allowed), parted(self.denied)


EVERYTHING = Scope()
NOTHING = Scope(())


def parted(patterns: Iterable[str]) -> tuple[frozenset[str], tuple[str, ...]]:
    """The names among patterns, and the beginnings of names."""
    known = tuple(patterns)
    exact = frozenset(each for each in known if not each.endswith(ALL))
    return exact, tuple(each[:-1] for each in known if each.endswith(ALL))


def covers(pattern: str, other: str) -> bool:
    """Is every name of the other one of the pattern's?"""
    if pattern.endswith(ALL):
        return other.startswith(pattern[:-1])
    return pattern == other


def covered(pattern: str, by: Iterable[str]) -> bool:
    return any(covers(each, pattern) for each in by)


def overlap(one: str, two: str) -> bool:
    """Is there a name of both? Of two beginnings one is then the beginning of the other."""
    return covers(one, two) or covers(two, one)


def _narrower(one: str, two: str) -> str:
    return two if covers(one, two) else one


def _shortest(patterns: Iterable[str]) -> tuple[str, ...]:
    """Without those that others cover, in order."""
    kept: list[str] = []
    for each in sorted(set(patterns), key=lambda pattern: (not pattern.endswith(ALL), len(pattern), pattern)):
        if not covered(each, kept):
            kept.append(each)
    return tuple(sorted(kept))
