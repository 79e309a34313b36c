"""Queries: what filters mean, in the algebra of SPARQL.

A constraint is a pattern of its own, with variables of its own, and a condition on the object, or the object itself;
or a bag, which takes all objects of the predicate together. Filters are the branches of a union.

Filters of one form become queries that differ in constants alone, so they have one shape.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce

from triplewire.filters.constraints import Constraint, Filter
from triplewire.filters.documents import parse
from triplewire.model.terms import is_plain
from triplewire.sparql import Const, Pattern, Query, Var
from triplewire.sparql.algebra import Bag, Basic, Join, Operator, Union
from triplewire.sparql.algebra import Filter as Conditions

_EARLY = ("=", "has", "is_a", "equivalent", "strictly", "below")
"""Functions that leave few subscriptions to look at, in that order: their constraints are looked at first."""


def query_of(value: Mapping[str, object]) -> Query:
    """The question that a JSON document with `filter` or `filters`, and perhaps `prefixes`, asks. Raises Unfit."""
    return query(parse(value))


def query(filters: Iterable[Filter]) -> Query:
    """Whether one of the filters holds for an event, as an ASK. There must be at least one."""
    return asked(distinct(filters))


def asked(filters: Iterable[tuple[Constraint, ...]]) -> Query:
    """The same of filters that are distinct, and in order."""
    return Query("ask", reduce(Union, [_conjunction(constraints) for constraints in filters]))


def distinct(filters: Iterable[Filter]) -> list[tuple[Constraint, ...]]:
    """In one order, whichever they were given in, and each once."""
    sorted_ = (tuple(sorted(set(each.constraints), key=_order)) for each in filters)
    return sorted(set(sorted_), key=lambda constraints: [_order(each) for each in constraints])


def _order(constraint: Constraint) -> tuple[object, ...]:
    """What differs in structure comes before what differs in constants."""
    relation = constraint.relation
    named = not _named(constraint)
    early = _EARLY.index(relation.function) if relation.function in _EARLY and not relation.negated else len(_EARLY)
    bag = "" if constraint.bag is None else f"{constraint.bag}{len(constraint.operands):03}"
    return bag, named, early, constraint.attribute, relation.symbol, relation.function, constraint.operands


def _conjunction(constraints: tuple[Constraint, ...]) -> Operator:
    single = [(Var(f".o{at}"), each) for at, each in enumerate(constraints) if each.bag is None]
    patterns = tuple(_pattern(object_, each) for object_, each in single)
    asked = [(object_, each) for object_, each in single if not _named(each)]
    conditions = tuple(each.relation.between(object_, each.operands[0]) for object_, each in asked)
    bags = [_bag(Var(f".o{at}"), each) for at, each in enumerate(constraints) if each.bag is not None]
    plain: Operator = Conditions(Basic(patterns), conditions) if conditions else Basic(patterns)
    return reduce(Join, bags if bags and not single else [plain, *bags])


def _pattern(object_: Var, constraint: Constraint) -> Pattern:
    named = Const(constraint.operands[0][0]) if _named(constraint) else object_
    return Pattern(Var(f"{object_.name}.s"), Const(constraint.attribute), named)


def _named(constraint: Constraint) -> bool:
    """Is the value the operand itself? Of IRIs and strings only the same are equal, and a constant in a pattern is what
    matching is best at."""
    equal = constraint.bag is None and constraint.relation.function == "="
    return equal and is_plain(constraint.operands[0][0])


def _bag(member: Var, constraint: Constraint) -> Operator:
    assert constraint.bag is not None
    pairs = tuple(constraint.relation.between(member, each) for each in constraint.operands)
    return Bag(Const(constraint.attribute), constraint.bag, member.name, pairs)
