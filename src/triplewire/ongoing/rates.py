"""Rates: how often triples come, by predicate, and the order of patterns that follows from it: the rare first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from triplewire.ongoing.network.chains import in_order
from triplewire.sparql import Const, Param, Pattern

_NAMED = 1e-6
"""What is left of a rate where subject or object is a constant, as long as nobody has counted: it comes first."""


@dataclass
class Rates:
    """What was counted, and what was decided by it. An order that was decided holds until somebody decides again."""

    counts: Counter[str] = field(default_factory=Counter)
    """Triples so far, by predicate."""
    orders: dict[str, list[int]] = field(default_factory=dict)
    """By structure."""

    def count(self, counts: Mapping[str, int]) -> None:
        self.counts.update(counts)

    def order(self, structure: str, patterns: Sequence[Pattern]) -> list[int]:
        """The numbers of its patterns in the order in which they are met."""
        if structure not in self.orders:
            self.orders[structure] = in_order(patterns, self.rate)
        return self.orders[structure]

    def rate(self, pattern: Pattern) -> float:
        """How often triples come that a pattern takes, in triples so far."""
        everything = self.counts.total()
        count = self.counts[pattern.predicate.term] if isinstance(pattern.predicate, Const) else everything
        share = (1.0 + count) / (1.0 + everything)
        named = sum(isinstance(each, Param) for each in (pattern.subject, pattern.object))
        return share * _NAMED**named
