"""Leaves: triple patterns and stated solutions as relations.

In the default graph a triple counts once, however many events hold it. How to get there is a choice: a scan whose
triples repeat often is made distinct by itself, else the whole basic graph pattern is, when all of it is joined. Of a
window nobody knows, so that all its scans are: events of a stream say many things again and again, and what repeats in
two patterns of a join is there as often as their product. In a graph of its own a triple is there once for each event
of that name, which is one, or few.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from sqlglot import exp

from triplewire.sparql.algebra import Const, Node, Pattern, Values, Var
from triplewire.sparql.compile.columns import Named, Stored
from triplewire.sparql.compile.computed import Metadata, Moment
from triplewire.sparql.compile.contexts import Context
from triplewire.sparql.compile.joins import joined, met
from triplewire.sparql.compile.relations import Joined, Relation, distinct, type_of
from triplewire.sparql.compile.scans import VIRTUAL
from triplewire.sparql.compile.sql import Sql, among, cast, column, equal, is_true, number, present, text
from triplewire.sparql.compile.statics import Known, static
from triplewire.sparql.compile.values import IRI, NOT_LITERAL, Value, facet_of
from triplewire.sparql.statistics import NUMBER, Kind

NODES = frozenset(NOT_LITERAL)
"""What may be a subject."""


def matched(context: Context, patterns: tuple[Pattern, ...], start: Relation | None = None) -> Relation:
    """The solutions of a basic graph pattern, joined to those that there are."""
    relation = context.start() if start is None else start
    for pattern in patterns:
        relation = _with(context, relation, pattern)
    return relation if patterns or context.graph is None else _with_graph(context, relation)


def _with(context: Context, relation: Relation, pattern: Pattern) -> Relation:
    header = None if context.graph is not None else VIRTUAL.get(_term(pattern.predicate))
    if header is not None:
        return _headed(context, relation, pattern, header[0])
    repeats = context.counted and not _is_there_once(context, pattern)
    if repeats and not context.keyed and _repeats_often(context, pattern):
        return _distinct_first(context, relation, pattern)
    scan = _scanned(context, relation, pattern, context.build.alias("q"))
    return replace(scan, rows="repeats") if repeats else scan


def _is_there_once(context: Context, pattern: Pattern) -> bool:
    """Is every triple of it? In an event each is, and so it is in a graph, unless several events have its name."""
    return _kind(context, pattern).unique or (context.graph is not None and context.statistics.single)


def _repeats_often(context: Context, pattern: Pattern) -> bool:
    """Is a triple there many times, or may it be?"""
    return context.window is not None or context.statistics.repeated(_term(pattern.predicate))


def _kind(context: Context, pattern: Pattern) -> Kind:
    return context.statistics.kind(_term(pattern.predicate) or None)


def _distinct_first(context: Context, relation: Relation, pattern: Pattern) -> Relation:
    """The scan by itself, each triple once, then joined."""
    alone = _scanned(context, replace(context, frame=None).start(), pattern, context.build.alias("q"))
    return joined(context, relation, context.build.closed(alone, distinct))


def _scanned(context: Context, relation: Relation, pattern: Pattern, alias: str) -> Relation:
    kind, statistics = _kind(context, pattern), context.statistics
    identified = statistics.identified
    places: list[tuple[Node, Value]] = [
        (pattern.subject, Named(alias, "subject", NODES if statistics.blank else IRI, identified)),
        (pattern.predicate, Named(alias, "predicate")),
        (
            pattern.object,
            Stored(alias, "object", kind.families, kind.short, always_zoned=kind.zoned, identified=identified),
        ),
    ]
    relation = replace(relation, sources=(*relation.sources, Joined(context.quads(alias))))
    predicate = statistics.numbers.get(_term(pattern.predicate))
    if predicate is not None:
        relation = relation.where(equal(column(alias, NUMBER), number(predicate)))
        places.pop(1)
    return placed(_keyed(context, relation, alias), places)


def _headed(context: Context, relation: Relation, pattern: Pattern, header: str) -> Relation:
    """A triple that is made of an event's header. The row may be there already, for another of them."""
    name = pattern.subject.name if isinstance(pattern.subject, Var) else None
    if name is not None and name in relation.headers:
        return placed(relation, [(pattern.object, _header(relation.headers[name], header))])
    alias = context.build.alias("e")
    relation = replace(relation, sources=(*relation.sources, Joined(context.headers(alias))))
    headers = {**relation.headers, **({} if name is None else {name: alias})}
    relation = replace(_keyed(context, relation, alias), headers=headers)
    places: list[tuple[Node, Value]] = [
        (pattern.subject, Named(alias, "graph")),
        (pattern.object, _header(alias, header)),
    ]
    relation = placed(relation, places)
    return replace(relation, rows="repeats") if context.counted else relation


def _header(alias: str, name: str) -> Value:
    sql = column(alias, name)
    return Moment(sql) if name in ("time", "received") else Metadata(sql)


