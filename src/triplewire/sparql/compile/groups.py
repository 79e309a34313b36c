"""Groups: GROUP BY and the set functions over each group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from triplewire.sparql.algebra import Aggregate, Group
from triplewire.sparql.compile.aggregates import aggregate
from triplewire.sparql.compile.columns import Stored
from triplewire.sparql.compile.contexts import Context
from triplewire.sparql.compile.expressions import valued
from triplewire.sparql.compile.joins import certain, joined, left_joined
from triplewire.sparql.compile.leaves import matched
from triplewire.sparql.compile.relations import Columns, Crossing, Relation, Rendering, rendered
from triplewire.sparql.compile.sql import Sql, equal, is_null, number, present, row_number
from triplewire.sparql.compile.statics import Known, static
from triplewire.sparql.compile.values import Value, facet_of

_UNTOUCHED = frozenset({"min", "max", "sample"})
"""Set functions that give the same however often a value comes."""

_ROW = ".row"
"""There for every solution, and not for a group that has none."""


def grouped(context: Context, group: Group) -> Relation:
    """One solution for each group."""
    counted = any(each.op not in _UNTOUCHED for _, each in group.aggregates)
    inner = replace(context, counted=counted).compile(group.inner)
    arguments = {name: f".a{name}" for name, each in group.aggregates if each.argument is not None}
    relation = context.build.settled(inner)
    for name, key in group.keys:
        relation = valued(context, relation, name, key)
    for name, each in group.aggregates:
        if each.argument is not None:
            relation = valued(context, relation, arguments[name], each.argument)
    relation = relation if group.keys else _with_empty(context, relation)
    flags = _firsts(relation, group, arguments)
    relation = context.build.closed(relation.having(**flags) if flags else relation)
    return _closed(context, relation, group, arguments)


def _with_empty(context: Context, relation: Relation) -> Relation:
    """Without keys there is a group even where there is no solution; in SQL only if nothing is grouped by."""
    if not (context.frame or context.graph is not None):
        return relation
    marked = relation.having(**{_ROW: Known(static('"1"'))})
    return left_joined(context, matched(context, ()), context.build.closed(marked, constants=False), ())


def _firsts(relation: Relation, group: Group, arguments: Mapping[str, str]) -> dict[str, Value]:
    """For set functions over what is distinct: is it the first row of its group with this value?"""
    flags: dict[str, Value] = {}
    for name, each in group.aggregates:
        if each.distinct and each.op not in _UNTOUCHED:
            told = _texts(relation, _solution(relation) if each.argument is None else [arguments[name]])
            parts = [*_texts(relation, [key for key, _ in group.keys]), *relation.keys.values(), *told]
            flags[f".f{name}"] = Crossing(equal(row_number(parts), number(1)))
    return flags


def _solution(relation: Relation) -> list[str]:
    """The variables of the query: blank nodes and what lies between the ends of a path are no part of a solution."""
    return [name for name in relation.values if not name.startswith(("_:", "."))]


def _texts(relation: Relation, names: list[str]) -> list[Sql]:
    texts = [relation.values[name].text() for name in names if name in relation.values]
    return [each for each in texts if not is_null(each) and not isinstance(each, exp.Literal)]


@dataclass(frozen=True)
class _Key(Stored):
    """A key of a group: its text tells groups apart, and any facet of it is that of all."""

    inner: Value | None = None

    def text(self) -> Sql:
        assert self.inner is not None
        return self.inner.text()

    def facet(self, name: str) -> Sql:
        assert self.inner is not None
        found = facet_of(self.inner, name)
        return found if is_null(found) else exp.AnyValue(this=found)


def _closed(context: Context, relation: Relation, group: Group, arguments: Mapping[str, str]) -> Relation:
    keys = {name: relation.values.get(name, Value()) for name, _ in group.keys}
    values = {name: _key(value) for name, value in keys.items()} | {
        name: _aggregated(relation, name, each, arguments.get(name), steady=context.build.steady)
        for name, each in group.aggregates
    }
    texts = [value.text() for value in keys.values() if not isinstance(value, Known)]
    by = [*(each for each in texts if not is_null(each)), *relation.keys.values()]

    found = context.build.closed(replace(relation, values=values, rows="set"), _grouping(by, bool(group.keys)))
    return joined(context, context.start(), found) if context.frame else found


def _grouping(by: list[Sql], keyed: bool) -> Rendering:
    def grouping(relation: Relation, columns: Columns) -> exp.Query:
        select = rendered(relation, columns)
        if by:
            return select.group_by(*by, copy=False)
        # Keys that are all constants make one group, but none where there is no solution. Without keys there is one in
        # any case, also where nobody asks for what is aggregated.
        least = exp.GTE(this=exp.Count(this=exp.Star()), expression=number(1 if keyed else 0))
        return select.having(least, copy=False)

    return grouping


def _key(value: Value) -> Value:
    return value if isinstance(value, Known) else _Key("", "", value.families, certain=certain(value), inner=value)


def _aggregated(relation: Relation, name: str, each: Aggregate, argument: str | None, *, steady: bool) -> Value:
    among = None
    if f".f{name}" in relation.values:
        among = relation.values[f".f{name}"].text()
    if _ROW in relation.values:
        there = present(relation.values[_ROW].text())
        among = there if among is None else exp.and_(there, among)
    value = None if argument is None else relation.values[argument]
    return aggregate(each.op, value, separator=each.separator, among=among, steady=steady)
