"""Chains: the patterns of a query in the order in which they are met, each as what it asks of a triple.

Along a chain, whatever a pattern binds gets the next *slot*: a variable, or a constant that was lifted out of the
query. Names of variables are gone, so queries that begin alike have equal beginnings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from triplewire.sparql import Const, Param, Pattern, Var


class Role(IntEnum):
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
class Step:
    """One pattern: the predicate that it names, if it does, and role and reference of each place. The reference of JOIN
    is a slot, that of SAME a place."""

    predicate: str | None
    roles: tuple[Role, Role, Role]
    references: tuple[int, int, int]


@dataclass(frozen=True)
class Chain:
    """Steps in order; the slot of each variable, and for each constant of the query its slot."""

    steps: tuple[Step, ...]
    slots: Mapping[str, int]
    lifts: tuple[int, ...]


Rate = Callable[[Pattern], float]
"""How often triples come that a pattern takes, in any unit."""


def in_order(patterns: Sequence[Pattern], rate: Rate) -> list[int]:
    """The numbers of patterns, rare ones first, each but the first connected to those before it where that can be."""
    left, order, known = list(range(len(patterns))), list[int](), set[object]()
    while left:
        best = min(left, key=lambda each: (bool(order) and not known & _bound(patterns[each]), rate(patterns[each])))
        left.remove(best)
        order.append(best)
        known |= _bound(patterns[best])
    return order


def _bound(pattern: Pattern) -> set[object]:
    places = (pattern.subject, pattern.predicate, pattern.object)
    return {each for each in places if not isinstance(each, Const)}


def chain(patterns: Sequence[Pattern]) -> Chain:
    """The chain of patterns in this order. Constants in them are `Param`s, but for predicates."""
    slots: dict[Var | Param, int] = {}
    steps = [_step(each, slots) for each in patterns]
    lifted = sorted((node.index, slot) for node, slot in slots.items() if isinstance(node, Param))
    names = {node.name: slot for node, slot in slots.items() if isinstance(node, Var)}
    return Chain(tuple(steps), names, tuple(slot for _, slot in lifted))


def _step(pattern: Pattern, slots: dict[Var | Param, int]) -> Step:
    before, here = dict(slots), dict[Var | Param, int]()
    roles, references = [], []
    for place, node in enumerate((pattern.subject, pattern.predicate, pattern.object)):
        role, reference = Role.FIXED, 0
        if isinstance(node, Var | Param):
            if node in before:
                role, reference = Role.JOIN, before[node]
            elif node in here:
                role, reference = Role.SAME, here[node]
            else:
                role, reference = Role.NEW if isinstance(node, Var) else Role.LIFT, len(slots)
                here[node] = place
                slots[node] = reference
        roles.append(role)
        references.append(reference)
    predicate = pattern.predicate.term if isinstance(pattern.predicate, Const) else None
    return Step(predicate, (roles[0], roles[1], roles[2]), (references[0], references[1], references[2]))
