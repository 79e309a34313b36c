"""Parameters: constants that were lifted out of a query, so that queries of one shape share one plan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from triplewire.sparql.algebra import (
    Apply,
    Basic,
    Const,
    Exists,
    Expression,
    Family,
    Graph,
    Node,
    Operator,
    Param,
    Pattern,
    Query,
    Var,
)
from triplewire.sparql.rewriting import rewritten, with_expressions

Nodes: TypeAlias = Callable[[Node], Node]
Expressions: TypeAlias = Callable[[Expression], Expression]


def parameters(query: Query) -> dict[int, Family | None]:
    """The family of each parameter, by its number, in order."""
    found: dict[int, Family | None] = {}

    def seen(node: Node) -> Node:
        if isinstance(node, Param):
            found[node.index] = node.family
        return node

    replaced(query, seen, leaves(lambda leaf: seen(leaf) if isinstance(leaf, Param) else leaf))
    return dict(sorted(found.items()))


_COMPILED = frozenset({"regex", "replace"})
"""Functions whose patterns stay, because an engine compiles them once for each query."""

NOW = ".now"
"""The variable that stands for the time at which a query is asked."""


def variable(index: int) -> str:
    """The variable that stands for a parameter while compiling."""
    return f".k{index}"


def with_variables(query: Query) -> Query:
    """The query with a variable in place of each parameter, and of NOW()."""

    def put(node: Node) -> Node:
        return Var(variable(node.index)) if isinstance(node, Param) else node

    def put_leaf(leaf: Expression) -> Expression:
        if isinstance(leaf, Param):
            return put(leaf)
        return Var(NOW) if leaf == Apply("now", ()) else leaf

    return replaced(query, put, leaves(put_leaf))


def replaced(query: Query, node: Nodes, expression: Expressions) -> Query:
    """The query with a change to each node of its patterns, but for predicates and ends of paths, and to each of its
    expressions, in the order in which they are read. What stands inside of EXISTS is changed by itself, before."""

    def change(operator: Operator) -> Operator:
        match operator:
            case Basic(patterns):
                return Basic(tuple(in_pattern(each, node) for each in patterns))
            case Graph(name, inner):
                return Graph(node(name), inner)
        return with_expressions(operator, expression)

    return replace(query, where=rewritten(query.where, change))


def in_pattern(pattern: Pattern, node: Nodes) -> Pattern:
    """The pattern with a change to each of its nodes, but for a predicate that is a constant. The graph comes first."""
    graph = None if pattern.graph is None else node(pattern.graph)
    predicate = pattern.predicate if isinstance(pattern.predicate, Const) else node(pattern.predicate)
    return Pattern(node(pattern.subject), predicate, node(pattern.object), graph)


def leaves(change: Expressions) -> Expressions:
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
