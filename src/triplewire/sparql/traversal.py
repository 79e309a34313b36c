"""Traversal of the algebra: bottom-up transformation of operators, the variables that a part mentions or binds, and
parameters.

Transformations return new values and reach into EXISTS. Parameters are constants that were lifted out of a query, so
that queries of one shape share one plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from functools import lru_cache
from typing import TypeAlias

from triplewire.sparql.algebra import (
    Aggregate,
    Apply,
    Bag,
    Basic,
    Const,
    Exists,
    Expression,
    Extend,
    Family,
    Filter,
    Graph,
    Group,
    Join,
    LeftJoin,
    Minus,
    Node,
    Operator,
    Order,
    Param,
    Pattern,
    Query,
    Reach,
    Select,
    Service,
    Union,
    Values,
    Var,
    Window,
)

OperatorChange: TypeAlias = Callable[[Operator], Operator]


def transform_operators(operator: Operator, change: OperatorChange) -> Operator:
    """The tree with the change made to each operator once those inside it are changed, in EXISTS too."""
    return change(_inside(operator, change))


def iterate_parts(part: object) -> Iterator[object]:
    """A part of the algebra and everything inside it."""
    if isinstance(part, tuple):
        for each in part:
            yield from iterate_parts(each)
    elif is_dataclass(part):
        yield part
        for field in fields(part):
            yield from iterate_parts(getattr(part, field.name))


def map_expressions(operator: Operator, change: Callable[[Expression], Expression]) -> Operator:
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


def _inside(operator: Operator, change: OperatorChange) -> Operator:
    match operator:
        case Join(left, right) | Union(left, right) | Minus(left, right) | LeftJoin(left, right):
            operator = replace(
                operator, left=transform_operators(left, change), right=transform_operators(right, change)
            )
        case Filter(inner) | Extend(inner) | Group(inner) | Select(inner):
            operator = replace(operator, inner=transform_operators(inner, change))
        case Graph(inner=inner) | Window(inner=inner):
            operator = replace(operator, inner=transform_operators(inner, change))
    return map_expressions(operator, lambda expression: _expression(expression, change))


def _expression(expression: Expression, change: OperatorChange) -> Expression:
    match expression:
        case Exists(inner):
            return Exists(transform_operators(inner, change))
        case Apply(op, args):
            return Apply(op, tuple(_expression(each, change) for each in args))
    return expression


# Variables: which ones an operator or expression mentions, and which ones it binds.

VariableNames = frozenset[str]
_NONE: VariableNames = frozenset()


@lru_cache(maxsize=4096)
def mentioned_variables(part: Operator | Expression | Aggregate) -> VariableNames:
    """Every variable that stands anywhere in it, visible from outside or not."""
    match part:
        case Var(name):
            return frozenset({name})
        case Apply(_, args):
            return _all(*args)
        case Exists(inner) | Window(_, inner):
            return mentioned_variables(inner)
        case Aggregate(argument=argument):
            return _NONE if argument is None else mentioned_variables(argument)
        case Join(left, right) | Union(left, right) | Minus(left, right):
            return _all(left, right)
        case LeftJoin(left, right, conditions):
            return _all(left, right, *conditions)
        case Filter(inner, conditions):
            return _all(inner, *conditions)
        case Extend(inner, name, expression):
            return _all(inner, expression) | {name}
        case Graph(name, inner):
            return _names(name) | mentioned_variables(inner)
        case Group(inner, keys, aggregates):
            named = frozenset(name for name, _ in (*keys, *aggregates))
            return _all(inner, *(each for _, each in keys), *(each for _, each in aggregates)) | named
        case Bag(member=member, elements=elements):
            return _all(*elements) - {member}
        case Select(inner, projection, order=order):
            return _all(inner, *(each.expression for each in order)) | frozenset(projection)
        case Basic() | Reach() | Values() | Service():
            return bound_variables(part)
    return _NONE


@lru_cache(maxsize=4096)
def bound_variables(operator: Operator) -> VariableNames:
    """The variables that its solutions may bind."""
    match operator:
        case Basic(patterns):
            return frozenset().union(*(pattern_variables(each) for each in patterns))
        case Reach(subject, _, object_, graph):
            return _names(subject, object_, graph)
        case Join(left, right) | Union(left, right) | LeftJoin(left, right):
            return bound_variables(left) | bound_variables(right)
        case Minus(left, _):
            return bound_variables(left)
        case Filter(inner) | Window(_, inner):
            return bound_variables(inner)
        case Extend(inner, name, _):
            return bound_variables(inner) | {name}
        case Graph(name, inner):
            return _names(name) | bound_variables(inner)
        case Values(names, _) | Service(names=names):
            return frozenset(names)
        case Group(_, keys, aggregates):
            return frozenset(name for name, _ in (*keys, *aggregates))
        case Select(_, projection):
            return frozenset(projection)
        case Bag():
            return _NONE
    raise TypeError(operator)


@lru_cache(maxsize=4096)
def certain_variables(operator: Operator) -> VariableNames:
    """The variables that each of its solutions binds."""
    match operator:
        case Basic() | Reach():
            return bound_variables(operator)
        case Join(left, right):
            return certain_variables(left) | certain_variables(right)
        case Union(left, right):
            return certain_variables(left) & certain_variables(right)
        case LeftJoin(left, _) | Minus(left, _):
            return certain_variables(left)
        case Filter(inner) | Extend(inner) | Window(_, inner):
            return certain_variables(inner)
        case Graph(name, inner):
            return _names(name) | certain_variables(inner)
        case Values(names, rows):
            return frozenset(name for place, name in enumerate(names) if all(row[place] is not None for row in rows))
        case Select(inner, projection):
            return certain_variables(inner) & frozenset(projection)
    return _NONE


def pattern_variables(pattern: Pattern) -> VariableNames:
    return _names(pattern.subject, pattern.predicate, pattern.object, pattern.graph)


def _names(*nodes: Node | None) -> VariableNames:
    return frozenset(node.name for node in nodes if isinstance(node, Var))


def _all(*parts: Operator | Expression | Aggregate) -> VariableNames:
    return frozenset().union(*(mentioned_variables(each) for each in parts))


# Parameters: constants that were lifted out of a query, so that queries of one shape share one plan.

NodeChange: TypeAlias = Callable[[Node], Node]
ExpressionChange: TypeAlias = Callable[[Expression], Expression]


def find_parameters(query: Query) -> dict[int, Family | None]:
    """The family of each parameter, by its number, in order."""
    found: dict[int, Family | None] = {}

    def seen(node: Node) -> Node:
        if isinstance(node, Param):
            found[node.index] = node.family
        return node

    replace_nodes(query, seen, map_leaves(lambda leaf: seen(leaf) if isinstance(leaf, Param) else leaf))
    return dict(sorted(found.items()))


_COMPILED = frozenset({"regex", "replace"})
"""Functions whose patterns stay, because an engine compiles them once for each query."""

NOW = ".now"
"""The variable that stands for the time at which a query is asked."""


def parameter_variable(index: int) -> str:
    """The variable that stands for a parameter while compiling."""
    return f".k{index}"


def parameters_to_variables(query: Query) -> Query:
    """The query with a variable in place of each parameter, and of NOW()."""

    def put(node: Node) -> Node:
        return Var(parameter_variable(node.index)) if isinstance(node, Param) else node

    def put_leaf(leaf: Expression) -> Expression:
        if isinstance(leaf, Param):
            return put(leaf)
        return Var(NOW) if leaf == Apply("now", ()) else leaf

    return replace_nodes(query, put, map_leaves(put_leaf))


def replace_nodes(query: Query, node: NodeChange, expression: ExpressionChange) -> Query:
    """The query with a change to each node of its patterns, but for predicates and ends of paths, and to each of its
    expressions, in the order in which they are read. What stands inside of EXISTS is changed by itself, before."""

    def change(operator: Operator) -> Operator:
        match operator:
            case Basic(patterns):
                return Basic(tuple(replace_in_pattern(each, node) for each in patterns))
            case Graph(name, inner):
                return Graph(node(name), inner)
        return map_expressions(operator, expression)

    return replace(query, where=transform_operators(query.where, change))


def replace_in_pattern(pattern: Pattern, node: NodeChange) -> Pattern:
    """The pattern with a change to each of its nodes, but for a predicate that is a constant. The graph comes first."""
    graph = None if pattern.graph is None else node(pattern.graph)
    predicate = pattern.predicate if isinstance(pattern.predicate, Const) else node(pattern.predicate)
    return Pattern(node(pattern.subject), predicate, node(pattern.object), graph)


def map_leaves(change: ExpressionChange) -> ExpressionChange:
    """The change to an expression that a change to its leaves makes; NOW() counts as one."""

    def changed(expression: Expression) -> Expression:
        match expression:
            case Apply("now", ()):
                return change(expression)
            case Apply(op, (first, *rest)) if op in _COMPILED:
                return Apply(op, (changed(first), *rest))
            case Apply(op, args):
                return Apply(op, tuple(changed(each) for each in args))
            case Exists():
                return expression
        return change(expression)

    return changed
