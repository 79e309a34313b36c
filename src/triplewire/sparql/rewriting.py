"""Rewriting: a change to every operator of a tree, from the leaves up; and a walk over all there is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import TypeAlias

from triplewire.sparql.algebra import (
    Aggregate,
    Apply,
    Exists,
    Expression,
    Extend,
    Filter,
    Graph,
    Group,
    Join,
    LeftJoin,
    Minus,
    Operator,
    Order,
    Select,
    Union,
)

Change: TypeAlias = Callable[[Operator], Operator]


def rewritten(operator: Operator, change: Change) -> Operator:
    """The tree with the change made to each operator once those inside it are changed, in EXISTS too."""
    return change(_inside(operator, change))


def parts(part: object) -> Iterator[object]:
    """A part of the algebra and everything inside it."""
    if isinstance(part, tuple):
        for each in part:
            yield from parts(each)
    elif is_dataclass(part):
        yield part
        for field in fields(part):
            yield from parts(getattr(part, field.name))


def _inside(operator: Operator, change: Change) -> Operator:
    match operator:
        case Join(left, right) | Union(left, right) | Minus(left, right):
            return replace(operator, left=rewritten(left, change), right=rewritten(right, change))
        case LeftJoin(left, right, conditions):
            return LeftJoin(rewritten(left, change), rewritten(right, change), _each(conditions, change))
        case Filter(inner, conditions):
            return Filter(rewritten(inner, change), _each(conditions, change))
        case Extend(inner, name, expression):
            return Extend(rewritten(inner, change), name, _expression(expression, change))
        case Graph(name, inner):
            return Graph(name, rewritten(inner, change))
        case Group(inner, keys, aggregates):
            return Group(
                rewritten(inner, change),
                tuple((name, _expression(each, change)) for name, each in keys),
                tuple((name, _aggregate(each, change)) for name, each in aggregates),
            )
        case Select(inner, order=order):
            ordered = tuple(Order(_expression(each.expression, change), each.descending) for each in order)
            return replace(operator, inner=rewritten(inner, change), order=ordered)
    return operator


def _each(expressions: tuple[Expression, ...], change: Change) -> tuple[Expression, ...]:
    return tuple(_expression(each, change) for each in expressions)


def _expression(expression: Expression, change: Change) -> Expression:
    match expression:
        case Exists(inner):
            return Exists(rewritten(inner, change))
        case Apply(op, args):
            return Apply(op, _each(args, change))
    return expression


def _aggregate(aggregate: Aggregate, change: Change) -> Aggregate:
    argument = aggregate.argument
    return aggregate if argument is None else replace(aggregate, argument=_expression(argument, change))
