"""Modifiers: ordering, projection, DISTINCT and slices, of the whole query or of one inside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from triplewire.sparql.algebra import Order, Select, Var
from triplewire.sparql.compile.contexts import Context
from triplewire.sparql.compile.expressions import valued
from triplewire.sparql.compile.orders import order_keys
from triplewire.sparql.compile.relations import Columns, Relation, Rendering, distinct, rendered
from triplewire.sparql.compile.sql import Sql, is_null, number
from triplewire.sparql.compile.values import Value
from triplewire.sparql.variables import mentioned

RANK = "rank"
"""The key that tells the place of a solution in the order."""


def modified(context: Context, select: Select, *, last: bool = False) -> Relation:
    """The solutions of a SELECT. Their order is kept only in the `last` one: before that, only slices follow it."""
    sliced = select.limit is not None or select.offset > 0
    counted = sliced and not select.distinct if not context.counted else not select.distinct
    relation = replace(context, counted=counted).compile(select.inner)
    order = select.order if sliced or last else ()
    if select.distinct and not _follows(order, select.projection):
        return _ordered_first(context, relation, select, order)
    if select.distinct:
        relation = context.build.closed(_projected(context, relation, select), distinct)
        relation, keys = _keys(context, relation, order)
    else:
        relation, keys = _keys(context, context.build.settled(relation), order)
        relation = _projected(context, relation, select)
    relation = replace(relation, rows="set" if select.distinct or not context.counted else "bag")
    return _sliced(context, relation, keys, select, last=last) if sliced or keys else relation


def _projected(context: Context, relation: Relation, select: Select) -> Relation:
    missing = {name: Value() for name in select.projection if name not in relation.values}
    return relation.having(**missing).only([*select.projection, *sorted(context.substituted)])


def _follows(order: Sequence[Order], projection: Sequence[str]) -> bool:
    """Can the order be told from what is projected?"""
    return all(mentioned(each.expression) <= set(projection) for each in order)


def _keys(context: Context, relation: Relation, order: Sequence[Order]) -> tuple[Relation, list[exp.Ordered]]:
    """What to sort by, each a plain expression over the relation."""
    relation = context.build.simple(relation) if order else relation
    named = list[tuple[str, bool]]()
    for index, each in enumerate(order):
        name = each.expression.name if isinstance(each.expression, Var) else f".o{index}"
        if not isinstance(each.expression, Var):
            relation = valued(context, relation, name, each.expression)
        named.append((name, each.descending))
    keys = [
        _ordered(key, descending)
        for name, descending in named
        for key in order_keys(relation.values.get(name, Value()))
        # A constant orders nothing, and to engines a number is the place of a column.
        if not is_null(key) and not isinstance(key, exp.Literal)
    ]
    return relation, keys


def _ordered(key: Sql, descending: bool) -> exp.Ordered:
    return exp.Ordered(this=key, desc=descending, nulls_first=not descending)


def _ordered_first(context: Context, relation: Relation, select: Select, order: Sequence[Order]) -> Relation:
    """DISTINCT after an order by what is not projected: each solution stands where the first of its rows would."""
    relation, keys = _keys(context, relation, order)
    projected = _projected(context, relation, select)
    texts = [value.text() for value in projected.values.values()]
    by = [*(each for each in texts if not is_null(each) and not isinstance(each, exp.Literal)), *relation.keys.values()]
    least = [exp.Max(this=each.this) if each.args["desc"] else exp.Min(this=each.this) for each in keys]
    first = [_ordered(key, each.args["desc"]) for key, each in zip(least, keys, strict=True)]

    def rendering(relation: Relation, columns: Columns) -> exp.Query:
        return _cut(rendered(relation, columns).group_by(*by, copy=False), first, select)

    return context.build.closed(replace(projected, rows="set"), rendering)


def _sliced(context: Context, relation: Relation, keys: list[exp.Ordered], select: Select, *, last: bool) -> Relation:
    if relation.keys:
        return _sliced_each(context, relation, keys, select, last=last)
    rendering: Rendering = lambda inner, columns: _cut(rendered(inner, columns), keys, select)  # noqa: E731
    return context.build.closed(relation, rendering)


def _cut(query: exp.Select, keys: list[exp.Ordered], select: Select) -> exp.Select:
    query = query.order_by(*keys, copy=False) if keys else query
    query = query if select.limit is None else query.limit(select.limit, copy=False)
    return query.offset(select.offset, copy=False) if select.offset else query


def _sliced_each(
    context: Context, relation: Relation, keys: list[exp.Ordered], select: Select, *, last: bool
) -> Relation:
    """A slice for each row of the frame: by number within it. Without an order the texts give one, so that it is the
    same slice each time; the number stays as the rank in the last SELECT, if there is an order."""
    by = keys or [_ordered(value.text(), False) for value in relation.values.values() if not is_null(value.text())]
    order = exp.Order(expressions=by or [exp.Ordered(this=number(1))])
    numbered = exp.Window(this=exp.RowNumber(), partition_by=[*relation.keys.values()], order=order)
    ranked = context.build.closed(replace(relation, keys={**relation.keys, RANK: numbered}))
    place = ranked.keys[RANK]
    bounds: list[Sql] = [exp.GT(this=place, expression=number(select.offset))] if select.offset else []
    if select.limit is not None:
        bounds.append(exp.LTE(this=place, expression=number(select.offset + select.limit)))
    kept = {name: sql for name, sql in ranked.keys.items() if name != RANK or (last and keys)}
    return replace(ranked, keys=kept).where(*bounds)
