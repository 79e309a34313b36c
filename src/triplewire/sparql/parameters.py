"""Parameters: constants that are lifted out of a query, so that queries of one shape share one plan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from triplewire.sparql import algebra
from triplewire.sparql.algebra import Apply, Const, Expression, Node, Operator, Param, Pattern, Query, Var
from triplewire.sparql.constants import family_of
from triplewire.sparql.traversal import map_expressions, transform_operators

NodeChange: TypeAlias = Callable[[Node], Node]
ExpressionChange: TypeAlias = Callable[[Expression], Expression]

NOW = ".now"
"""The variable that NOW() becomes: the time at which the query is evaluated."""

_COMPILED_FUNCTIONS = frozenset({"regex", "replace"})
"""Functions whose regular expressions are not lifted, because an engine compiles them once for each query."""


@dataclass
class ConstantLifter:
    """Replaces constants by parameters, numbered in the order in which they are met.

    Constant predicates, property paths and regular expressions keep theirs. In expressions a parameter states the
    family of its constant, which is a part of the shape then: the plan need not test it.
    """

    constants: list[str] = field(default_factory=list)
    """The constants lifted so far; `constants[i]` is the value of `Param(i)`."""
    shared: bool = False
    """Whether equal constants become one parameter."""

    def query(self, query: Query) -> Query:
        return replace_nodes(query, self.node, self.expression)

    def pattern(self, pattern: Pattern) -> Pattern:
        return replace_in_pattern(pattern, self.node)

    def node(self, node: Node) -> Node:
        return self.lift(node) if isinstance(node, Const) else node

    def expression(self, expression: Expression) -> Expression:
        return map_leaves(self._leaf)(expression)

    def lift(self, constant: Const, family: algebra.Family | None = None) -> Node:
        """Record a constant and return the node that replaces it."""
        if self.shared and constant.term in self.constants:
            return Param(self.constants.index(constant.term), family)
        self.constants.append(constant.term)
        return Param(len(self.constants) - 1, family)

    def _leaf(self, leaf: Expression) -> Expression:
        if isinstance(leaf, Const):
            return self.lift(leaf, family_of(leaf.term))
        return self.node(leaf) if isinstance(leaf, Var) else leaf


def find_parameters(query: Query) -> dict[int, algebra.Family | None]:
    """Return the family of each parameter, by its number, in order."""
    families: dict[int, algebra.Family | None] = {}

    def visit(node: Node) -> Node:
        if isinstance(node, Param):
            families[node.index] = node.family
        return node

    replace_nodes(query, visit, map_leaves(lambda leaf: visit(leaf) if isinstance(leaf, Param) else leaf))
    return dict(sorted(families.items()))


def parameter_variable(index: int) -> str:
    """Return the name of the variable that replaces a parameter while compiling."""
    return f".k{index}"


def parameters_to_variables(query: Query) -> Query:
    """Replace each parameter, and NOW(), by a variable."""

    def replace_parameter(node: Node) -> Node:
        return Var(parameter_variable(node.index)) if isinstance(node, Param) else node

    def replace_leaf(leaf: Expression) -> Expression:
        if isinstance(leaf, Param):
            return replace_parameter(leaf)
        return Var(NOW) if leaf == Apply("now", ()) else leaf

    return replace_nodes(query, replace_parameter, map_leaves(replace_leaf))


def replace_nodes(query: Query, node: NodeChange, expression: ExpressionChange) -> Query:
    """Change each node of patterns, but for constant predicates and ends of paths, and each expression, in the order in
    which they are read. Operators inside EXISTS are changed before the expression that holds them."""

    def change(operator: Operator) -> Operator:
        match operator:
            case algebra.Basic(patterns):
                return algebra.Basic(tuple(replace_in_pattern(each, node) for each in patterns))
            case algebra.Graph(name, inner):
                return algebra.Graph(node(name), inner)
        return map_expressions(operator, expression)

    return replace(query, where=transform_operators(query.where, change))


def replace_in_pattern(pattern: Pattern, node: NodeChange) -> Pattern:
    """Change each node of a pattern, but for a constant predicate. The graph is changed first."""
    graph = None if pattern.graph is None else node(pattern.graph)
    predicate = pattern.predicate if isinstance(pattern.predicate, Const) else node(pattern.predicate)
    return Pattern(node(pattern.subject), predicate, node(pattern.object), graph)


def map_leaves(change: ExpressionChange) -> ExpressionChange:
    """Return the function that changes an expression's leaves, of which NOW() is one."""

    def changed(expression: Expression) -> Expression:
        match expression:
            case Apply("now", ()):
                return change(expression)
            case Apply(op, (first, *rest)) if op in _COMPILED_FUNCTIONS:
                return Apply(op, (changed(first), *rest))
            case Apply(op, args):
                return Apply(op, tuple(changed(each) for each in args))
            case algebra.Exists():
                return expression
        return change(expression)

    return changed
