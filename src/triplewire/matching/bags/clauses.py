"""Clauses: a query with bags as independent parts, each about the values of one predicate.

A filter is a conjunction of constraints that share nothing, so each can be decided by itself: some value of the
predicate is in a relation with a constant, or all values together can be paired with several.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

from triplewire.matching.shapes import Shape
from triplewire.sparql import Apply, Const, Expression, Param, Pattern, Query, Var
from triplewire.sparql.algebra import Bag, Basic, Filter, Join, Operator
from triplewire.sparql.compiler.scans import HEADER_PREDICATES
from triplewire.sparql.traversal import iterate_parts

VALUE = Var("value")
_HEADERS = frozenset(
    term for term, (name, _) in HEADER_PREDICATES.items() if name in ("stream", "source", "application")
)


class How(IntEnum):
    """What must be in the relation."""

    SOME = 0
    """One value, with the one element."""
    EQUAL = 1
    SUB = 2
    SUPER = 3


_BAGS = {"#=": How.EQUAL, "#<": How.SUB, "#>": How.SUPER}


@dataclass(frozen=True)
class Element:
    """What a value is held against. `relation` is a condition on `VALUE` with parameters from 0 on; None where the
    value must be the constant itself. `places` are the constants of the shape that stand for these."""

    relation: Expression | None
    places: tuple[int, ...]


@dataclass(frozen=True)
class Clause:
    """How the values of a predicate must be."""

    predicate: str
    how: How
    elements: tuple[Element, ...]

    @property
    def header(self) -> str | None:
        """The header of the event that is meant, for a predicate that is not stored."""
        return HEADER_PREDICATES[self.predicate][0] if self.how is How.SOME and self.predicate in _HEADERS else None


def clauses(shape: Shape) -> tuple[Clause, ...] | None:
    """The parts of a query that has bags; None if it has none, or is more than such parts."""
    query = shape.query
    if not isinstance(query, Query) or query.form != "ask" or shape.stream:
        return None
    found = [part for operator in _joined(query.where) for part in _parts(operator)]
    made = tuple(each for each in found if each is not None)
    bagged = any(each.how is not How.SOME for each in made)
    return made if bagged and len(made) == len(found) and _apart(query.where) else None


def _joined(operator: Operator) -> Iterator[Operator]:
    if isinstance(operator, Join):
        yield from _joined(operator.left)
        yield from _joined(operator.right)
    else:
        yield operator


def _parts(operator: Operator) -> Iterator[Clause | None]:
    match operator:
        case Bag(predicate, relation, member, elements):
            told = [_element(each, member) for each in elements]
            known = tuple(each for each in told if each is not None)
            yield Clause(predicate.term, _BAGS[relation], known) if len(known) == len(told) else None
        case Basic(patterns):
            yield from (_clause(each, ()) for each in patterns)
        case Filter(Basic(patterns), conditions):
            asked = [each for each in conditions if len(_variables(each)) != 1]
            yield from (None for _ in asked)
            yield from (_clause(each, conditions) for each in patterns)
        case _:
            yield None


def _clause(pattern: Pattern, conditions: Sequence[Expression]) -> Clause | None:
    """Of a pattern with the conditions on its object."""
    predicate, object_ = pattern.predicate, pattern.object
    stored = isinstance(predicate, Const) and (predicate.term not in HEADER_PREDICATES or predicate.term in _HEADERS)
    if not isinstance(predicate, Const) or not stored or pattern.graph or not isinstance(pattern.subject, Var):
        return None
    if isinstance(object_, Param):
        return Clause(predicate.term, How.SOME, (Element(None, (object_.index,)),))
    if not isinstance(object_, Var):
        return None
    mine = [each for each in conditions if _variables(each) == {object_.name}]
    element = _element(mine[0], object_.name) if len(mine) == 1 else None
    return None if element is None else Clause(predicate.term, How.SOME, (element,))


def _element(condition: Expression, member: str) -> Element | None:
    """None where other things count than the value and constants."""
    if _variables(condition) != {member} or any(part == Apply("now", ()) for part in iterate_parts(condition)):
        return None
    places = list[int]()
    relation = _numbered(condition, places)
    return Element(relation, tuple(places))


def _numbered(part: Expression, places: list[int]) -> Expression:
    match part:
        case Var():
            return VALUE
        case Param(index):
            places.append(index)
            return replace(part, index=len(places) - 1)
        case Apply(op, args):
            return Apply(op, tuple(_numbered(each, places) for each in args))
    return part


def _variables(expression: Expression) -> set[str]:
    return {part.name for part in iterate_parts(expression) if isinstance(part, Var)}


def _apart(where: Operator) -> bool:
    """Whether patterns share no variables but the event, which is the same for all headers."""
    patterns = [part for part in iterate_parts(where) if isinstance(part, Pattern)]
    objects = [part.object.name for part in patterns if isinstance(part.object, Var)]
    stored = [
        part
        for part in patterns
        if not isinstance(part.predicate, Const) or part.predicate.term not in HEADER_PREDICATES
    ]
    subjects = [part.subject.name for part in stored if isinstance(part.subject, Var)]
    events = {part.subject.name for part in patterns if part not in stored and isinstance(part.subject, Var)}
    members = [part.member for part in iterate_parts(where) if isinstance(part, Bag)]
    named = [*objects, *subjects, *members, *events]
    return len(named) == len(set(named))
