"""Look-ups: rows of events joined with subscriptions by way of an ontology.

As a condition on pairs of event and subscription a look-up would be tried on every pair. As a join it leads from
the value in the event to the names that it is in the relation with, and from these to whoever asks for one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from triplewire.sparql.algebra import Apply, Const, Expression, Node, Param
from triplewire.sparql.compile.columns import Stored
from triplewire.sparql.compile.conditions import CONSTANTS, Scope
from triplewire.sparql.compile.ontologies import CLOSURE, COLUMNS, LookUp, look_up
from triplewire.sparql.compile.relations import Joined, Table
from triplewire.sparql.compile.scans import Scan
from triplewire.sparql.compile.sql import Sql, column, equal, text
from triplewire.sparql.conjunctions import Conjunction


@dataclass(frozen=True)
class Related:
    """The relation `closure` as a source, where that is needed with each object of a predicate beside itself."""

    alias: str
    relation: str | None
    reflexive: bool
    predicate: str | None

    def sql(self) -> exp.Expr:
        told = exp.select(*COLUMNS).from_(CLOSURE)
        if self.relation is not None:
            told = told.where(equal(exp.column(COLUMNS[0]), text(self.relation)))
        if not self.reflexive:
            return told.subquery(self.alias)
        return exp.union(told, self._same(), distinct=False).subquery(self.alias)

    def _same(self) -> exp.Select:
        columns = [exp.alias_(text(self.relation or ""), COLUMNS[0]), *(exp.column("object") for _ in range(2))]
        same = exp.select(*columns).distinct().from_("quads")
        return same if self.predicate is None else same.where(equal(exp.column("predicate"), text(self.predicate)))


@dataclass(frozen=True)
class Sought:
    """A look-up of the object in the row of an alias."""

    row: str
    source: Related
    conditions: tuple[Sql, ...]


def sought_in(query: Conjunction, scans: Sequence[Scan], scope: Scope) -> dict[Expression, Sought]:
    """The filters that are look-ups of an object of an event."""
    found: dict[Expression, Sought] = {}
    for each in query.filters:
        sought = look_up(each)
        value = None if sought is None else scope.values.get(sought.variable)
        if sought is not None and type(value) is Stored and value.name == "object":
            predicates = [scan.pattern.predicate for scan in scans if scan.alias == value.alias and not scan.header]
            found[each] = _sought(sought, value.alias, predicates[0], scope, f"o{len(found)}")
    return found


def _sought(sought: LookUp, row: str, predicate: Node, scope: Scope, alias: str) -> Sought:
    known = predicate.term if isinstance(predicate, Const) else None
    places = zip(COLUMNS, sought.terms, strict=True)
    asked = [(name, term) for name, term in places if name != COLUMNS[0] or sought.relation is None]
    conditions = tuple(equal(column(alias, name), scope.value(term).text()) for name, term in asked)
    return Sought(row, Related(alias, sought.relation, sought.reflexive, known), conditions)


def sources(query: Conjunction, aliases: Sequence[str], sought: Sequence[Sought]) -> tuple[Joined, ...]:
    """In the order in which they are best joined. Where nothing but look-ups leads from events to subscriptions, one of
    these comes first."""
    constants, rows = Joined(Table("constants", CONSTANTS)), {each: Joined(Table("quads", each)) for each in aliases}
    if not sought or _equated(query):
        return (constants, *rows.values(), *(Joined(each.source) for each in sought))
    first, *others = sought
    leading = rows.pop(first.row)
    return (leading, Joined(first.source), constants, *rows.values(), *(Joined(each.source) for each in others))


def _equated(query: Conjunction) -> bool:
    """Does a constant in a pattern, or an equality, lead from events to subscriptions?"""
    named = any(isinstance(node, Param) for each in query.patterns for node in (each.subject, each.object))
    return named or any(isinstance(each, Apply) and each.op in ("=", "sameterm") for each in query.filters)
