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

# Along a chain, whatever a pattern binds gets the next *slot*: a variable, or a constant that was lifted out of the
# query. Names of variables are gone, so queries that begin alike have equal beginnings.


class TermRole(IntEnum):
    """What a place of a pattern, subject, predicate or object, asks of the term that a triple has there."""

    FIXED = 0
    """To be the predicate that the pattern names."""
    JOIN = 1
    """To be what a slot holds that was bound before."""
    SAME = 2
    """To be what stands at an earlier place of the same triple."""
    NEW = 3
    """Nothing: it is bound to the next slot."""
    LIFT = 4
    """To be a constant of some query; it is bound to the next slot."""


@dataclass(frozen=True)
class ChainStep:
    """One pattern: the predicate that it names, if it does, and role and reference of each place. The reference of JOIN
    is a slot, that of SAME a place."""

    predicate: str | None
    roles: tuple[TermRole, TermRole, TermRole]
    references: tuple[int, int, int]


@dataclass(frozen=True)
class JoinChain:
    """Steps in order; the slot of each variable, and for each constant of the query its slot."""

    steps: tuple[ChainStep, ...]
    slots: Mapping[str, int]
    lifts: tuple[int, ...]


Rate = Callable[[Pattern], float]
"""How often triples come that a pattern takes, in any unit."""


def order_patterns(patterns: Sequence[Pattern], rate: Rate) -> list[int]:
    """The numbers of patterns, rare ones first, each but the first connected to those before it where that can be."""
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
    """The chain of patterns in this order. Constants in them are `Param`s, but for predicates."""
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


# Rates: how often triples come, by predicate, and the order of patterns that follows from it: the rare first.

COUNTED_TRIPLES = 1_000_000
"""Triples that are counted before what was counted is halved: rates of the last million or two."""

_CONSTANT_RATE = 1e-6
"""What is left of a rate where subject or object is a constant, as long as nobody has counted: it comes first."""


@dataclass
class ArrivalRates:
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
    def from_value(cls, value: Mapping[str, Any]) -> ArrivalRates:
        heavy = {int(each) for each in value.get("heavy", ())}
        return cls(Counter(value.get("counts", {})), value.get("orders", {}), value.get("origins", {}), heavy)

    def to_value(self) -> dict[str, Any]:
        """A JSON value from which `from_value` makes an equal one."""
        heavy = sorted(str(each) for each in self.heavy)
        return {"counts": dict(self.counts), "orders": self.orders, "origins": self.origins, "heavy": heavy}

    def count(self, counts: Mapping[str, int]) -> None:
        """Take in what came in a batch."""
        self.counts.update(counts)
        if self.counts.total() > COUNTED_TRIPLES:
            self.counts = Counter({name: count // 2 for name, count in self.counts.items() if count > 1})

    def origin(self, structure: str) -> int:
        return self.origins.get(structure, 0)

    def order(self, structure: str, origin: int, patterns: Sequence[Pattern]) -> list[int]:
        """The numbers of its patterns in the order in which they are met."""
        key = f"{structure}/{origin}"
        if key not in self.orders:
            self.orders[key] = order_patterns(patterns, self.rate)
        return self.orders[key]

    def regret(self, structure: str, patterns: Sequence[Pattern]) -> float:
        """How many times as often triples come that begin its chain as would in the order that is best now."""
        now = self.order(structure, self.origin(structure), patterns)
        best = order_patterns(patterns, self.rate)
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
        return share * _CONSTANT_RATE**named
