"""Events: a subscription's query on one event at a time, for a batch of events and all subscriptions of a shape."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sqlglot import exp

from triplewire.sparql.algebra import Query
from triplewire.sparql.compile.conditions import CONSTANTS
from triplewire.sparql.compile.scans import Scan, bindings, filters, virtual
from triplewire.sparql.compile.sql import Sql, call, cast, column, compare, equal, every, negate, number, present, some

_PARAM = re.compile(r"k(\d+)(?:_(\w+))?")


def compile_event(query: Query, *, solutions: bool) -> exp.Select:
    """The query over the relations `quads`, which holds the events of a batch, and `constants`.

    Gives `position, subscription` once for each pair that matches; with `solutions` also a list of integers:
    for every solution the number of the quad that each pattern took, in the order of `query.patterns`, and
    solution after solution in ascending order. DISTINCT, LIMIT and the projection are left to whoever expands
    the solutions.
    """
    scans = _scans(query)
    base = scans[0].alias if scans else "q0"
    scope, conditions = bindings(scans)
    where = every(*_together(scans, base), *conditions, *filters(query, scope), *_listening(base))
    position, subscription = column(base, "position"), column(CONSTANTS, "subscription")
    select = exp.select(position, subscription).from_(exp.to_table("constants", alias=CONSTANTS))
    for alias in dict.fromkeys([base, *(scan.alias for scan in scans)]):
        select = select.join(exp.to_table("quads", alias=alias), join_type="cross")
    select = select.where(where)
    if not solutions:
        return select.distinct()
    return select.select(exp.alias_(_solutions(scans), "solutions")).group_by(position.copy(), subscription.copy())


def params_with_facets(query: Query) -> Mapping[int, frozenset[str]]:
    """Which columns of each parameter the compiled query reads: `term` for its text, else names of facets."""
    found: dict[int, set[str]] = {}
    for name in _columns_of(query, lambda table: table == CONSTANTS):
        if match := _PARAM.fullmatch(name):
            found.setdefault(int(match[1]), set()).add(match[2] or "term")
    return {index: frozenset(facets) for index, facets in sorted(found.items())}


def facets_used(query: Query) -> frozenset[str]:
    """The columns of `quads` that the compiled query reads, solutions included."""
    return frozenset(_columns_of(query, lambda table: table != CONSTANTS))


def _columns_of(query: Query, wanted: object) -> set[str]:
    compiled = compile_event(query, solutions=True)
    return {each.name for each in compiled.find_all(exp.Column) if wanted(each.table)}  # type: ignore[operator]


def _scans(query: Query) -> list[Scan]:
    """Stored patterns take rows of their own; headers are the same on every row of an event."""
    stored = [f"q{index}" for index, pattern in enumerate(query.patterns) if not virtual(pattern)]
    return [
        Scan(pattern, stored[0] if stored and virtual(pattern) else f"q{index}" if not virtual(pattern) else "q0")
        for index, pattern in enumerate(query.patterns)
    ]


def _together(scans: list[Scan], base: str) -> list[Sql]:
    """All rows are of one event. Where no pattern is stored, the event's first quad stands for it."""
    if all(scan.header for scan in scans):
        return [equal(column(base, "quad"), number(0))]
    others = dict.fromkeys(scan.alias for scan in scans if scan.alias != base)
    return [equal(column(base, "position"), column(alias, "position")) for alias in others]


def _listening(base: str) -> list[Sql]:
    """The subscription was made before the event, ended after it, and listens to its stream."""
    position, stream = column(base, "position"), column(CONSTANTS, "stream")
    everywhere = negate(present(stream))
    return [
        compare("<", column(CONSTANTS, "since"), position),
        compare("<", position, column(CONSTANTS, "until")),
        some(everywhere, equal(stream, column(base, "stream"))),
    ]


def _solutions(scans: list[Scan]) -> Sql:
    taken = [number(found[1]) if (found := virtual(scan.pattern)) else column(scan.alias, "quad") for scan in scans]
    return cast(call("TW_FLAT_LIST", *taken), exp.DataType.build("ARRAY<INT>"))
