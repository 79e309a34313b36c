"""Scans: each triple pattern as a row of a relation, and the values that the row gives to the pattern's variables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from triplewire.sparql.algebra import Const, Family, Node, Param, Pattern, Var, header_column
from triplewire.sparql.compiler.expressions import ExpressionScope, parameter_value
from triplewire.sparql.compiler.terms import ConstantValue, StoredNode, StoredTerm
from triplewire.sparql.compiler.values import ANY, HeaderText, HeaderTime, Value, header_value
from triplewire.sparql.constants import parse_constant
from triplewire.sparql.sql import Sql, column, equal, every, present, text


@dataclass(frozen=True)
class Scan:
    """A pattern and the alias of the row that it takes."""

    pattern: Pattern
    alias: str
    plain: bool = False
    """Whether doubles distinguish all numbers in the relation."""

    @property
    def header(self) -> str | None:
        """The column of a virtual pattern; None for a stored one."""
        found = header_column(self.pattern)
        return found[0] if found else None

    def nodes(self) -> Iterator[tuple[Node, Value]]:
        """Each node of the pattern with the value that the row has for it."""
        if self.header is None:
            yield self.pattern.subject, StoredNode(self.alias, "subject")
            yield self.pattern.predicate, StoredNode(self.alias, "predicate")
            families = ANY - {Family.FLOAT} if self.plain else ANY
            yield self.pattern.object, StoredTerm(self.alias, "object", families, short=self.plain)
            if self.pattern.graph is not None:
                yield self.pattern.graph, StoredNode(self.alias, "graph")
        else:
            yield self.pattern.subject, StoredNode(self.alias, "graph")
            yield self.pattern.object, header_value(self.alias, self.header)


def bind_scans(scans: list[Scan]) -> tuple[ExpressionScope, list[Sql]]:
    """Bind each variable, and return the conditions under which the scans make one solution."""
    values: dict[str, Value] = {}
    conditions: list[Sql] = []
    for node, value in _named_first(scans):
        if isinstance(node, Var) and node.name not in values:
            values[node.name] = value
        elif not (isinstance(node, Var) and _one_event(values[node.name], value)):
            conditions.append(_meets(value, values, node))
    optional = [scan for scan in scans if scan.header in ("source", "application")]
    conditions += [present(column(scan.alias, scan.header)) for scan in optional if scan.header]
    return ExpressionScope(values, plain=any(scan.plain for scan in scans)), list(dict.fromkeys(conditions))


def _one_event(left: Value, right: Value) -> bool:
    """Tell whether both are graphs: these are joined by position, or are the same row."""
    return all(isinstance(each, StoredNode) and each.name == "graph" for each in (left, right))


def _named_first(scans: list[Scan]) -> list[tuple[Node, Value]]:
    """Put positions that hold only IRIs first, so that a variable in one of them is known to be an IRI."""
    found = [each for scan in scans for each in scan.nodes()]
    return sorted(found, key=lambda each: not isinstance(each[1], StoredNode))


def _meets(value: Value, values: dict[str, Value], node: Node) -> Sql:
    match node:
        case Var(name):
            return equal_terms(value, values[name])
        case Const(term):
            return equal_terms(value, ConstantValue(parse_constant(term)))
        case Param():
            return equal_terms(value, parameter_value(node))


def equal_terms(left: Value, right: Value) -> Sql:
    """Compare terms for identity. Headers are compared as they are stored if the other side is a constant."""
    if isinstance(left, HeaderTime) and isinstance(right, ConstantValue) and right.static.time:
        return every(equal(left.time(), right.time()), equal(left.text(), right.text()))
    if isinstance(left, HeaderText) and isinstance(right, ConstantValue) and left.families == right.families:
        return equal(left.string(), text(right.static.lexical))
    return equal(left.text(), right.text())
