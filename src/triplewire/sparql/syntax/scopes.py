"""Scopes: an operator with the variables that it makes visible."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from triplewire.sparql.algebra import Expression, Node, Operator, Var


@dataclass(frozen=True)
class Scoped:
    """A group, translated: as a whole, and `bare`, without `conditions`, the filters that stand directly in it.

    `names` are the variables in scope after it, in reading order, blank nodes not among them.
    """

    whole: Operator
    names: tuple[str, ...]
    bare: Operator
    conditions: tuple[Expression, ...] = ()


def visible(nodes: Iterable[Node | None]) -> list[str]:
    """The names of the variables among nodes that the text can name."""
    return [node.name for node in nodes if isinstance(node, Var) and not node.name.startswith("_:")]
