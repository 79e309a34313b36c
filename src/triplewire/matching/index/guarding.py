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
from triplewire.sparql.compile.subscriptions import required
from triplewire.sparql.rewriting import parts


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
    made = _guarding((*required(inner),), (*_alternatives(inner),), (*_conditions(inner),))
    return made and replace(made, sure=counted is None)


def _guarding(
    patterns: Sequence[Pattern], choices: Sequence[tuple[Pattern, Expression]], conditions: Sequence[Expression]
) -> Guard | None:
    rows = [replace(each, graph=None) for each in patterns if header_of(each) is None][:MOST_PATTERNS]
    more = choices[: MOST_PATTERNS - len(rows)]
    if not more and not any(_tells(each) for each in rows):
        return None
    filters = (*(condition for _, condition in more if condition is not _NOTHING), *naming(rows, conditions))
    return Guard(written(Conjunction("ask", (*rows, *(pattern for pattern, _ in more)), filters)))


_NOTHING = Apply("&&", ())


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
            yield from parts(getattr(operator, each.name))


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


def _alternatives(operator: Operator) -> Iterator[tuple[Pattern, Expression]]:
    """For unions without which there is no solution: a pattern of which every branch has one, and what its object may
    be."""
    match operator:
        case Union():
            yield from _common([[*required(each)] for each in _branches(operator)])
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


def _common(branches: Sequence[Sequence[Pattern]]) -> Iterator[tuple[Pattern, Expression]]:
    """The first predicate with a constant in every branch; else, the first that is in all of them."""
    predicates = [each.predicate for each in branches[0] if isinstance(each.predicate, Const)]
    for predicate in predicates:
        found = [_object(branch, predicate) for branch in branches]
        objects = [each for each in found if each is not None]
        if len(objects) == len(branches):
            value = Var(".among")
            same = [Apply("sameterm", (value, each)) for each in objects]
            yield Pattern(Var(".of"), predicate, value), Apply("||", tuple(same))
            return
    for predicate in predicates:
        if all(any(each.predicate == predicate and header_of(each) is None for each in branch) for branch in branches):
            yield Pattern(Var(".of"), predicate, Var(".among")), _NOTHING
            return


def _object(branch: Sequence[Pattern], predicate: Const) -> Param | None:
    """A constant that a predicate has in a branch."""
    named = (each.object for each in branch if each.predicate == predicate and header_of(each) is None)
    return next((each for each in named if isinstance(each, Param)), None)