def placed(relation: Relation, places: list[tuple[Node, Value]]) -> Relation:
    """The relation with each node of a pattern held against the value in its place."""
    values, conditions = dict(relation.values), list[Sql]()
    for node, value in places:
        if isinstance(node, Var):
            known = values.get(node.name)
            values[node.name], condition = (value, exp.true()) if known is None else met(known, value)
        else:
            condition = met(value, Known(static(_term(node))))[1]
        conditions.append(condition)
        if isinstance(value, Metadata):
            conditions.append(present(value.value))
    return replace(relation, values=values).where(*(each for each in conditions if not is_true(each)))


def _keyed(context: Context, relation: Relation, alias: str) -> Relation:
    """The row is of the event, or of the graphs, that the context asks for."""
    position = column(alias, "position")
    if context.events and "position" not in relation.keys:
        relation = replace(relation, keys={**relation.keys, "position": position})
    elif context.events:
        relation = relation.where(equal(position, relation.keys["position"]))
    if context.graph is None:
        return relation.where(*_in_dataset(context.dataset.default, alias))
    conditions = list(_in_dataset(context.dataset.named, alias))
    if isinstance(context.graph, Const):
        conditions.append(equal(column(alias, "graph"), text(context.graph.term)))
    if "graph" in relation.keys:
        return relation.where(*conditions, equal(position, relation.keys["graph"]))
    keys = {**relation.keys, "graph": position, "name": column(alias, "graph")}
    return replace(relation, keys=keys).where(*conditions)


def _in_dataset(graphs: tuple[str, ...] | None, alias: str) -> Iterator[Sql]:
    if graphs is not None:
        yield among(column(alias, "graph"), graphs) if graphs else exp.false()


def _with_graph(context: Context, relation: Relation) -> Relation:
    """The empty pattern in GRAPH: once for each graph."""
    alias = context.build.alias("e")
    relation = replace(relation, sources=(*relation.sources, Joined(context.headers(alias))))
    return _keyed(context, relation, alias)


def _term(node: Node) -> str:
    return node.term if isinstance(node, Const) else ""


@dataclass(frozen=True)
class Rows:
    """Stated solutions as a source, with the columns of those facets that are asked for."""

    names: tuple[str, ...]
    rows: tuple[tuple[str | None, ...], ...]
    alias: str
    asked: dict[str, tuple[int, str | None]]

    def column(self, place: int, facet: str | None) -> Sql:
        name = f"c{place}" + (f"_{facet}" if facet else "")
        self.asked[name] = (place, facet)
        return column(self.alias, name)

    def sql(self) -> exp.Expr:
        asked = self.asked or {"c0": (0, None)}
        tuples = [exp.Tuple(expressions=[_cell(row, *each) for each in asked.values()]) for row in self.rows]
        names = [exp.to_identifier(f"{name}_") for name in asked]
        inner = exp.Values(expressions=tuples, alias=exp.TableAlias(this=exp.to_identifier("t"), columns=names))
        outputs = [
            exp.alias_(cast(column("t", f"{name}_"), type_of(facet)), name) for name, (_, facet) in asked.items()
        ]
        return exp.select(*outputs, copy=False).from_(inner, copy=False).subquery(self.alias, copy=False)


def _cell(row: tuple[str | None, ...], place: int, facet: str | None) -> Sql:
    term = row[place] if row else None
    if term is None:
        return exp.null()
    return text(term) if facet is None else facet_of(Known(static(term)), facet)


@dataclass(frozen=True)
class Stated(Stored):
    """A variable of stated solutions."""

    rows: Rows | None = None
    place: int = 0

    def text(self) -> Sql:
        assert self.rows is not None
        return self.rows.column(self.place, None)

    def facet(self, name: str) -> Sql:
        assert self.rows is not None
        return self.rows.column(self.place, name)


def stated(context: Context, values: Values) -> Relation:
    """The solutions that a query states. None at all is a relation without rows."""
    relation = matched(context, ())
    if not values.rows:
        return relation.where(exp.false()).having(**{name: Value() for name in values.names})
    if len(values.rows) == 1:
        known = zip(values.names, values.rows[0], strict=True)
        return _stated_once(relation, {name: term for name, term in known if term is not None})
    rows = Rows(values.names, values.rows, context.build.alias("t"), {})
    found = {name: _stated(rows, place) for place, name in enumerate(values.names)}
    once = not context.counted or len(set(values.rows)) == len(values.rows)
    return joined(context, relation, Relation((Joined(rows),), values=found, rows="set" if once else "bag"))


def _stated_once(relation: Relation, terms: dict[str, str]) -> Relation:
    return placed(relation, [(Var(name), Known(static(term))) for name, term in terms.items()])


def _stated(rows: Rows, place: int) -> Value:
    terms = [row[place] for row in rows.rows]
    families = frozenset(static(term).family for term in terms if term is not None)
    return Stated(rows.alias, f"c{place}", families, certain=None not in terms, rows=rows, place=place)
