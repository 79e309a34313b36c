"""Solution modifiers and query forms: ordering, projection, DISTINCT, slices; SELECT, ASK, CONSTRUCT and DESCRIBE as
one SELECT each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from triplewire.sparql import sql
from triplewire.sparql.algebra import Const, Node, Order, Pattern, Query, Select, Var
from triplewire.sparql.compiler.comparisons import order_keys
from triplewire.sparql.compiler.contexts import Context
from triplewire.sparql.compiler.filters import extend_relation
from triplewire.sparql.compiler.relations import (
    OutputColumns,
    Relation,
    SqlValue,
    TableSource,
    render_distinct,
    render_select,
    text_column,
)
from triplewire.sparql.compiler.values import Value
from triplewire.sparql.sql import Sql, call, cast, every, is_null, number, some, text
from triplewire.sparql.traversal import mentioned_variables, pattern_variables

RANK_KEY = "rank"
"""The key with the rank of a solution in the order."""


def compile_select(context: Context, select: Select, *, last: bool = False) -> Relation:
    """Compile the solutions of a SELECT. Only the rank of their order is kept, and only in the `last` SELECT."""
    sliced = select.limit is not None or select.offset > 0
    relation, keys = _arrange(context, select, select.order if sliced or last else ())
    if relation.keys and (sliced or keys):
        return _sliced_each(context, relation, keys, select, last=last)
    if not sliced:
        return relation
    relation, keys = _settle_order(context, relation, keys)
    return context.build.close(relation, lambda inner, columns: _cut(render_select(inner, columns), keys, select))


def compile_final_select(context: Context, select: Select, columns: Callable[[Relation], OutputColumns]) -> exp.Query:
    """The last SELECT of a query with these columns of its solutions, in its order: nothing may stand around that."""
    relation, keys = _settle_order(context, *_arrange(context, select, select.order))
    return _cut(render_select(relation, columns(relation)), keys, select)


def _settle_order(context: Context, relation: Relation, keys: list[exp.Ordered]) -> tuple[Relation, list[exp.Ordered]]:
    """Order solutions that the keys leave equal by their texts, if the result must be deterministic."""
    if not context.build.steady:
        return relation, keys
    relation = relation if keys else context.build.without_lets(relation)
    texts = [_ordered(value.text(), False) for value in relation.values.values()]
    return relation, list(dict.fromkeys([*keys, *(each for each in texts if _orders(each.this))]))


def _arrange(context: Context, select: Select, order: Sequence[Order]) -> tuple[Relation, list[exp.Ordered]]:
    """The solutions, projected and made distinct, and what to sort them by."""
    sliced = select.limit is not None or select.offset > 0
    counted = not select.distinct and (context.counted or sliced)
    relation = replace(context, counted=counted).compile(select.inner)
    if select.distinct and not _order_is_projected(order, select.projection):
        return _ordered_first(context, relation, select, order)
    if select.distinct:
        relation = context.build.close(_project(context, relation, select), render_distinct)
        relation, keys = _keys(context, relation, order)
    else:
        relation, keys = _keys(context, context.build.settle(relation), order)
    relation = _project(context, relation, select)
    return replace(relation, rows="set" if select.distinct or not context.counted else "bag"), keys


def _project(context: Context, relation: Relation, select: Select) -> Relation:
    missing = {name: Value() for name in select.projection if name not in relation.values}
    return relation.with_values(**missing).project([*select.projection, *sorted(context.substituted)])


def _order_is_projected(order: Sequence[Order], projection: Sequence[str]) -> bool:
    """Tell whether the sort keys can be computed from the projection."""
    return all(mentioned_variables(each.expression) <= set(projection) for each in order)


def _keys(context: Context, relation: Relation, order: Sequence[Order]) -> tuple[Relation, list[exp.Ordered]]:
    """Return the sort keys as plain expressions over the relation."""
    relation = context.build.without_lets(relation) if order else relation
    named = list[tuple[str, bool]]()
    for index, each in enumerate(order):
        name = each.expression.name if isinstance(each.expression, Var) else f".o{index}"
        if not isinstance(each.expression, Var):
            relation = extend_relation(context, relation, name, each.expression)
        named.append((name, each.descending))
    values = [(relation.values.get(name, Value()), descending) for name, descending in named]
    keys = [_ordered(key, descending) for value, descending in values for key in order_keys(value)]
    # equal values are ordered by text, so that the order is deterministic
    keys += [_ordered(value.text(), False) for value, _ in values]
    return relation, [key for key in keys if _orders(key.this)]


def _orders(key: Sql) -> bool:
    """Tell whether a key orders anything: a constant does not, and engines read a number as the position of a
    column."""
    return key.find(exp.Column) is not None


def _ordered(key: Sql, descending: bool) -> exp.Ordered:
    return exp.Ordered(this=key, desc=descending, nulls_first=not descending)


def _ordered_first(
    context: Context, relation: Relation, select: Select, order: Sequence[Order]
) -> tuple[Relation, list[exp.Ordered]]:
    """Compile DISTINCT after ORDER BY of unprojected values: each solution is placed where the first of its rows would
    be."""
    relation, keys = _keys(context, relation, order)
    projected = _project(context, relation, select)
    texts = [value.text() for value in projected.values.values()]
    by = [*(each for each in texts if _orders(each)), *relation.keys.values()]
    least: dict[str, Value] = {
        f".least{index}": SqlValue((exp.Max if key.args["desc"] else exp.Min)(this=key.this))
        for index, key in enumerate(keys)
    }

    def rendering(relation: Relation, columns: OutputColumns) -> exp.Query:
        return render_select(relation, columns).group_by(*by, copy=False)

    closed = context.build.close(replace(projected.with_values(**least), rows="set"), rendering)
    first = [_ordered(closed.values[name].text(), key.args["desc"]) for name, key in zip(least, keys, strict=True)]
    return closed.project([*projected.values]), first


def _cut(query: exp.Select, keys: list[exp.Ordered], select: Select) -> exp.Select:
    query = query.order_by(*keys, copy=False) if keys else query
    query = query if select.limit is None else query.limit(select.limit, copy=False)
    return query.offset(select.offset, copy=False) if select.offset else query


def _sliced_each(
    context: Context, relation: Relation, keys: list[exp.Ordered], select: Select, *, last: bool
) -> Relation:
    """Slice within each row of the frame, by row number. Without ORDER BY the texts give a deterministic order; the
    number stays as the rank in the last SELECT, if there is an order."""
    texts = [_ordered(value.text(), False) for value in relation.values.values() if not is_null(value.text())]
    by = [*keys, *texts] if context.build.steady else keys or texts
    numbered = sql.row_number([*relation.keys.values()], by)
    ranked = context.build.close(replace(relation, keys={**relation.keys, RANK_KEY: numbered}))
    rank = ranked.keys[RANK_KEY]
    bounds: list[Sql] = [exp.GT(this=rank, expression=number(select.offset))] if select.offset else []
    if select.limit is not None:
        bounds.append(exp.LTE(this=rank, expression=number(select.offset + select.limit)))
    kept = {name: key for name, key in ranked.keys.items() if name != RANK_KEY or (last and keys)}
    return replace(ranked, keys=kept).where(*bounds)


TRIPLE_COLUMNS = ("subject", "predicate", "object")


def compile_form(query: Query, context: Context) -> exp.Query:
    """The query itself, without the named relations that it reads."""
    return _FORMS[query.form](query, context)


def _select(query: Query, context: Context) -> exp.Query:
    select = query.where
    assert isinstance(select, Select)
    return compile_final_select(
        context,
        select,
        lambda relation: {
            f"v{index}": text_column(relation.values[name]) for index, name in enumerate(query.projection)
        },
    )


def _ask(query: Query, context: Context) -> exp.Query:
    relation = context.uncounted().compile(query.where)
    found = render_select(relation, {}).limit(1, copy=False)
    answer = exp.GT(this=exp.Count(this=exp.Star()), expression=number(0))
    return exp.select(exp.alias_(answer, "answer")).from_(found.subquery("solutions", copy=False), copy=False)


def _construct(query: Query, context: Context) -> exp.Query:
    """Each solution once for each triple of the template, then each triple once."""
    fresh = any(name.startswith("_:") for each in query.template for name in pattern_variables(each))
    assert isinstance(query.where, Select)
    counted = fresh or query.where.limit is not None
    relation = compile_select(context if counted else context.uncounted(), query.where)
    if fresh:
        settled = context.build.settle(relation)
        relation = context.build.close(replace(settled, keys={"row": _number_solutions(context, settled)}))
    if not query.template:
        return _triples(relation.where(exp.false()), [exp.Null() for _ in TRIPLE_COLUMNS])
    structs = [_struct(relation, pattern) for pattern in query.template]
    exploded = render_select(relation, {"t": call("TW_EXPLODE", *structs)})
    parts = [
        exp.alias_(exp.Dot(this=sql.column("x", "t"), expression=exp.to_identifier(name)), name)
        for name in TRIPLE_COLUMNS
    ]
    found = exp.select(*parts).from_(exploded.subquery("x", copy=False), copy=False)
    return _sort_triples(context, _valid(found).distinct(copy=False))


def _sort_triples(context: Context, triples: exp.Select) -> exp.Select:
    """Order by texts, if the result must be deterministic."""
    if context.build.steady:
        return triples.order_by(*(exp.column(name) for name in TRIPLE_COLUMNS), copy=False)
    return triples


def _number_solutions(context: Context, relation: Relation) -> Sql:
    """Number the solutions, for the blank nodes of the template."""
    if not context.build.steady:
        return sql.row_number()
    texts = [value.text() for value in relation.values.values()]
    return sql.row_number(order=[exp.Ordered(this=each) for each in texts if each.find(exp.Column) is not None])


def _struct(relation: Relation, pattern: Pattern) -> Sql:
    nodes = pattern.triple
    parts = [
        exp.PropertyEQ(this=exp.to_identifier(name), expression=_template_term(relation, node))
        for name, node in zip(TRIPLE_COLUMNS, nodes, strict=True)
    ]
    return exp.Struct(expressions=parts)


def _template_term(relation: Relation, node: Node) -> Sql:
    if isinstance(node, Const):
        return text(node.term)
    assert isinstance(node, Var)
    if node.name.startswith("_:"):
        label = "".join(each if each.isalnum() else f"x{ord(each):x}" for each in node.name[2:])
        return sql.concat(text(f"_:{label}n"), cast(relation.keys["row"], sql.VARCHAR))
    return text_column(relation.values.get(node.name, Value()))


def _valid(triples: exp.Select) -> exp.Select:
    """Keep only triples: all parts bound, the subject no literal, the predicate an IRI."""
    outer = exp.select(*(exp.column(name) for name in TRIPLE_COLUMNS)).from_(
        triples.subquery("y", copy=False), copy=False
    )
    literal = call("TW_STARTS", exp.column("subject"), text('"'))
    iri = call("TW_STARTS", exp.column("predicate"), text("<"))
    return outer.where(
        every(*(sql.present(exp.column(name)) for name in TRIPLE_COLUMNS), exp.Not(this=literal), iri), copy=False
    )


def _triples(relation: Relation, parts: Sequence[Sql]) -> exp.Select:
    return render_select(
        relation, {name: cast(part, sql.VARCHAR) for name, part in zip(TRIPLE_COLUMNS, parts, strict=True)}
    )


def _describe(query: Query, context: Context) -> exp.Query:
    """All triples of which a resource is the subject, and, if it is an event, all of that."""
    alias = context.build.alias("q")
    quads = Relation().join(TableSource("quads", alias))
    terms = [node.term for node in query.described if isinstance(node, Const)]
    wanted = [sql.among(sql.column(alias, end), terms) for end in ("subject", "graph")] if terms else []
    names = [node.name for node in query.described if isinstance(node, Var)]
    if names:
        wanted += _among_solutions(query, context, names, alias)
    select = render_select(quads.where(some(*wanted)), {name: sql.column(alias, name) for name in TRIPLE_COLUMNS})
    return _sort_triples(context, select.distinct(copy=False))


def _among_solutions(query: Query, context: Context, names: list[str], alias: str) -> list[Sql]:
    assert isinstance(query.where, Select)
    frame = context.build.share(compile_select(context, query.where))
    found: list[Sql] = []
    for name in names:
        relation = frame.read(context.build.alias("f"))
        inner = render_select(relation, {"term": text_column(relation.values[name])})
        found += [
            exp.In(this=sql.column(alias, end), query=inner.copy().subquery(copy=False)) for end in ("subject", "graph")
        ]
    return found


_FORMS: Mapping[str, Callable[[Query, Context], exp.Query]] = {
    "select": _select,
    "ask": _ask,
    "construct": _construct,
    "describe": _describe,
}
