"""Rates: how often triples come, by predicate, and the order of patterns that follows from it: the rare first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from triplewire.ongoing.network.chains import in_order
from triplewire.sparql import Const, Param, Pattern

MEMORY = 1_000_000
"""Triples that are counted before what was counted is halved: rates of the last million or two."""

_NAMED = 1e-6
"""What is left of a rate where subject or object is a constant, as long as nobody has counted: it comes first."""


@dataclass
class Rates:
    """What was counted, and what was decided by it. An order that was decided holds until somebody decides again."""

    counts: Counter[str] = field(default_factory=Counter)
    """Triples so far, by predicate; older ones count less."""
    orders: dict[str, list[int]] = field(default_factory=dict)
    """By structure and origin."""
    origins: dict[str, int] = field(default_factory=dict)
    """By structure, the position at which its order was decided again."""
    heavy: set[int] = field(default_factory=set)
    """Keys under which so many triples lie that they are spread over all stations."""

    @classmethod
    def from_value(cls, value: Mapping[str, Any]) -> Rates:
        heavy = {int(each) for each in value.get("heavy", ())}
        return cls(Counter(value.get("counts", {})), value.get("orders", {}), value.get("origins", {}), heavy)

    def to_value(self) -> dict[str, Any]:
        """A JSON value from which `from_value` makes an equal one."""
        heavy = sorted(str(each) for each in self.heavy)
        return {"counts": dict(self.counts), "orders": self.orders, "origins": self.origins, "heavy": heavy}

    def count(self, counts: Mapping[str, int]) -> None:
        """Take in what came in a batch."""
        self.counts.update(counts)
        if self.counts.total() > MEMORY:
            self.counts = Counter({name: count // 2 for name, count in self.counts.items() if count > 1})

    def origin(self, structure: str) -> int:
        return self.origins.get(structure, 0)

    def order(self, structure: str, origin: int, patterns: Sequence[Pattern]) -> list[int]:
        """The numbers of its patterns in the order in which they are met."""
        key = f"{structure}/{origin}"
        if key not in self.orders:
            self.orders[key] = in_order(patterns, self.rate)
        return self.orders[key]

    def regret(self, structure: str, patterns: Sequence[Pattern]) -> float:
        """How many times as often triples come that begin its chain as would in the order that is best now."""
        now = self.order(structure, self.origin(structure), patterns)
        best = in_order(patterns, self.rate)
        return self.rate(patterns[now[0]]) / self.rate(patterns[best[0]])

    def decide(self, structure: str, origin: int) -> None:
        """Let the order be decided again."""
        self.origins[structure] = origin

    def rate(self, pattern: Pattern) -> float:
        """How often triples come that a pattern takes, in triples so far."""
        everything = self.counts.total()
        count = self.counts[pattern.predicate.term] if isinstance(pattern.predicate, Const) else everything
        share = (1.0 + count) / (1.0 + everything)
        named = sum(isinstance(each, Param) for each in (pattern.subject, pattern.object))
        return share * _NAMED**named
