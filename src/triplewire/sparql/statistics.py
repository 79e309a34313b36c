"""Statistics: how many triples a predicate has, and how they spread.

For planning only: answers never depend on them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

OFTEN = 1.5
"""Rows per triple from which on it pays to make a scan distinct before it is joined."""


@dataclass(frozen=True)
class Counts:
    """Of the triples of one predicate, about."""

    rows: int
    triples: int
    subjects: int
    objects: int


@dataclass(frozen=True)
class Statistics:
    """Counts by predicate, as a term. Nothing is known of what is not there."""

    predicates: Mapping[str, Counts] = field(default_factory=dict)
    total: Counts = Counts(0, 0, 0, 0)

    def repeated(self, predicate: str) -> bool:
        """Do events say the same triples of this predicate again and again?"""
        found = self.predicates.get(predicate, self.total)
        return found.rows > OFTEN * found.triples

    def matches(self, predicate: str | None, *, subject: bool, object_: bool) -> float:
        """About how many triples a pattern has, by what in it is known."""
        found = self.total if predicate is None else self.predicates.get(predicate)
        if found is None:
            return 0.0 if self.predicates else 1.0
        count = float(found.triples)
        if subject:
            count /= max(found.subjects, 1)
        return count / max(found.objects, 1) if object_ else count
