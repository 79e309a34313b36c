"""History: a query over everything that was ever published."""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from triplewire.sparql.algebra import Node, Pattern, Var
from triplewire.sparql.compile.conditions import Scope
from triplewire.sparql.compile.plans import Plan
from triplewire.sparql.compile.scans import Scan, bindings, filters, virtual
from triplewire.sparql.compile.sql import VARCHAR, Sql, cast, column, equal, is_null, null, number
from triplewire.sparql.conjunctions import Conjunction, parameters


def compile_history(query: Conjunction) -> exp.Select:
    """The query over the relations `quads` and `events`.

    A SELECT has one VARCHAR column `v0`, `v1`, … for each variable of `query.projection`, in its order, because
    SPARQL tells `?a` from `?A` and engines do not; a SELECT without variables has the column `unit`. An ASK has
    one boolean column `answer`.
    """
    if parameters(query):
        raise ValueError("a query with parameters has no answer over history; put its constants back")
    scans = _scans(query.patterns)
    scope, joined = bindings(scans)
    plan = Plan([*joined, *_positions(scans), *filters(query, scope)], scope.lets)
    if query.form == "ask":
        return _ask(_sliced(query, _select(query, scans, plan, [_UNIT]), default=1))
    select = _select(query, scans, plan, _projected(query, scope))
    return _sliced(query, select.distinct() if query.distinct else select)


_UNIT = exp.alias_(number(1), "unit")


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


def _projected(query: Conjunction, scope: Scope) -> list[Sql]:
    if not query.projection:
        return [_UNIT]
    texts = [scope.value(Var(name)).text() for name in query.projection]
    return [exp.alias_(cast(null(), VARCHAR) if is_null(sql) else sql, f"v{index}") for index, sql in enumerate(texts)]


def _ask(solutions: exp.Select) -> exp.Select:
    answer = exp.GT(this=exp.Count(this=exp.Star()), expression=number(0))
    return exp.select(exp.alias_(answer, "answer")).from_(solutions.subquery("solutions"))


def _sliced(query: Conjunction, select: exp.Select, default: int | None = None) -> exp.Select:
    limit = default if query.limit is None else query.limit
    select = select if limit is None else select.limit(limit)
    return select.offset(query.offset) if query.offset else select


def _select(query: Conjunction, scans: list[Scan], plan: Plan, outputs: list[Sql]) -> exp.Select:
    """The default graph is a set of triples: one that two events hold counts once, where counting matters."""
    counted = (query.form == "select" and not query.distinct) or query.offset > 0
    used = plan.columns(outputs)
    relations = [
        _distinct(alias, group, used) if counted and _in_default_graph(group) else _table(alias)
        for alias, group in _by_alias(scans).items()
    ]
    return plan.select(outputs, relations)


def _table(alias: str) -> exp.Expr:
    return exp.to_table(_name(alias), alias=alias)


def _name(alias: str) -> str:
    return "events" if alias.startswith("e") else "quads"


def _in_default_graph(group: list[Scan]) -> bool:
    return all(scan.pattern.graph is None for scan in group)


def _by_alias(scans: list[Scan]) -> dict[str, list[Scan]]:
    groups: dict[str, list[Scan]] = {}
    for scan in scans:
        groups.setdefault(scan.alias, []).append(scan)
    return groups


def _distinct(alias: str, group: list[Scan], used: list[exp.Column]) -> exp.Expr:
    names = {each.name for each in used if each.table == alias} | _varying(group)
    columns = [exp.column(name) for name in sorted(names)]
    return exp.select(*columns).from_(_name(alias)).distinct().subquery(alias)


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
