"""Scans: each pattern of a query as a row of a relation, and what that binds its variables to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from triplewire.model.terms import TW
from triplewire.sparql.algebra import Const, Family, Node, Param, Pattern, Var
from triplewire.sparql.compile.columns import Named, Stored
from triplewire.sparql.compile.computed import Metadata, Moment
from triplewire.sparql.compile.conditions import Scope, parameter
from triplewire.sparql.compile.sql import Sql, column, equal, every, present, text
from triplewire.sparql.compile.statics import Known, static
from triplewire.sparql.compile.values import ANY, Value
from triplewire.sparql.conjunctions import Conjunction

STREAM = Const(f"<{TW}stream>")
VIRTUAL: dict[str, tuple[str, int]] = {
    STREAM.term: ("stream", -1),
    f"<{TW}source>": ("source", -2),
    f"<{TW}application>": ("application", -3),
    f"<{TW}time>": ("time", -4),
    f"<{TW}received>": ("received", -5),
}
"""Predicates whose triples are not stored but made of an event's headers: the column, and the number that stands
for the quad in a solution."""


@dataclass(frozen=True)
class Scan:
    """A pattern and the alias of the row that it takes."""

    pattern: Pattern
    alias: str
    plain: bool = False
    """All numbers in the relation are such that doubles tell them apart."""

    @property
    def header(self) -> str | None:
        """The column of a virtual pattern; None for a stored one."""
        found = virtual(self.pattern)
        return found[0] if found else None

    def nodes(self) -> Iterator[tuple[Node, Value]]:
        """Each node of the pattern with the value that the row has for it."""
        if self.header is None:
            yield self.pattern.subject, Named(self.alias, "subject")
            yield self.pattern.predicate, Named(self.alias, "predicate")
            families = ANY - {Family.FLOAT} if self.plain else ANY
            yield self.pattern.object, Stored(self.alias, "object", families, short=self.plain)
            if self.pattern.graph is not None:
                yield self.pattern.graph, Named(self.alias, "graph")
        else:
            yield self.pattern.subject, Named(self.alias, "graph")
            yield self.pattern.object, self._header_value(self.header)

    def _header_value(self, header: str) -> Value:
        sql = column(self.alias, header)
        return Moment(sql) if header in ("time", "received") else Metadata(sql)


def virtual(pattern: Pattern) -> tuple[str, int] | None:
    """The column and number of a virtual pattern. Inside GRAPH all triples are stored ones."""
    if pattern.graph is not None or not isinstance(pattern.predicate, Const):
        return None
    return VIRTUAL.get(pattern.predicate.term)


def bindings(scans: list[Scan]) -> tuple[Scope, list[Sql]]:
    """What each variable is bound to, and the conditions that make the scans one solution."""
    values: dict[str, Value] = {}
    conditions: list[Sql] = []
    for node, value in _named_first(scans):
        if isinstance(node, Var) and node.name not in values:
            values[node.name] = value
        elif not (isinstance(node, Var) and _one_event(values[node.name], value)):
            conditions.append(_meets(value, values, node))
    optional = [scan for scan in scans if scan.header in ("source", "application")]
    conditions += [present(column(scan.alias, scan.header)) for scan in optional if scan.header]
    return Scope(values, plain=any(scan.plain for scan in scans)), list(dict.fromkeys(conditions))


def _one_event(left: Value, right: Value) -> bool:
    """Two graphs of one name are joined by position, or are the same row."""
    return all(isinstance(each, Named) and each.name == "graph" for each in (left, right))


def _named_first(scans: list[Scan]) -> list[tuple[Node, Value]]:
    """Places that hold only IRIs come first, so that a variable in one of them is known to be an IRI."""
    found = [each for scan in scans for each in scan.nodes()]
    return sorted(found, key=lambda each: not isinstance(each[1], Named))


def _meets(value: Value, values: dict[str, Value], node: Node) -> Sql:
    match node:
        case Var(name):
            return same(value, values[name])
        case Const(term):
            return same(value, Known(static(term)))
        case Param():
            return same(value, parameter(node))


def same(left: Value, right: Value) -> Sql:
    """Do both hold the same term? Headers are compared as they are stored, where the other side is known."""
    if isinstance(left, Moment) and isinstance(right, Known) and right.static.time:
        return every(equal(left.time(), right.time()), equal(left.text(), right.text()))
    if isinstance(left, Metadata) and isinstance(right, Known) and left.families == right.families:
        return equal(left.string(), text(right.static.lexical))
    return equal(left.text(), right.text())


def filters(query: Conjunction, scope: Scope) -> list[Sql]:
    return [scope.holds(each) for each in query.filters]
