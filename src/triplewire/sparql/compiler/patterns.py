"""Basic graph patterns, VALUES and property paths as relations.

In the default graph a triple counts once, however many events hold it. A scan whose triples repeat often is made
distinct by itself; otherwise the whole basic graph pattern is, after its joins. Scans of a window are always made
distinct first, since nothing is known of its repetition. In a named graph a triple is there once for each event of
that name.

Fixed-length paths are rewritten into patterns. Repeated paths are named recursive relations of pairs, each pair once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from sqlglot import exp

from triplewire.sparql import algebra
from triplewire.sparql.algebra import Const, Node, Path, Pattern, Var
from triplewire.sparql.compiler.contexts import Context, PathClosure, PathPairs, PathSteps
from triplewire.sparql.compiler.joins import join_relations, unify_values
from triplewire.sparql.compiler.relations import (
    BareTerm,
    Relation,
    RelationSource,
    TableSource,
    column_type,
    render_distinct,
)
from triplewire.sparql.compiler.terms import ConstantValue, StoredNode, StoredTerm
from triplewire.sparql.compiler.values import ANY, IRI, NOT_LITERAL, HeaderText, Value, facet_of, header_value
from triplewire.sparql.constants import parse_constant
from triplewire.sparql.paths import translate_negated, translate_path
from triplewire.sparql.sql import Sql, among, cast, column, equal, is_true, number, present, text
from triplewire.sparql.statistics import PREDICATE_NUMBER, PredicateKind

SUBJECT_FAMILIES = frozenset(NOT_LITERAL)
"""The families of subjects."""


def match_patterns(context: Context, patterns: tuple[Pattern, ...], start: Relation | None = None) -> Relation:
    """The solutions of a basic graph pattern, joined to those that there are."""
    relation = context.start() if start is None else start
    for pattern in patterns:
        relation = _with(context, relation, pattern)
    return relation if patterns or context.graph is None else _with_graph(context, relation)


def _with(context: Context, relation: Relation, pattern: Pattern) -> Relation:
    header = None if context.graph is not None else algebra.HEADER_PREDICATES.get(_term(pattern.predicate))
    if header is not None:
        return _scan_headers(context, relation, pattern, header[0])
    repeats = context.counted and not _is_there_once(context, pattern)
    if repeats and not context.keyed and _repeats_often(context, pattern):
        return _distinct_first(context, relation, pattern)
    scan = _scan(context, relation, pattern, context.build.alias("q"))
    return replace(scan, rows="repeats") if repeats else scan


def _is_there_once(context: Context, pattern: Pattern) -> bool:
    """Tell whether each matching triple is stored once: in an event it is, and in a graph unless events share its
    name."""
    return _predicate_kind(context, pattern).unique or (context.graph is not None and context.statistics.single)


def _repeats_often(context: Context, pattern: Pattern) -> bool:
    """Tell whether triples may be stored many times."""
    return context.window is not None or context.statistics.repeated(_term(pattern.predicate))


def _predicate_kind(context: Context, pattern: Pattern) -> PredicateKind:
    return context.statistics.kind(_term(pattern.predicate) or None)


def _distinct_first(context: Context, relation: Relation, pattern: Pattern) -> Relation:
    """The scan by itself, each triple once, then joined."""
    alone = _scan(context, replace(context, frame=None).start(), pattern, context.build.alias("q"))
    return join_relations(context, relation, context.build.close(alone, render_distinct))


def _scan(context: Context, relation: Relation, pattern: Pattern, alias: str) -> Relation:
    kind, statistics = _predicate_kind(context, pattern), context.statistics
    identified = statistics.identified
    bindings: list[tuple[Node, Value]] = [
        (pattern.subject, StoredNode(alias, "subject", SUBJECT_FAMILIES if statistics.blank else IRI, identified)),
        (pattern.predicate, StoredNode(alias, "predicate")),
        (
            pattern.object,
            StoredTerm(alias, "object", kind.families, kind.short, always_zoned=kind.zoned, identified=identified),
        ),
    ]
    relation = relation.join(context.quads(alias))
    predicate = statistics.numbers.get(_term(pattern.predicate))
    if predicate is not None:
        relation = relation.where(equal(column(alias, PREDICATE_NUMBER), number(predicate)))
        bindings.pop(1)
    return bind_nodes(_restrict_graph(context, relation, alias), bindings)


def _scan_headers(context: Context, relation: Relation, pattern: Pattern, header: str) -> Relation:
    """A triple that is made of an event's header. The row may be there already, for another of them."""
    name = pattern.subject.name if isinstance(pattern.subject, Var) else None
    if name is not None and name in relation.headers:
        return bind_nodes(relation, [(pattern.object, header_value(relation.headers[name], header))])
    alias = context.build.alias("e")
    relation = relation.join(context.headers(alias))
    headers = {**relation.headers, **({} if name is None else {name: alias})}
    relation = replace(_restrict_graph(context, relation, alias), headers=headers)
    bindings: list[tuple[Node, Value]] = [
        (pattern.subject, StoredNode(alias, "graph")),
        (pattern.object, header_value(alias, header)),
    ]
    relation = bind_nodes(relation, bindings)
    return replace(relation, rows="repeats") if context.counted else relation


