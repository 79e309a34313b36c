"""Events: a subscription's query on one event at a time, for a batch of events and all subscriptions of a shape."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from sqlglot import exp

from triplewire.sparql.compile.conditions import CONSTANTS
from triplewire.sparql.compile.facets import QUADS
from triplewire.sparql.compile.look_ups import sought_in, sources
from triplewire.sparql.compile.relations import Columns, Relation, rendered
from triplewire.sparql.compile.scans import Scan, bindings, filters, virtual
from triplewire.sparql.compile.sql import Sql, call, cast, column, equal, number
from triplewire.sparql.conjunctions import Conjunction

_PARAM = re.compile(r"k(\d+)(?:_(\w+))?")


def compile_event(query: Conjunction, *, solutions: bool, plain: bool = False, first: int | None = None) -> exp.Select:
    """The query over the relations `quads`, which holds the events of a batch, and `constants`.

    Which subscriptions held at an event's position is left to whoever reads the answer: as a condition here it would
    tempt the engine to pair all events with all subscriptions first.

    Gives `position, subscription` once for each pair that matches; with `solutions` also a list of integers:
    for every solution the number of the quad that each pattern took, in the order of `query.patterns`, and
    solution after solution in ascending order. DISTINCT, LIMIT and the projection are left to whoever expands
    the solutions.

    With `plain` it is a shorter query, which an engine plans sooner, for batches and constants that hold no number that
    is `involved`. `first` is the number of a stored pattern that is to be joined with the constants before the others.
    """
    relation, columns = _parts(query, plain=plain, first=first)
    if not solutions:
        return rendered(relation, relation.keys).distinct(copy=False)
    return rendered(relation, columns).group_by(number(1), number(2), copy=False)


def params_with_facets(compiled: exp.Query) -> Mapping[int, frozenset[str]]:
    """Which columns of each parameter a compiled query reads: `term` for its text, else names of facets."""
    found: dict[int, set[str]] = {}
    for each in compiled.find_all(exp.Column):
        if each.table == CONSTANTS and (match := _PARAM.fullmatch(each.name)):
            found.setdefault(int(match[1]), set()).add(match[2] or "term")
    return {index: frozenset(facets) for index, facets in sorted(found.items())}


def facets_used(compiled: exp.Query) -> frozenset[str]:
    """The columns of `quads` that a compiled query reads."""
    return frozenset(each.name for each in compiled.find_all(exp.Column)) & frozenset(QUADS)


def _parts(query: Conjunction, *, plain: bool, first: int | None) -> tuple[Relation, Columns]:
    """The relation, and its columns where solutions are asked for."""
    scans = [replace(scan, plain=plain) for scan in _scans(query)]
    base = scans[0].alias if scans else "q0"
    scope, joined = bindings(scans)
    leading = [] if first is None else [scans[first].alias]
    aliases = dict.fromkeys([*leading, base, *(scan.alias for scan in scans)])
    sought = sought_in(query, scans, scope)
    rest = replace(query, filters=tuple(each for each in query.filters if each not in sought))
    relation = Relation(
        sources=sources(query, [*aliases], [*sought.values()]),
        conditions=(
            *_together(scans, base),
            *joined,
            *(each for look in sought.values() for each in look.conditions),
            *filters(rest, scope),
        ),
        keys={"position": column(base, "position"), "subscription": column(CONSTANTS, "subscription")},
        lets=scope.lets,
    )
    return relation, {**relation.keys, "solutions": _solutions(scans)}


def _scans(query: Conjunction) -> list[Scan]:
    """Stored patterns take rows of their own; headers are the same on every row of an event."""
    stored = [index for index, pattern in enumerate(query.patterns) if not virtual(pattern)]
    shared = f"q{stored[0] if stored else 0}"
    return [Scan(pattern, shared if virtual(pattern) else f"q{index}") for index, pattern in enumerate(query.patterns)]


def _together(scans: list[Scan], base: str) -> list[Sql]:
    """All rows are of one event. Where no pattern is stored, the event's first quad stands for it."""
    if all(scan.header for scan in scans):
        return [equal(column(base, "quad"), number(0))]
    others = dict.fromkeys(scan.alias for scan in scans if scan.alias != base)
    return [equal(column(base, "position"), column(alias, "position")) for alias in others]


def _solutions(scans: list[Scan]) -> Sql:
    taken = [number(found[1]) if (found := virtual(scan.pattern)) else column(scan.alias, "quad") for scan in scans]
    return cast(call("TW_FLAT_LIST", *taken), exp.DataType.build("ARRAY<INT>"))
