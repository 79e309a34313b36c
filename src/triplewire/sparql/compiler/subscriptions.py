"""Subscriptions as SQL: a query on one event at a time, for a batch of events and all subscriptions of one shape.

`compile_event` takes conjunctions, `compile_subscription` any query. A subscription's constants are variables to which
the frame gives values, so operators need not know of them; only pairs of event and subscription that have the required
patterns are evaluated. Ontology conditions are joins from the value in the event to its related names, and from these
to the subscriptions that ask for them: as a filter they would be tried on every pair.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from triplewire.sparql import algebra
from triplewire.sparql.algebra import Apply, Const, Expression, Node, Operator, Param, Pattern, Query, Var
from triplewire.sparql.compiler.contexts import Context, EvaluationFrame, QueryBuild, with_shared_relations
from triplewire.sparql.compiler.expressions import CONSTANTS_ALIAS, ExpressionScope, parameter_value
from triplewire.sparql.compiler.facets import QUADS
from triplewire.sparql.compiler.functions import CLOSURE, CLOSURE_COLUMNS, OntologyLookup, find_lookup
from triplewire.sparql.compiler.modifiers import RANK_KEY, compile_select
from triplewire.sparql.compiler.operators import compile_operator
from triplewire.sparql.compiler.patterns import match_patterns
from triplewire.sparql.compiler.relations import (
    JoinedSource,
    OutputColumns,
    Relation,
    RelationSource,
    TableSource,
    render_distinct,
    render_select,
    text_column,
)
from triplewire.sparql.compiler.scans import Scan, bind_scans
from triplewire.sparql.compiler.terms import StoredTerm
from triplewire.sparql.compiler.values import HeaderTime, Value
from triplewire.sparql.conjunctions import Conjunction
from triplewire.sparql.parameters import NOW, find_parameters, parameter_variable, parameters_to_variables
from triplewire.sparql.sql import VARCHAR, Sql, call, cast, column, equal, number, text
from triplewire.sparql.traversal import mentioned_variables


def compile_subscription(query: Query, *, solutions: bool, stream: bool = False, alone: bool = False) -> exp.Query:
    """Compile a query over the relations `quads` and `events`, which hold a batch, and `constants`.

    It returns `position, subscription` once for each pair that matches; with `solutions` also `terms`, a list of texts:
    for every solution its rank, as text by which they sort, and the term of each variable of the projection.

    With `stream` the constant after the last one of the query is the name, as a literal, of the stream that the event
    must be of. With `alone` no pairs are ruled out before: for one event and one subscription that may be more work
    than the query itself.
    """
    constants = find_parameters(query)
    query = parameters_to_variables(query)
    build = QueryBuild(compile_operator)
    context = Context(build, events=True)
    patterns = [
        *(() if alone else required_patterns(query.where)),
        *([Pattern(Var(".event"), algebra.STREAM_PREDICATE, _stream(constants))] if stream else []),
    ]
    context = context.in_frame(_pairs(context, patterns, constants, now=NOW in mentioned_variables(query.where)))
    if not solutions:
        relation = context.uncounted().compile(query.where)
        return with_shared_relations(build, render_select(relation, _keys(relation)).distinct(copy=False))
    assert isinstance(query.where, algebra.Select)
    relation = build.without_lets(build.settle(compile_select(context, query.where, last=True)))
    taken = [_rank(relation), *(text_column(relation.values[name]) for name in query.projection)]
    columns = {**_keys(relation), "terms": call("TW_FLAT_LIST", *taken)}
    return with_shared_relations(
        build, render_select(relation, columns).group_by(*_keys(relation).values(), copy=False)
    )


def _keys(relation: Relation) -> dict[str, Sql]:
    return {name: relation.keys[name] for name in ("position", "subscription")}


def _rank(relation: Relation) -> Sql:
    """The rank of a solution among those of its event, as text that sorts like the number; empty without an order."""
    rank = relation.keys.get(RANK_KEY)
    return text("") if rank is None else call("LPAD", cast(rank, VARCHAR), number(9), text("0"))


def _stream(constants: dict[int, algebra.Family | None]) -> Var:
    """The variable of the constant after those of the query."""
    index = max(constants, default=-1) + 1
    constants[index] = algebra.Family.STRING
    return Var(parameter_variable(index))


def _pairs(
    context: Context, patterns: list[Pattern], constants: Mapping[int, algebra.Family | None], *, now: bool
) -> EvaluationFrame:
    """Events and subscriptions that have all required patterns: the frame of everything else."""
    values: dict[str, Value] = {
        parameter_variable(index): parameter_value(Param(index, family)) for index, family in constants.items()
    }
    start = Relation(values=values, keys={"subscription": column(CONSTANTS_ALIAS, "subscription")})
    start = start.join(TableSource("constants", CONSTANTS_ALIAS))
    relation = match_patterns(context.uncounted(), tuple(patterns), start)
    if now or "position" not in relation.keys:
        relation = _with_event(context, relation)
    return context.build.share(relation.project([*values, NOW]), render_distinct)


def _with_event(context: Context, relation: Relation) -> Relation:
    """Add the time at which the event was received, which is its NOW()."""
    alias = context.build.alias("e")
    position = column(alias, "position")
    same = [equal(position, relation.keys["position"])] if "position" in relation.keys else []
    keys = {"position": position, **relation.keys}
    received = HeaderTime(column(alias, "received"))
    relation = replace(relation, keys=keys).join(TableSource("events", alias))
    return relation.where(*same).with_values(**{NOW: received})


def required_patterns(where: Operator) -> Iterable[Pattern]:
    """Return the patterns without which a query has no solution. A variable that a sub-query does not project differs
    from one of that name around it, so its patterns are left out."""
    return _walk_required(where.inner if isinstance(where, algebra.Select) else where)


def _walk_required(operator: Operator) -> Iterator[Pattern]:
    match operator:
        case algebra.Basic(patterns):
            yield from patterns
        case algebra.Bag(predicate, member=member):
            yield Pattern(Var(f"{member}.subject"), predicate, Var(f"{member}.object"))
        case algebra.Join(left, right):
            yield from _walk_required(left)
            yield from _walk_required(right)
        case algebra.LeftJoin(left) | algebra.Minus(left):
            yield from _walk_required(left)
        case algebra.Filter(inner) | algebra.Extend(inner) | algebra.Graph(inner=inner):
            yield from _walk_required(inner)
        case algebra.Group(inner, keys) if keys:
            yield from _walk_required(inner)


@dataclass(frozen=True)
class ClosureSource:
    """The relation `closure` as a source, where that is needed with each object of a predicate beside itself."""

    alias: str
    relation: str | None
    reflexive: bool
    predicate: str | None

    def sql(self) -> exp.Expr:
        rows = exp.select(*CLOSURE_COLUMNS).from_(CLOSURE)
        if self.relation is not None:
            rows = rows.where(equal(exp.column(CLOSURE_COLUMNS[0]), text(self.relation)))
        if not self.reflexive:
            return rows.subquery(self.alias)
        return exp.union(rows, self._same(), distinct=False).subquery(self.alias)

    def _same(self) -> exp.Select:
        columns = [exp.alias_(text(self.relation or ""), CLOSURE_COLUMNS[0]), *(exp.column("object") for _ in range(2))]
        same = exp.select(*columns).distinct().from_("quads")
        return same if self.predicate is None else same.where(equal(exp.column("predicate"), text(self.predicate)))


@dataclass(frozen=True)
class OntologyJoin:
    """A look-up of the object in the row of an alias."""

    row: str
    source: ClosureSource
    conditions: tuple[Sql, ...]


def find_ontology_joins(
    query: Conjunction, scans: Sequence[Scan], scope: ExpressionScope
) -> dict[Expression, OntologyJoin]:
    """The filters that are look-ups of an object of an event."""
    found: dict[Expression, OntologyJoin] = {}
    for each in query.filters:
        sought = find_lookup(each)
        value = None if sought is None else scope.values.get(sought.variable)
        if sought is not None and type(value) is StoredTerm and value.name == "object":
            predicates = [scan.pattern.predicate for scan in scans if scan.alias == value.alias and not scan.header]
            found[each] = _ontology_join(sought, value.alias, predicates[0], scope, f"o{len(found)}")
    return found


def _ontology_join(
    sought: OntologyLookup, row: str, predicate: Node, scope: ExpressionScope, alias: str
) -> OntologyJoin:
    known = predicate.term if isinstance(predicate, Const) else None
    pairs = zip(CLOSURE_COLUMNS, sought.terms, strict=True)
    asked = [(name, term) for name, term in pairs if name != CLOSURE_COLUMNS[0] or sought.relation is None]
    conditions = tuple(equal(column(alias, name), scope.value(term).text()) for name, term in asked)
    return OntologyJoin(row, ClosureSource(alias, sought.relation, sought.reflexive, known), conditions)


def order_sources(query: Conjunction, aliases: Sequence[str], sought: Sequence[OntologyJoin]) -> list[RelationSource]:
    """Order look-ups for joining. If only look-ups lead from events to subscriptions, one of them comes first."""
    constants = TableSource("constants", CONSTANTS_ALIAS)
    rows = {each: TableSource("quads", each) for each in aliases}
    if not sought or _has_equality(query):
        return [constants, *rows.values(), *(each.source for each in sought)]
    first, *others = sought
    return [rows.pop(first.row), first.source, constants, *rows.values(), *(each.source for each in others)]


def _has_equality(query: Conjunction) -> bool:
    """Tell whether a constant in a pattern, or an equality, leads from events to subscriptions."""
    named = any(isinstance(node, Param) for each in query.patterns for node in (each.subject, each.object))
    return named or any(isinstance(each, Apply) and each.op in ("=", "sameterm") for each in query.filters)


_PARAMETER_COLUMN = re.compile(r"k(\d+)(?:_(\w+))?")


def compile_event(query: Conjunction, *, solutions: bool, plain: bool = False, first: int | None = None) -> exp.Select:
    """Compile a conjunction over the relations `quads`, which holds the events of a batch, and `constants`. The caller
    checks whether a subscription was active at an event's position: as a condition here it would tempt the engine to
    pair all events with all subscriptions first.

    It returns `position, subscription` once for each pair that matches; with `solutions` also a list of integers: for
    every solution the number of the quad that each pattern took, in the order of `query.patterns`, solutions in
    ascending order. DISTINCT, LIMIT and the projection are left to the code that expands the solutions.

    With `plain` it is a shorter query, which an engine plans sooner, for batches and constants without a number that
    `needs_exact_comparison`. `first` is the index of a stored pattern that is joined with the constants before the
    others.
    """
    relation, columns = _parts(query, plain=plain, first=first)
    if not solutions:
        return render_select(relation, relation.keys).distinct(copy=False)
    return render_select(relation, columns).group_by(number(1), number(2), copy=False)


def params_with_facets(compiled: exp.Query) -> Mapping[int, frozenset[str]]:
    """For each parameter, return the columns that a compiled query reads: `term` for its text, else names of facets."""
    found: dict[int, set[str]] = {}
    for each in compiled.find_all(exp.Column):
        if each.table == CONSTANTS_ALIAS and (match := _PARAMETER_COLUMN.fullmatch(each.name)):
            found.setdefault(int(match[1]), set()).add(match[2] or "term")
    return {index: frozenset(facets) for index, facets in sorted(found.items())}


def facets_used(compiled: exp.Query) -> frozenset[str]:
    """The columns of `quads` that a compiled query reads."""
    return frozenset(each.name for each in compiled.find_all(exp.Column)) & frozenset(QUADS)


def _parts(query: Conjunction, *, plain: bool, first: int | None) -> tuple[Relation, OutputColumns]:
    """Return the relation, and its columns if solutions are asked for."""
    scans = [replace(scan, plain=plain) for scan in _scans(query)]
    base = scans[0].alias if scans else "q0"
    scope, joined = bind_scans(scans)
    leading = [] if first is None else [scans[first].alias]
    aliases = dict.fromkeys([*leading, base, *(scan.alias for scan in scans)])
    sought = find_ontology_joins(query, scans, scope)
    relation = Relation(
        sources=tuple(map(JoinedSource, order_sources(query, [*aliases], [*sought.values()]))),
        conditions=(
            *_together(scans, base),
            *joined,
            *(each for look in sought.values() for each in look.conditions),
            *(scope.holds(each) for each in query.filters if each not in sought),
        ),
        keys={"position": column(base, "position"), "subscription": column(CONSTANTS_ALIAS, "subscription")},
        lets=scope.lets,
    )
    return relation, {**relation.keys, "solutions": _solutions(scans)}


def _scans(query: Conjunction) -> list[Scan]:
    """Give each stored pattern a row of its own; headers are the same on every row of an event."""
    stored = [index for index, pattern in enumerate(query.patterns) if not algebra.header_column(pattern)]
    shared = f"q{stored[0] if stored else 0}"
    return [
        Scan(pattern, shared if algebra.header_column(pattern) else f"q{index}")
        for index, pattern in enumerate(query.patterns)
    ]


def _together(scans: list[Scan], base: str) -> list[Sql]:
    """Require all rows to be of one event. If no pattern is stored, the event's first quad is read."""
    if all(scan.header for scan in scans):
        return [equal(column(base, "quad"), number(0))]
    others = dict.fromkeys(scan.alias for scan in scans if scan.alias != base)
    return [equal(column(base, "position"), column(alias, "position")) for alias in others]


def _solutions(scans: list[Scan]) -> Sql:
    taken = [
        number(found[1]) if (found := algebra.header_column(scan.pattern)) else column(scan.alias, "quad")
        for scan in scans
    ]
    return cast(call("TW_FLAT_LIST", *taken), exp.DataType.build("ARRAY<INT>"))