def bind_nodes(relation: Relation, bindings: list[tuple[Node, Value]]) -> Relation:
    """The relation with each node of a pattern held against the value in its place."""
    values, conditions = dict(relation.values), list[Sql]()
    for node, value in bindings:
        if isinstance(node, Var):
            known = values.get(node.name)
            values[node.name], condition = (value, exp.true()) if known is None else unify_values(known, value)
        else:
            condition = unify_values(value, ConstantValue(parse_constant(_term(node))))[1]
        conditions.append(condition)
        if isinstance(value, HeaderText):
            conditions.append(present(value.value))
    return replace(relation, values=values).where(*(each for each in conditions if not is_true(each)))


def _restrict_graph(context: Context, relation: Relation, alias: str) -> Relation:
    """Restrict a row to the event or the graphs of the context."""
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
    return _restrict_graph(context, relation.join(context.headers(alias)), alias)


def _term(node: Node) -> str:
    return node.term if isinstance(node, Const) else ""


@dataclass(frozen=True)
class InlineRows:
    """Stated solutions as a source, with the columns of those facets that are asked for."""

    names: tuple[str, ...]
    rows: tuple[tuple[str | None, ...], ...]
    alias: str
    asked: dict[str, tuple[int, str | None]]

    def column(self, index: int, facet: str | None) -> Sql:
        name = f"c{index}" + (f"_{facet}" if facet else "")
        self.asked[name] = (index, facet)
        return column(self.alias, name)

    def sql(self) -> exp.Expr:
        asked = self.asked or {"c0": (0, None)}
        tuples = [exp.Tuple(expressions=[_cell(row, *each) for each in asked.values()]) for row in self.rows]
        names = [exp.to_identifier(f"{name}_") for name in asked]
        inner = exp.Values(expressions=tuples, alias=exp.TableAlias(this=exp.to_identifier("t"), columns=names))
        outputs = [
            exp.alias_(cast(column("t", f"{name}_"), column_type(facet)), name) for name, (_, facet) in asked.items()
        ]
        return exp.select(*outputs, copy=False).from_(inner, copy=False).subquery(self.alias, copy=False)


def _cell(row: tuple[str | None, ...], index: int, facet: str | None) -> Sql:
    term = row[index] if row else None
    if term is None:
        return exp.null()
    return text(term) if facet is None else facet_of(ConstantValue(parse_constant(term)), facet)


@dataclass(frozen=True, kw_only=True)
class InlineTerm(StoredTerm):
    """A variable of stated solutions."""

    rows: InlineRows
    index: int

    def text(self) -> Sql:
        return self.rows.column(self.index, None)

    def facet(self, name: str) -> Sql:
        return self.rows.column(self.index, name)


def compile_values(context: Context, values: algebra.Values) -> Relation:
    """The solutions that a query states. None at all is a relation without rows."""
    relation = match_patterns(context, ())
    if not values.rows:
        return relation.where(exp.false()).with_values(**{name: Value() for name in values.names})
    if len(values.rows) == 1:
        known = zip(values.names, values.rows[0], strict=True)
        return _bind_terms(relation, {name: term for name, term in known if term is not None})
    rows = InlineRows(values.names, values.rows, context.build.alias("t"), {})
    found = {name: _inline_term(rows, index) for index, name in enumerate(values.names)}
    once = not context.counted or len(set(values.rows)) == len(values.rows)
    return join_relations(context, relation, Relation(values=found, rows="set" if once else "bag").join(rows))


def _bind_terms(relation: Relation, terms: dict[str, str]) -> Relation:
    return bind_nodes(relation, [(Var(name), ConstantValue(parse_constant(term))) for name, term in terms.items()])


