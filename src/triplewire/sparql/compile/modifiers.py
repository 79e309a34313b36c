"""Modifiers: ordering, projection, DISTINCT and slices, of the whole query or of one inside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from sqlglot import exp

from triplewire.sparql.algebra import Order, Select, Var
from triplewire.sparql.compile.contexts import Context
from triplewire.sparql.compile.expressions import valued
from triplewire.sparql.compile.orders import order_keys
from triplewire.sparql.compile.relations import Columns, Crossing, Relation, distinct, rendered
from triplewire.sparql.compile.sql import Sql, is_null, number, row_number
from triplewire.sparql.compile.values import Value
from triplewire.sparql.variables import mentioned

RANK = "rank"
"""The key that tells the place of a solution in the order."""


def modified(context: Context, select: Select, *, last: bool = False) -> Relation:
    """The solutions of a SELECT. Of their order only the rank is kept, and that only in the `last` one."""
    sliced = select.limit is not None or select.offset > 0
    relation, keys = _arranged(context, select, select.order if sliced or last else ())
    if relation.keys and (sliced or keys):
        return _sliced_each(context, relation, keys, select, last=last)
    if not sliced:
        return relation
    relation, keys = _settled(context, relation, keys)
    return context.build.closed(relation, lambda inner, columns: _cut(rendered(inner, columns), keys, select))


def finished(context: Context, select: Select, columns: Callable[[Relation], Columns]) -> exp.Query:
    """The last SELECT of a query with these columns of its solutions, in its order: nothing may stand around that."""
    relation, keys = _settled(context, *_arranged(context, select, select.order))
    return _cut(rendered(relation, columns(relation)), keys, select)


def _settled(context: Context, relation: Relation, keys: list[exp.Ordered]) -> tuple[Relation, list[exp.Ordered]]:
    """Where every order is to be told: solutions that the keys leave equal stand by their texts."""
    if not context.build.steady:
        return relation, keys
    relation = relation if keys else context.build.simple(relation)
    texts = [_ordered(value.text(), False) for value in relation.values.values()]
    return relation, list(dict.fromkeys([*keys, *(each for each in texts if _orders(each.this))]))


def _arranged(context: Context, select: Select, order: Sequence[Order]) -> tuple[Relation, list[exp.Ordered]]:
    """The solutions, projected and made distinct, and what to sort them by."""
    sliced = select.limit is not None or select.offset > 0
    counted = not select.distinct and (context.counted or sliced)
    relation = replace(context, counted=counted).compile(select.inner)
    if select.distinct and not _follows(order, select.projection):
        return _ordered_first(context, relation, select, order)
    if select.distinct:
        relation = context.build.closed(_projected(context, relation, select), distinct)
        relation, keys = _keys(context, relation, order)
    else:
        relation, keys = _keys(context, context.build.settled(relation), order)
    relation = _projected(context, relation, select)
    return replace(relation, rows="set" if select.distinct or not context.counted else "bag"), keys


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
    values = [(relation.values.get(name, Value()), descending) for name, descending in named]
    keys = [_ordered(key, descending) for value, descending in values for key in order_keys(value)]
    # what is equal stands by its text, so that the order is the same each time
    keys += [_ordered(value.text(), False) for value, _ in values]
    return relation, [key for key in keys if _orders(key.this)]


def _orders(key: Sql) -> bool:
    """A constant orders nothing, and to engines a number is the place of a column."""
    return key.find(exp.Column) is not None


def _ordered(key: Sql, descending: bool) -> exp.Ordered:
    return exp.Ordered(this=key, desc=descending, nulls_first=not descending)


def _ordered_first(
    context: Context, relation: Relation, select: Select, order: Sequence[Order]
) -> tuple[Relation, list[exp.Ordered]]:
    """DISTINCT after an order by what is not projected: each solution stands where the first of its rows would."""
    relation, keys = _keys(context, relation, order)
    projected = _projected(context, relation, select)
    texts = [value.text() for value in projected.values.values()]
    by = [*(each for each in texts if _orders(each)), *relation.keys.values()]
    least: dict[str, Value] = {
        f".least{place}": Crossing((exp.Max if key.args["desc"] else exp.Min)(this=key.this))
        for place, key in enumerate(keys)
    }

    def rendering(relation: Relation, columns: Columns) -> exp.Query:
        return rendered(relation, columns).group_by(*by, copy=False)

    closed = context.build.closed(replace(projected.having(**least), rows="set"), rendering)
    first = [_ordered(closed.values[name].text(), key.args["desc"]) for name, key in zip(least, keys, strict=True)]
    return closed.only([*projected.values]), first


def _cut(query: exp.Select, keys: list[exp.Ordered], select: Select) -> exp.Select:
    query = query.order_by(*keys, copy=False) if keys else query
    query = query if select.limit is None else query.limit(select.limit, copy=False)
    return query.offset(select.offset, copy=False) if select.offset else query


def _sliced_each(
    context: Context, relation: Relation, keys: list[exp.Ordered], select: Select, *, last: bool
) -> Relation:
    """A slice for each row of the frame: by number within it. Without an order the texts give one, so that it is the
    same slice each time; the number stays as the rank in the last SELECT, if there is an order."""
    texts = [_ordered(value.text(), False) for value in relation.values.values() if not is_null(value.text())]
    by = [*keys, *texts] if context.build.steady else keys or texts
    numbered = row_number([*relation.keys.values()], by)
    ranked = context.build.closed(replace(relation, keys={**relation.keys, RANK: numbered}))
    place = ranked.keys[RANK]
    bounds: list[Sql] = [exp.GT(this=place, expression=number(select.offset))] if select.offset else []
    if select.limit is not None:
        bounds.append(exp.LTE(this=place, expression=number(select.offset + select.limit)))
    kept = {name: sql for name, sql in ranked.keys.items() if name != RANK or (last and keys)}
    return replace(ranked, keys=kept).where(*bounds)
