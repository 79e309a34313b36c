"""Join order: the patterns of a query as a chain, rare ones first, ordered by the arrival rates of their predicates.

Along a chain, each variable or lifted constant that a pattern binds gets the next *slot*. Names of variables are gone,
so queries that begin alike share the beginning of their chains. An order holds until it is decided anew.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from triplewire.sparql import Const, Param, Pattern, Var


class TermRole(IntEnum):
    """The condition that a subject, predicate or object of a pattern sets for the term of a triple."""

    FIXED = 0
    """It is the predicate that the pattern names."""
    JOIN = 1
    """It equals a slot that was bound before."""
    SAME = 2
    """It equals an earlier term of the same triple."""
    NEW = 3
    """None: it is bound to the next slot."""
    LIFT = 4
    """It is a constant of some query, and is bound to the next slot."""


@dataclass(frozen=True)
class ChainStep:
    """One pattern: its predicate, if it names one, and role and reference of each term. The reference of JOIN is a
    slot, that of SAME the index of a term."""

    predicate: str | None
    roles: tuple[TermRole, TermRole, TermRole]
    references: tuple[int, int, int]


@dataclass(frozen=True)
class JoinChain:
    """The steps in order, the slot of each variable, and the slot of each constant of the query."""

    steps: tuple[ChainStep, ...]
    slots: Mapping[str, int]
    lifts: tuple[int, ...]


Rate = Callable[[Pattern], float]
"""The arrival rate of triples that a pattern matches, in any unit."""


def order_patterns(patterns: Sequence[Pattern], rate: Rate) -> list[int]:
    """Return the indexes of patterns, rare ones first, each connected to those before it if possible."""
    left, order, known = list(range(len(patterns))), list[int](), set[object]()
    while left:
        best = min(
            left, key=lambda each: (bool(order) and not known & _bound_nodes(patterns[each]), rate(patterns[each]))
        )
        left.remove(best)
        order.append(best)
        known |= _bound_nodes(patterns[best])
    return order


def _bound_nodes(pattern: Pattern) -> set[object]:
    places = (pattern.subject, pattern.predicate, pattern.object)
    return {each for each in places if not isinstance(each, Const)}


def build_chain(patterns: Sequence[Pattern]) -> JoinChain:
    """Return the chain of patterns in this order. Their constants are `Param`s, but for predicates."""
    slots: dict[Var | Param, int] = {}
    steps = [_build_step(each, slots) for each in patterns]
    lifted = sorted((node.index, slot) for node, slot in slots.items() if isinstance(node, Param))
    names = {node.name: slot for node, slot in slots.items() if isinstance(node, Var)}
    return JoinChain(tuple(steps), names, tuple(slot for _, slot in lifted))


def _build_step(pattern: Pattern, slots: dict[Var | Param, int]) -> ChainStep:
    before, here = dict(slots), dict[Var | Param, int]()
    roles, references = [], []
    for place, node in enumerate((pattern.subject, pattern.predicate, pattern.object)):
        role, reference = TermRole.FIXED, 0
        if isinstance(node, Var | Param):
            if node in before:
                role, reference = TermRole.JOIN, before[node]
            elif node in here:
                role, reference = TermRole.SAME, here[node]
            else:
                role, reference = TermRole.NEW if isinstance(node, Var) else TermRole.LIFT, len(slots)
                here[node] = place
                slots[node] = reference
        roles.append(role)
        references.append(reference)
    predicate = pattern.predicate.term if isinstance(pattern.predicate, Const) else None
    return ChainStep(predicate, (roles[0], roles[1], roles[2]), (references[0], references[1], references[2]))


COUNTED_TRIPLES = 1_000_000
"""Triples that are counted before all counts are halved: rates are those of the last million or two."""

_CONSTANT_RATE = 1e-6
"""The factor of a rate for each subject or object that is a constant: such patterns come first."""


@dataclass
class ArrivalRates:
    """Counts of triples, and the join orders that were decided by them. An order holds until it is decided again."""

    counts: Counter[str] = field(default_factory=Counter)
    """Triples by predicate; older ones count less."""
    orders: dict[str, list[int]] = field(default_factory=dict)
    """Join orders, by structure and origin."""
    origins: dict[str, int] = field(default_factory=dict)
    """Positions at which an order was decided again, by structure."""
    heavy: set[int] = field(default_factory=set)
    """Join keys whose triples are spread over all partitions."""

    @classmethod
    def from_value(cls, value: Mapping[str, Any]) -> ArrivalRates:
        heavy = {int(each) for each in value.get("heavy", ())}
        return cls(Counter(value.get("counts", {})), value.get("orders", {}), value.get("origins", {}), heavy)

    def to_value(self) -> dict[str, Any]:
        """Return a JSON value that `from_value` reads."""
        heavy = sorted(str(each) for each in self.heavy)
        return {"counts": dict(self.counts), "orders": self.orders, "origins": self.origins, "heavy": heavy}

    def count(self, counts: Mapping[str, int]) -> None:
        self.counts.update(counts)
        if self.counts.total() > COUNTED_TRIPLES:
            self.counts = Counter({name: count // 2 for name, count in self.counts.items() if count > 1})

    def origin(self, structure: str) -> int:
        return self.origins.get(structure, 0)

    def order(self, structure: str, origin: int, patterns: Sequence[Pattern]) -> list[int]:
        """Return the join order of a structure, and decide it the first time."""
        key = f"{structure}/{origin}"
        if key not in self.orders:
            self.orders[key] = order_patterns(patterns, self.rate)
        return self.orders[key]

    def regret(self, structure: str, patterns: Sequence[Pattern]) -> float:
        """Return how many times as frequent the first pattern of the chain is as that of the best order now."""
        now = self.order(structure, self.origin(structure), patterns)
        best = order_patterns(patterns, self.rate)
        return self.rate(patterns[now[0]]) / self.rate(patterns[best[0]])

    def decide(self, structure: str, origin: int) -> None:
        """Let the order be decided again from a position on."""
        self.origins[structure] = origin

    def rate(self, pattern: Pattern) -> float:
        """Return the share of triples that a pattern matches."""
        everything = self.counts.total()
        count = self.counts[pattern.predicate.term] if isinstance(pattern.predicate, Const) else everything
        share = (1.0 + count) / (1.0 + everything)
        named = sum(isinstance(each, Param) for each in (pattern.subject, pattern.object))
        return share * _CONSTANT_RATE**named
