"""Rewriting: a change to every operator of a tree, from the leaves up; and a walk over all there is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import TypeAlias

from triplewire.sparql.algebra import (
    Aggregate,
    Apply,
    Bag,
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
    Window,
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


def with_expressions(operator: Operator, change: Callable[[Expression], Expression]) -> Operator:
    """The operator with a change to each expression of its own, in the order in which they are read."""
    match operator:
        case Filter(conditions=conditions) | LeftJoin(conditions=conditions):
            return replace(operator, conditions=tuple(change(each) for each in conditions))
        case Extend(expression=expression):
            return replace(operator, expression=change(expression))
        case Group(inner, keys, aggregates):
            return Group(
                inner,
                tuple((name, change(each)) for name, each in keys),
                tuple((name, _aggregate(each, change)) for name, each in aggregates),
            )
        case Bag(elements=elements):
            return replace(operator, elements=tuple(change(each) for each in elements))
        case Select(order=order):
            ordered = tuple(Order(change(each.expression), each.descending) for each in order)
            return replace(operator, order=ordered)
    return operator


def _aggregate(aggregate: Aggregate, change: Callable[[Expression], Expression]) -> Aggregate:
    argument = aggregate.argument
    return aggregate if argument is None else replace(aggregate, argument=change(argument))


def _inside(operator: Operator, change: Change) -> Operator:
    match operator:
        case Join(left, right) | Union(left, right) | Minus(left, right) | LeftJoin(left, right):
            operator = replace(operator, left=rewritten(left, change), right=rewritten(right, change))
        case Filter(inner) | Extend(inner) | Group(inner) | Select(inner):
            operator = replace(operator, inner=rewritten(inner, change))
        case Graph(inner=inner) | Window(inner=inner):
            operator = replace(operator, inner=rewritten(inner, change))
    return with_expressions(operator, lambda expression: _expression(expression, change))


def _expression(expression: Expression, change: Change) -> Expression:
    match expression:
        case Exists(inner):
            return Exists(rewritten(inner, change))
        case Apply(op, args):
            return Apply(op, tuple(_expression(each, change) for each in args))
    return expression