def _inline_term(rows: InlineRows, index: int) -> Value:
    terms = [row[index] for row in rows.rows]
    families = frozenset(parse_constant(term).family for term in terms if term is not None)
    return InlineTerm(rows.alias, f"c{index}", families, certain=None not in terms, rows=rows, index=index)


PATH_ENDS = ("subject", "object")


def compile_path(context: Context, reach: algebra.Reach) -> Relation:
    def fresh() -> Var:
        return Var(context.build.alias(".p"))

    match reach.path:
        case algebra.Repeat():
            return _compile_repeated(context, reach, reach.path)
        case algebra.Negated():
            return context.compile(translate_negated(reach, reach.path, fresh))
    return context.compile(translate_path(reach, fresh))


def _compile_repeated(context: Context, reach: algebra.Reach, path: algebra.Repeat) -> Relation:
    """Pairs of terms between which the path leads, each once. It is followed from the end that is known. Both ends may
    be literals: a path of no length has its start as its end, and an inverse step starts at an object."""
    if isinstance(reach.object, Const) and not isinstance(reach.subject, Const):
        back = algebra.Repeat(algebra.Inverse(path.path), path.least, path.once)
        return _compile_repeated(context, algebra.Reach(reach.object, back, reach.subject), back)
    alias = context.build.alias("p")
    name = _pairs(context, reach, path)
    relation = Relation(keys=_keys(context, alias)).join(TableSource(name, alias))
    ends: list[tuple[Node, Value]] = [
        (reach.subject, BareTerm(alias, "s", ANY)),
        (reach.object, BareTerm(alias, "o", ANY)),
    ]
    found = bind_nodes(relation, ends)
    return join_relations(context, context.start(), found) if context.frame else found


def _pairs(context: Context, reach: algebra.Reach, path: algebra.Repeat) -> str:
    """The name of the relation of all pairs."""
    build = context.build
    edges = build.define(PathSteps(_edges(context, path.path), context.keyed))
    start = reach.subject.term if isinstance(reach.subject, Const) else None
    if path.once:
        return build.define(PathPairs(edges, _zero(context, reach), context.keyed))
    closure = build.define(PathClosure(edges, start, context.keyed))
    return build.define(PathPairs(closure, _zero(context, reach), context.keyed)) if path.least == 0 else closure


def _edges(context: Context, path: Path) -> Relation:
    """The pairs that one repetition connects, as the values of `s` and `o`."""
    inner = replace(context, frame=None, events=False, counted=False, graph=Var(".g") if context.keyed else None)
    if isinstance(context.graph, Const):
        inner = replace(inner, graph=context.graph)
    return inner.compile(algebra.Reach(Var("s"), path, Var("o")))


def _keys(context: Context, alias: str) -> dict[str, Sql]:
    """Return the keys that separate pairs of different events, under the names that the context uses."""
    graph = {name: column(alias, name) for name in ("graph", "name")} if context.graph is not None else {}
    return {"position": column(alias, "graph"), **graph} if context.events else graph


def _zero(context: Context, reach: algebra.Reach) -> exp.Query:
    """Paths of no length: from each node of the graph to itself, or from the one that the pattern names."""
    if isinstance(reach.subject, Const):
        term = text(reach.subject.term)
        alone = exp.select(exp.alias_(term, "s"), exp.alias_(term.copy(), "o"))
        return _restrict_graphs(context, alone, context.headers("")) if context.keyed else alone
    ends = [exp.select(exp.alias_(exp.column(end), "s"), exp.alias_(exp.column(end), "o")) for end in PATH_ENDS]
    return exp.union(*(_restrict_graphs(context, each, context.quads("")) for each in ends), distinct=True, copy=False)


def _restrict_graphs(context: Context, select: exp.Select, source: RelationSource) -> exp.Select:
    """Restrict to the graphs of the context, and add the keys that separate them."""
    if context.keyed:
        keys = [exp.alias_(exp.column("position"), "graph"), exp.alias_(exp.column("graph"), "name")]
        select = select.select(*keys)
    graphs = context.dataset.named if context.graph is not None else context.dataset.default
    return _within(select.from_(source.sql()), graphs, context.graph)


def _within(select: exp.Select, graphs: tuple[str, ...] | None, graph: Node | None) -> exp.Select:
    if isinstance(graph, Const):
        select = select.where(equal(exp.column("graph"), text(graph.term)))
    if graphs is None:
        return select
    return select.where(among(exp.column("graph"), graphs) if graphs else exp.false())
