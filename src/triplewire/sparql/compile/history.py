"""History: a query over everything that was ever published."""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from triplewire.sparql.algebra import Node, Pattern, Query, Var
from triplewire.sparql.compile.conditions import Scope
from triplewire.sparql.compile.scans import Scan, bindings, filters, virtual
from triplewire.sparql.compile.sql import VARCHAR, Sql, cast, column, equal, every, is_null, null, number


def compile_history(query: Query) -> exp.Select:
    """The query over the relations `quads` and `events`.

    A SELECT has one VARCHAR column `v0`, `v1`, … for each variable of `query.projection`, in its order, because
    SPARQL tells `?a` from `?A` and engines do not; a SELECT without variables has the column `unit`. An ASK has
    one boolean column `answer`.
    """
    scans = _scans(query.patterns)
    scope, conditions = bindings(scans)
    where = every(*conditions, *_positions(scans), *filters(query, scope))
    if query.form == "ask":
        return _ask(query, scans, where)
    select = exp.select(*_projected(query, scope))
    return _finished(query, select.distinct() if query.distinct else select, scans, where)


def _scans(patterns: Iterable[Pattern]) -> list[Scan]:
    """One row of `quads` for each stored pattern. Headers of one event are read from one row, if possible that of
    a pattern in GRAPH with the same variable."""
    owners: dict[Node, str] = {}
    for index, pattern in enumerate(patterns):
        if pattern.graph is not None:
            owners.setdefault(pattern.graph, f"q{index}")
    found = []
    for index, pattern in enumerate(patterns):
        alias = owners.setdefault(pattern.subject, f"e{index}") if virtual(pattern) else f"q{index}"
        found.append(Scan(pattern, alias))
    return found


def _positions(scans: list[Scan]) -> list[Sql]:
    """Patterns in one GRAPH take their quads from one event."""
    first: dict[Node, str] = {}
    conditions = []
    for scan in scans:
        if scan.pattern.graph is None:
            continue
        owner = first.setdefault(scan.pattern.graph, scan.alias)
        if owner != scan.alias:
            conditions.append(equal(column(owner, "position"), column(scan.alias, "position")))
    return conditions


def _projected(query: Query, scope: Scope) -> list[Sql]:
    if not query.projection:
        return [exp.alias_(number(1), "unit")]
    texts = [scope.value(Var(name)).text() for name in query.projection]
    return [exp.alias_(cast(null(), VARCHAR) if is_null(sql) else sql, f"v{index}") for index, sql in enumerate(texts)]


def _ask(query: Query, scans: list[Scan], where: Sql) -> exp.Select:
    inner = _finished(query, exp.select(exp.alias_(number(1), "unit")), scans, where)
    if query.limit is None:
        inner = inner.limit(1)
    answer = exp.GT(this=exp.Count(this=exp.Star()), expression=number(0))
    return exp.select(exp.alias_(answer, "answer")).from_(inner.subquery("solutions"))


def _finished(query: Query, select: exp.Select, scans: list[Scan], where: Sql) -> exp.Select:
    """With its relations, its condition and its slice."""
    once = (query.form == "select" and not query.distinct) or query.offset > 0
    needed = select.where(where, copy=True)
    for index, (alias, group) in enumerate(_by_alias(scans).items()):
        relation = _relation(alias, group, needed, once)
        select = select.from_(relation) if index == 0 else select.join(relation, join_type="cross")
    select = select.where(where)
    select = select if query.limit is None else select.limit(query.limit)
    return select.offset(query.offset) if query.offset else select


def _by_alias(scans: list[Scan]) -> dict[str, list[Scan]]:
    groups: dict[str, list[Scan]] = {}
    for scan in scans:
        groups.setdefault(scan.alias, []).append(scan)
    return groups


def _relation(alias: str, group: list[Scan], select: exp.Select, once: bool) -> exp.Expr:
    """The default graph is a set of triples: one that two events hold counts once, where counting matters."""
    table = "events" if alias.startswith("e") else "quads"
    if not once or any(scan.pattern.graph is not None for scan in group):
        return exp.to_table(table, alias=alias)
    used = {found.name for found in select.find_all(exp.Column) if found.table == alias}
    names = sorted(used | _varying(group))
    columns = [exp.column(name) for name in names]
    return exp.select(*columns).from_(exp.to_table(table)).distinct().subquery(alias)


def _varying(group: list[Scan]) -> set[str]:
    """The columns of variables: they tell triples apart even where nobody asks for them."""
    places = ("subject", "predicate", "object")
    return {
        place
        for scan in group
        if scan.header is None
        for place in places
        if isinstance(getattr(scan.pattern, place), Var)
    } | {"graph" for scan in group if scan.header is not None}
