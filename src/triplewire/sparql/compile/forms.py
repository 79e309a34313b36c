"""Forms: the four kinds of query, each as one SELECT over the solutions of its pattern."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from triplewire.sparql.algebra import Const, Node, Pattern, Query, Select, Var
from triplewire.sparql.compile.contexts import Context
from triplewire.sparql.compile.modifiers import finished, modified
from triplewire.sparql.compile.relations import Joined, Relation, Table, rendered, text_of
from triplewire.sparql.compile.sql import (
    VARCHAR,
    Sql,
    among,
    call,
    cast,
    column,
    concat,
    every,
    number,
    present,
    row_number,
    some,
    text,
)
from triplewire.sparql.compile.values import Value
from triplewire.sparql.variables import of_pattern

TRIPLE = ("subject", "predicate", "object")


def formed(query: Query, context: Context) -> exp.Query:
    """The query itself, without the named relations that it reads."""
    return _FORMS[query.form](query, context)


def _select(query: Query, context: Context) -> exp.Query:
    select = query.where
    assert isinstance(select, Select)
    return finished(
        context,
        select,
        lambda relation: {f"v{index}": text_of(relation.values[name]) for index, name in enumerate(query.projection)},
    )


def _ask(query: Query, context: Context) -> exp.Query:
    relation = context.uncounted().compile(query.where)
    found = rendered(relation, {}).limit(1, copy=False)
    answer = exp.GT(this=exp.Count(this=exp.Star()), expression=number(0))
    return exp.select(exp.alias_(answer, "answer")).from_(found.subquery("solutions", copy=False), copy=False)


def _construct(query: Query, context: Context) -> exp.Query:
    """Each solution once for each triple of the template, then each triple once."""
    fresh = any(name.startswith("_:") for each in query.template for name in of_pattern(each))
    assert isinstance(query.where, Select)
    counted = fresh or query.where.limit is not None
    relation = modified(context if counted else context.uncounted(), query.where)
    if fresh:
        settled = context.build.settled(relation)
        relation = context.build.closed(replace(settled, keys={"row": _numbered(context, settled)}))
    if not query.template:
        return _triples(relation.where(exp.false()), [exp.Null() for _ in TRIPLE])
    structs = [_struct(relation, pattern) for pattern in query.template]
    exploded = rendered(relation, {"t": call("TW_EXPLODE", *structs)})
    parts = [exp.alias_(exp.Dot(this=column("x", "t"), expression=exp.to_identifier(name)), name) for name in TRIPLE]
    found = exp.select(*parts).from_(exploded.subquery("x", copy=False), copy=False)
    return _sorted(context, _valid(found).distinct(copy=False))


def _sorted(context: Context, triples: exp.Select) -> exp.Select:
    """In the order of texts, where every order is to be told."""
    return triples.order_by(*(exp.column(name) for name in TRIPLE), copy=False) if context.build.steady else triples


def _numbered(context: Context, relation: Relation) -> Sql:
    """Which solution it is."""
    if not context.build.steady:
        return row_number()
    texts = [value.text() for value in relation.values.values()]
    return row_number(order=[exp.Ordered(this=each) for each in texts if each.find(exp.Column) is not None])


def _struct(relation: Relation, pattern: Pattern) -> Sql:
    nodes = (pattern.subject, pattern.predicate, pattern.object)
    parts = [
        exp.PropertyEQ(this=exp.to_identifier(name), expression=_made(relation, node))
        for name, node in zip(TRIPLE, nodes, strict=True)
    ]
    return exp.Struct(expressions=parts)


def _made(relation: Relation, node: Node) -> Sql:
    if isinstance(node, Const):
        return text(node.term)
    assert isinstance(node, Var)
    if node.name.startswith("_:"):
        label = "".join(each if each.isalnum() else f"x{ord(each):x}" for each in node.name[2:])
        return concat(text(f"_:{label}n"), cast(relation.keys["row"], VARCHAR))
    return text_of(relation.values.get(node.name, Value()))


def _valid(triples: exp.Select) -> exp.Select:
    """Only what is a triple: all parts there, the subject no literal, the predicate an IRI."""
    outer = exp.select(*(exp.column(name) for name in TRIPLE)).from_(triples.subquery("y", copy=False), copy=False)
    literal = call("TW_STARTS", exp.column("subject"), text('"'))
    iri = call("TW_STARTS", exp.column("predicate"), text("<"))
    return outer.where(every(*(present(exp.column(name)) for name in TRIPLE), exp.Not(this=literal), iri), copy=False)


def _triples(relation: Relation, parts: Sequence[Sql]) -> exp.Select:
    return rendered(relation, {name: cast(part, VARCHAR) for name, part in zip(TRIPLE, parts, strict=True)})


def _describe(query: Query, context: Context) -> exp.Query:
    """All triples of which a resource is the subject, and, if it is an event, all of that."""
    alias = context.build.alias("q")
    quads = Relation((Joined(Table("quads", alias)),))
    terms = [node.term for node in query.described if isinstance(node, Const)]
    wanted = [among(column(alias, place), terms) for place in ("subject", "graph")] if terms else []
    names = [node.name for node in query.described if isinstance(node, Var)]
    if names:
        wanted += _among_solutions(query, context, names, alias)
    select = rendered(quads.where(some(*wanted)), {name: column(alias, name) for name in TRIPLE})
    return _sorted(context, select.distinct(copy=False))


def _among_solutions(query: Query, context: Context, names: list[str], alias: str) -> list[Sql]:
    assert isinstance(query.where, Select)
    frame = context.build.share(modified(context, query.where))
    found: list[Sql] = []
    for name in names:
        relation = frame.read(context.build.alias("f"))
        inner = rendered(relation, {"term": text_of(relation.values[name])})
        found += [
            exp.In(this=column(alias, place), query=inner.copy().subquery(copy=False)) for place in ("subject", "graph")
        ]
    return found


_FORMS: Mapping[str, Callable[[Query, Context], exp.Query]] = {
    "select": _select,
    "ask": _ask,
    "construct": _construct,
    "describe": _describe,
}
