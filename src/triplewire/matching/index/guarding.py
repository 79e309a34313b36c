"""Guards: programs for what every match of a shape surely has, for shapes that are more than the index decides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace

from triplewire.matching.index.programs import MOST_PATTERNS, Program
from triplewire.matching.index.writing import header_of, naming, written
from triplewire.matching.shapes import Shape
from triplewire.sparql import Apply, Conjunction, Const, Expression, Param, Pattern, Query, Var
from triplewire.sparql.algebra import (
    Exists,
    Extend,
    Filter,
    Graph,
    Group,
    Join,
    LeftJoin,
    Minus,
    Operator,
    Select,
    Union,
)
from triplewire.sparql.compiler.subscriptions import required_patterns
from triplewire.sparql.traversal import iterate_parts


@dataclass(frozen=True)
class Guard:
    """What lets events through. One that is not `sure` speaks of what is counted: a subscription may match an event of
    which nothing is."""

    program: Program
    sure: bool = True


def guard(shape: Shape) -> Guard | None:
    """None where there is nothing to tell. Of the shape's filters it takes those that name an object, so that there
    are access keys."""
    query = shape.query
    if isinstance(query, Conjunction):
        return _guarding(query.patterns, (), query.filters)
    counted = _counted(query)
    inner = _selected(query) if counted is None else counted.inner
    made = _guarding((*required_patterns(inner),), (*_alternatives(inner),), (*_conditions(inner),))
    return made and replace(made, sure=counted is None)


@dataclass(frozen=True)
class _Choice:
    """What all branches of a union have: a predicate, and its constants in them, where it has one in each."""

    predicate: Const
    objects: tuple[Param, ...] = ()

    def pattern(self, number: int) -> Pattern:
        """With variables of its own."""
        return Pattern(Var(f".of{number}"), self.predicate, Var(f".among{number}"))

    def conditions(self, number: int) -> tuple[Expression, ...]:
        same = tuple(Apply("sameterm", (self.pattern(number).object, each)) for each in self.objects)
        return (Apply("||", same),) if same else ()


def _guarding(
    patterns: Sequence[Pattern], choices: Sequence[_Choice], conditions: Sequence[Expression]
) -> Guard | None:
    rows = [replace(each, graph=None) for each in patterns if header_of(each) is None][:MOST_PATTERNS]
    more = choices[: MOST_PATTERNS - len(rows)]
    if not more and not any(_tells(each) for each in rows):
        return None
    chosen = (condition for number, each in enumerate(more) for condition in each.conditions(number))
    every = (*rows, *(each.pattern(number) for number, each in enumerate(more)))
    return Guard(written(Conjunction("ask", every, (*chosen, *naming(rows, conditions)))))


def _selected(query: Query) -> Operator:
    """What a query selects from."""
    return query.where.inner if isinstance(query.where, Select) else query.where


def _tells(pattern: Pattern) -> bool:
    return any(not isinstance(node, Var) for node in (pattern.subject, pattern.predicate, pattern.object))


def _counted(query: Query) -> Group | None:
    """What a query counts as a whole, if that is all that its solution depends on: there is one even of nothing."""
    operator: Operator = query.where
    while isinstance(operator, Select | Filter | Extend):
        if any(isinstance(each, Exists) for each in _own(operator)):
            return None
        operator = operator.inner
    return operator if isinstance(operator, Group) and not operator.keys else None


def _own(operator: Select | Filter | Extend) -> Iterator[object]:
    """The expressions of an operator, without those inside it, with all their parts."""
    for each in fields(operator):
        if each.name != "inner":
            yield from iterate_parts(getattr(operator, each.name))


def _conditions(operator: Operator) -> Iterator[Expression]:
    """Those without which there is no solution, of variables in patterns that are required."""
    match operator:
        case Filter(inner, conditions):
            yield from conditions
            yield from _conditions(inner)
        case Join(left, right):
            yield from _conditions(left)
            yield from _conditions(right)
        case LeftJoin(left) | Minus(left):
            yield from _conditions(left)
        case Extend(inner) | Graph(inner=inner):
            yield from _conditions(inner)


def _alternatives(operator: Operator) -> Iterator[_Choice]:
    """For unions without which there is no solution."""
    match operator:
        case Union():
            yield from _common([[*required_patterns(each)] for each in _branches(operator)])
        case Join(left, right):
            yield from _alternatives(left)
            yield from _alternatives(right)
        case LeftJoin(left) | Minus(left):
            yield from _alternatives(left)
        case Select(inner) | Filter(inner) | Extend(inner) | Graph(inner=inner):
            yield from _alternatives(inner)


def _branches(operator: Operator) -> Iterator[Operator]:
    if isinstance(operator, Union):
        yield from _branches(operator.left)
        yield from _branches(operator.right)
    else:
        yield operator


def _common(branches: Sequence[Sequence[Pattern]]) -> Iterator[_Choice]:
    """The first predicate with a constant in every branch; else, the first that is in all of them."""
    stored = [[each for each in branch if header_of(each) is None] for branch in branches]
    predicates = [each.predicate for each in stored[0] if isinstance(each.predicate, Const)]
    shared = [each for each in predicates if all(any(its.predicate == each for its in branch) for branch in stored)]
    for predicate in shared:
        objects = [each for branch in stored if (each := _object(branch, predicate)) is not None]
        if len(objects) == len(branches):
            yield _Choice(predicate, tuple(objects))
            return
    yield from map(_Choice, shared[:1])


def _object(branch: Sequence[Pattern], predicate: Const) -> Param | None:
    """A constant that a predicate has in a branch."""
    named = (each.object for each in branch if each.predicate == predicate)
    return next((each for each in named if isinstance(each, Param)), None)
