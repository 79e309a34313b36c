"""Wholes: queries that are more than patterns and filters, on their way to being shapes. They stay as they were
written, but for their constants.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from triplewire.model.errors import Unsupported
from triplewire.sparql import Apply, Const, Expression, Family, Node, Param, Query, Var, family_of
from triplewire.sparql.algebra import VOLATILE, Dataset, Service
from triplewire.sparql.traversal import iterate_parts, map_leaves, replace_nodes


def check(query: Query) -> None:
    """Refuses what has no meaning on one event, or not the same one each time that it is looked at."""
    if query.form == "describe":
        raise Unsupported("DESCRIBE in a subscription", hint="SELECT, ASK and CONSTRUCT are taken")
    if query.dataset != Dataset():
        raise Unsupported("FROM in a subscription", hint="a subscription looks at one event at a time")
    for part in iterate_parts(query.where):
        if isinstance(part, Service):
            raise Unsupported("SERVICE in a subscription", hint="a subscription looks at one event at a time")
        if isinstance(part, Apply) and part.op in VOLATILE:
            hint = "a match must be the same whenever it is made again"
            raise Unsupported(f"{part.op.upper()} in a subscription", hint=hint)


@dataclass
class Lifting:
    """One walk over a query: constants are numbered in the order in which they are met."""

    constants: list[str] = field(default_factory=list)

    def query(self, query: Query) -> Query:
        return replace_nodes(query, self.node, self.expression)

    def node(self, node: Node) -> Node:
        return self._numbered(node) if isinstance(node, Const) else node

    def expression(self, expression: Expression) -> Expression:
        return map_leaves(self._leaf)(expression)

    def _leaf(self, leaf: Expression) -> Expression:
        """In expressions the family of a constant belongs to the shape: the plan need not ask what it is."""
        if isinstance(leaf, Const):
            return self._numbered(leaf, family_of(leaf.term))
        return self.node(leaf) if isinstance(leaf, Var) else leaf

    def _numbered(self, constant: Const, family: Family | None = None) -> Param:
        self.constants.append(constant.term)
        return Param(len(self.constants) - 1, family)
