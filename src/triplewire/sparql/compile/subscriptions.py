"""Subscriptions: any query on one event at a time, for a batch of events and all subscriptions of a shape.

A subscription's constants are variables to which the frame gives values, so the operators need not know of them.
Only pairs of event and subscription that have the patterns which every solution needs are looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from sqlglot import exp

from triplewire.sparql.algebra import (
    Bag,
    Basic,
    Extend,
    Family,
    Filter,
    Graph,
    Group,
    Join,
    LeftJoin,
    Minus,
    Operator,
    Param,
    Pattern,
    Query,
    Select,
    Var,
)
from triplewire.sparql.compile.computed import Moment
from triplewire.sparql.compile.conditions import CONSTANTS, parameter
from triplewire.sparql.compile.contexts import Build, Context, Frame
from triplewire.sparql.compile.definitions import defined
from triplewire.sparql.compile.leaves import matched
from triplewire.sparql.compile.modifiers import RANK, modified
from triplewire.sparql.compile.operators import operated
from triplewire.sparql.compile.relations import Joined, Relation, Table, distinct, rendered, text_of
from triplewire.sparql.compile.scans import STREAM
from triplewire.sparql.compile.sql import VARCHAR, Sql, call, cast, column, equal, number, text
from triplewire.sparql.compile.values import Value
from triplewire.sparql.parameters import NOW, parameters, variable, with_variables
from triplewire.sparql.variables import mentioned


def compile_subscription(query: Query, *, solutions: bool, stream: bool = False, alone: bool = False) -> exp.Query:
    """The query over the relations `quads` and `events`, which hold a batch, and `constants`.

    Gives `position, subscription` once for each pair that matches; with `solutions` also `terms`, a list of texts: for
    every solution its rank, as text by which they sort, and the term of each variable of the projection. With `stream`
    the constant after the last one of the query is the name, as a literal, of the stream that the event must be of.
    With `alone` no pairs are ruled out before: for one event and one subscription, on which that may be more work than
    the query itself.
    """
    constants = parameters(query)
    query = with_variables(query)
    build = Build(operated, shared={}, now=Value())
    context = Context(build, events=True)
    patterns = [
        *(() if alone else required(query.where)),
        *([Pattern(Var(".event"), STREAM, _stream(constants))] if stream else []),
    ]
    context = context.framed(_pairs(context, patterns, constants, now=NOW in mentioned(query.where)))
    if not solutions:
        relation = context.uncounted().compile(query.where)
        return defined(build, rendered(relation, _keys(relation)).distinct(copy=False))
    assert isinstance(query.where, Select)
    relation = build.simple(build.settled(modified(context, query.where, last=True)))
    taken = [_rank(relation), *(text_of(relation.values[name]) for name in query.projection)]
    columns = {**_keys(relation), "terms": call("TW_FLAT_LIST", *taken)}
    return defined(build, rendered(relation, columns).group_by(*_keys(relation).values(), copy=False))


def _keys(relation: Relation) -> dict[str, Sql]:
    return {name: relation.keys[name] for name in ("position", "subscription")}


def _rank(relation: Relation) -> Sql:
    """The place of a solution among those of its event, as text that sorts like the number; none without an order."""
    place = relation.keys.get(RANK)
    return text("") if place is None else call("LPAD", cast(place, VARCHAR), number(9), text("0"))


def _stream(constants: dict[int, Family | None]) -> Var:
    """The variable of one constant more."""
    index = max(constants, default=-1) + 1
    constants[index] = Family.STRING
    return Var(variable(index))


def _pairs(context: Context, patterns: list[Pattern], constants: Mapping[int, Family | None], *, now: bool) -> Frame:
    """Events and subscriptions that have all required patterns: the frame of everything else."""
    values: dict[str, Value] = {variable(index): parameter(Param(index, family)) for index, family in constants.items()}
    sources = (Joined(Table("constants", CONSTANTS)),)
    start = Relation(sources, values=values, keys={"subscription": column(CONSTANTS, "subscription")})
    relation = matched(context.uncounted(), tuple(patterns), start)
    if now or "position" not in relation.keys:
        relation = _with_event(context, relation)
    return context.build.share(relation.only([*values, NOW]), distinct)


def _with_event(context: Context, relation: Relation) -> Relation:
    """With the time at which the event came, which is now as far as it is concerned."""
    alias = context.build.alias("e")
    position = column(alias, "position")
    same = [equal(position, relation.keys["position"])] if "position" in relation.keys else []
    keys = {"position": position, **relation.keys}
    sources = (*relation.sources, Joined(Table("events", alias)))
    moment = Moment(column(alias, "received"))
    return replace(relation, sources=sources, keys=keys).where(*same).having(**{NOW: moment})


def required(where: Operator) -> Iterable[Pattern]:
    """The patterns without which a query has no solution. What it does not project of a sub-query is not the variable
    of that name around it, so these are left out."""
    return _required(where.inner if isinstance(where, Select) else where)


def _required(operator: Operator) -> Iterator[Pattern]:
    match operator:
        case Basic(patterns):
            yield from patterns
        case Bag(predicate, member=member):
            yield Pattern(Var(f"{member}.subject"), predicate, Var(f"{member}.object"))
        case Join(left, right):
            yield from _required(left)
            yield from _required(right)
        case LeftJoin(left) | Minus(left):
            yield from _required(left)
        case Filter(inner) | Extend(inner) | Graph(inner=inner):
            yield from _required(inner)
        case Group(inner, keys) if keys:
            yield from _required(inner)
