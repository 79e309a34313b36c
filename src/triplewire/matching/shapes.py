"""Shapes: what is left of a subscription when its constants are lifted out.

Subscriptions of one shape are rows of one table and are matched by one relational query. Predicates stay in
the shape, because they tell structures apart and make the cheapest scans; constants in the other places, and
literals in filters, become parameters. A regular expression stays, because an engine compiles it once per query.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from triplewire.sparql.algebra import Apply, Const, Expression, Node, Param, Pattern, Query, Var

_COMPILED_BY_ENGINES = frozenset({"regex"})


@dataclass(frozen=True)
class Shape:
    """A query with parameters. `solutions` says whether whoever subscribes with it asks for the bindings."""

    query: Query
    solutions: bool

    @property
    def key(self) -> str:
        """The same for equal shapes, in every process and at every time."""
        text = json.dumps(self.to_value(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def to_value(self) -> dict[str, Any]:
        """A JSON value from which `from_value` makes an equal shape."""
        query = self.query
        return {
            "form": query.form,
            "patterns": [
                [_node_value(node) for node in (p.subject, p.predicate, p.object, p.graph)] for p in query.patterns
            ],
            "filters": [_expression_value(each) for each in query.filters],
            "projection": list(query.projection),
            "distinct": query.distinct,
            "limit": query.limit,
            "offset": query.offset,
            "solutions": self.solutions,
        }

    @classmethod
    def from_value(cls, value: Mapping[str, Any]) -> Shape:
        query = Query(
            form=value["form"],
            patterns=tuple(_pattern(nodes) for nodes in value["patterns"]),
            filters=tuple(_expression(each) for each in value["filters"]),
            projection=tuple(value["projection"]),
            distinct=value["distinct"],
            limit=value["limit"],
            offset=value["offset"],
        )
        return cls(query, value["solutions"])


@dataclass(frozen=True)
class Lifted:
    """A query taken apart: `constants[i]` is the term that stands for `Param(i)` in the shape."""

    shape: Shape
    constants: tuple[str, ...]


def lift(query: Query, *, solutions: bool) -> Lifted:
    """The shape of a query, and its constants. Queries that differ in constants or in the names of variables that
    are not projected have equal shapes."""
    lifting = _Lifting(keep=frozenset(query.projection) if solutions else frozenset())
    patterns = tuple(lifting.pattern(each) for each in query.patterns)
    filters = tuple(lifting.expression(each) for each in query.filters)
    lifted = replace(query, patterns=patterns, filters=filters)
    if not solutions:
        lifted = replace(lifted, form="ask", projection=(), distinct=False, limit=None, offset=0)
    return Lifted(Shape(lifted, solutions), tuple(lifting.constants))


@dataclass
class _Lifting:
    """One walk over a query: constants are numbered and variables renamed in the order in which they are met."""

    keep: frozenset[str]
    constants: list[str] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)

    def pattern(self, pattern: Pattern) -> Pattern:
        graph = None if pattern.graph is None else self.node(pattern.graph)
        predicate = pattern.predicate if isinstance(pattern.predicate, Const) else self.node(pattern.predicate)
        return Pattern(self.node(pattern.subject), predicate, self.node(pattern.object), graph)

    def node(self, node: Node) -> Node:
        if isinstance(node, Var):
            return self._renamed(node)
        if isinstance(node, Const):
            self.constants.append(node.term)
            return Param(len(self.constants) - 1)
        return node

    def expression(self, expression: Expression) -> Expression:
        if not isinstance(expression, Apply):
            return self.node(expression)
        if expression.op in _COMPILED_BY_ENGINES:
            head, *rest = expression.args
            return Apply(expression.op, (self.expression(head), *rest))
        return Apply(expression.op, tuple(self.expression(each) for each in expression.args))

    def _renamed(self, variable: Var) -> Var:
        if variable.name in self.keep:
            return variable
        return Var(self.names.setdefault(variable.name, f".{len(self.names)}"))


def _node_value(node: Node | None) -> str | int | list[str] | None:
    if isinstance(node, Var):
        return [node.name]
    return node.index if isinstance(node, Param) else node.term if node else None


def _node(value: str | int | list[str]) -> Node:
    if isinstance(value, list):
        return Var(value[0])
    return Param(value) if isinstance(value, int) else Const(value)


def _pattern(nodes: list[Any]) -> Pattern:
    subject, predicate, obj, graph = nodes
    return Pattern(_node(subject), _node(predicate), _node(obj), None if graph is None else _node(graph))


def _expression_value(expression: Expression) -> Any:  # noqa: ANN401 - a JSON value
    if isinstance(expression, Apply):
        return {"op": expression.op, "args": [_expression_value(each) for each in expression.args]}
    return _node_value(expression)


def _expression(value: Any) -> Expression:  # noqa: ANN401 - a JSON value
    if isinstance(value, dict):
        return Apply(value["op"], tuple(_expression(each) for each in value["args"]))
    return _node(value)
