"""Traversal of the algebra: bottom-up transformation of operators, and the variables that a part mentions or binds.

Transformations return new values and reach into EXISTS.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import lru_cache
from typing import TypeAlias

from triplewire.model.terms import is_iri
from triplewire.sparql import algebra
from triplewire.sparql.algebra import Apply, Const, Expression, Node, Operator, Pattern, Var

OperatorChange: TypeAlias = Callable[[Operator], Operator]


def transform_operators(operator: Operator, change: OperatorChange) -> Operator:
    """Apply a change to each operator, bottom-up, inside EXISTS too."""
    return change(_inside(operator, change))


def iterate_parts(part: object) -> Iterator[object]:
    """Yield a part of the algebra and everything inside it."""
    if isinstance(part, tuple):
        for each in part:
            yield from iterate_parts(each)
    elif is_dataclass(part):
        yield part
        for field in fields(part):
            yield from iterate_parts(getattr(part, field.name))


def map_expressions(operator: Operator, change: Callable[[Expression], Expression]) -> Operator:
    """Apply a change to each of an operator's own expressions, in reading order."""
    match operator:
        case algebra.Filter(conditions=conditions) | algebra.LeftJoin(conditions=conditions):
            return replace(operator, conditions=tuple(change(each) for each in conditions))
        case algebra.Extend(expression=expression):
            return replace(operator, expression=change(expression))
        case algebra.Group(inner, keys, aggregates):
            return algebra.Group(
                inner,
                tuple((name, change(each)) for name, each in keys),
                tuple((name, _aggregate(each, change)) for name, each in aggregates),
            )
        case algebra.Bag(elements=elements):
            return replace(operator, elements=tuple(change(each) for each in elements))
        case algebra.Select(order=order):
            ordered = tuple(algebra.Order(change(each.expression), each.descending) for each in order)
            return replace(operator, order=ordered)
    return operator


def _aggregate(aggregate: algebra.Aggregate, change: Callable[[Expression], Expression]) -> algebra.Aggregate:
    argument = aggregate.argument
    return aggregate if argument is None else replace(aggregate, argument=change(argument))


def _inside(operator: Operator, change: OperatorChange) -> Operator:
    changed = {name: transform_operators(each, change) for name, each in child_operators(operator).items()}
    operator = replace(operator, **changed) if changed else operator  # type: ignore[arg-type]
    return map_expressions(operator, lambda expression: _expression(expression, change))


def child_operators(operator: Operator) -> dict[str, Operator]:
    """Return the operators directly inside an operator by field, without those in its expressions."""
    return {name: getattr(operator, name) for name in ("left", "right", "inner") if hasattr(operator, name)}


def _expression(expression: Expression, change: OperatorChange) -> Expression:
    match expression:
        case algebra.Exists(inner):
            return algebra.Exists(transform_operators(inner, change))
        case Apply(op, args):
            return Apply(op, tuple(_expression(each, change) for each in args))
    return expression


VariableNames = frozenset[str]
_NONE: VariableNames = frozenset()


@lru_cache(maxsize=4096)
def mentioned_variables(part: Operator | Expression | algebra.Aggregate) -> VariableNames:
    """Return every variable in it, visible from outside or not."""
    match part:
        case Var(name):
            return frozenset({name})
        case Apply(_, args):
            return _all(*args)
        case algebra.Exists(inner) | algebra.Window(_, inner):
            return mentioned_variables(inner)
        case algebra.Aggregate(argument=argument):
            return _NONE if argument is None else mentioned_variables(argument)
        case algebra.Join(left, right) | algebra.Union(left, right) | algebra.Minus(left, right):
            return _all(left, right)
        case algebra.LeftJoin(left, right, conditions):
            return _all(left, right, *conditions)
        case algebra.Filter(inner, conditions):
            return _all(inner, *conditions)
        case algebra.Extend(inner, name, expression):
            return _all(inner, expression) | {name}
        case algebra.Graph(name, inner):
            return _names(name) | mentioned_variables(inner)
        case algebra.Group(inner, keys, aggregates):
            named = frozenset(name for name, _ in (*keys, *aggregates))
            return _all(inner, *(each for _, each in keys), *(each for _, each in aggregates)) | named
        case algebra.Bag(member=member, elements=elements):
            return _all(*elements) - {member}
        case algebra.Select(inner, projection, order=order):
            return _all(inner, *(each.expression for each in order)) | frozenset(projection)
        case algebra.Basic() | algebra.Reach() | algebra.Values() | algebra.Service():
            return bound_variables(part)
    return _NONE


@lru_cache(maxsize=4096)
def bound_variables(operator: Operator) -> VariableNames:
    """Return the variables that its solutions may bind."""
    match operator:
        case algebra.Basic(patterns):
            return frozenset().union(*(pattern_variables(each) for each in patterns))
        case algebra.Reach(subject, _, object_, graph):
            return _names(subject, object_, graph)
        case algebra.Join(left, right) | algebra.Union(left, right) | algebra.LeftJoin(left, right):
            return bound_variables(left) | bound_variables(right)
        case algebra.Minus(left, _):
            return bound_variables(left)
        case algebra.Filter(inner) | algebra.Window(_, inner):
            return bound_variables(inner)
        case algebra.Extend(inner, name, _):
            return bound_variables(inner) | {name}
        case algebra.Graph(name, inner):
            return _names(name) | bound_variables(inner)
        case algebra.Values(names, _) | algebra.Service(names=names):
            return frozenset(names)
        case algebra.Group(_, keys, aggregates):
            return frozenset(name for name, _ in (*keys, *aggregates))
        case algebra.Select(_, projection):
            return frozenset(projection)
        case algebra.Bag():
            return _NONE
    raise TypeError(operator)


@lru_cache(maxsize=4096)
def certain_variables(operator: Operator) -> VariableNames:
    """Return the variables that each of its solutions binds."""
    match operator:
        case algebra.Basic() | algebra.Reach():
            return bound_variables(operator)
        case algebra.Join(left, right):
            return certain_variables(left) | certain_variables(right)
        case algebra.Union(left, right):
            return certain_variables(left) & certain_variables(right)
        case algebra.LeftJoin(left, _) | algebra.Minus(left, _):
            return certain_variables(left)
        case algebra.Filter(inner) | algebra.Extend(inner) | algebra.Window(_, inner):
            return certain_variables(inner)
        case algebra.Graph(name, inner):
            return _names(name) | certain_variables(inner)
        case algebra.Values(names, rows):
            return frozenset(name for index, name in enumerate(names) if all(row[index] is not None for row in rows))
        case algebra.Select(inner, projection):
            return certain_variables(inner) & frozenset(projection)
    return _NONE


def conjuncts(*conditions: Expression) -> list[Expression]:
    """Split conjunctions into conditions that are none."""
    found: list[Expression] = []
    for each in conditions:
        found.extend(conjuncts(*each.args) if isinstance(each, Apply) and each.op == "&&" else [each])
    return found


def map_variables(expression: Expression, change: Callable[[Var], Expression]) -> Expression:
    """Replace the variables of an expression, but for those inside EXISTS."""
    match expression:
        case Var():
            return change(expression)
        case Apply(op, args):
            return Apply(op, tuple(map_variables(each, change) for each in args))
    return expression


def required_constant(condition: Expression) -> tuple[str, Const] | None:
    """Return the variable and the only term with which the condition is true. For `=` that is an IRI: other terms may
    equal different ones."""
    match condition:
        case Apply("sameterm" | "=" as op, (Var(name), Const() as constant) | (Const() as constant, Var(name))):
            return (name, constant) if op == "sameterm" or is_iri(constant.term) else None
    return None


def substitute_constants(pattern: Pattern, known: Mapping[str, Const]) -> Pattern:
    """Replace variables of a triple by constants; that of the graph stays."""

    def substitute(node: Node) -> Node:
        return known.get(node.name, node) if isinstance(node, Var) else node

    subject, predicate, object_ = map(substitute, pattern.triple)
    return Pattern(subject, predicate, object_, pattern.graph)


def pattern_variables(pattern: Pattern) -> VariableNames:
    return _names(*pattern.triple, pattern.graph)


def _names(*nodes: Node | None) -> VariableNames:
    return frozenset(node.name for node in nodes if isinstance(node, Var))


def _all(*parts: Operator | Expression | algebra.Aggregate) -> VariableNames:
    return frozenset().union(*(mentioned_variables(each) for each in parts))
