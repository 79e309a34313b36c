"""Bags: all values of a predicate together, held against the elements that a subscription asks for.

A value becomes a mask: a bit for each element that it can be paired with. A bag is then the list of its masks, and
one-to-one pairing is a question to that list.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from sqlglot import exp

from triplewire.model.errors import Unsupported
from triplewire.sparql.algebra import Bag
from triplewire.sparql.compile.contexts import Context
from triplewire.sparql.compile.members import members
from triplewire.sparql.compile.relations import Columns, Crossing, Joined, Relation, Table, rendered
from triplewire.sparql.compile.sql import (
    Sql,
    binary,
    call,
    case,
    cast,
    coalesce,
    column,
    compare,
    equal,
    every,
    number,
    present,
    truth,
)

_LONG = exp.DataType.build("BIGINT")
_MASK = ".mask"


def bagged(context: Context, bag: Bag) -> Relation:
    """One solution for each event, and subscription, whose bag is as it must be."""
    if context.frame is None or not context.events:
        raise Unsupported("a bag", hint="the values of one event are a bag, those of all events are not")
    alias = context.build.alias("m")
    relation = context.start()
    met = equal(column(alias, "position"), relation.keys["position"])
    name, member = members(context.build, bag.predicate.term, alias)
    relation = replace(relation, sources=(*relation.sources, Joined(Table(name, alias)))).where(met)
    relation = relation.having(**{bag.member: member})
    masked = relation.having(**{_MASK: Crossing(_mask(context, relation, bag))})
    return _grouped(context, context.build.closed(masked.only([_MASK])), bag)


def _mask(context: Context, relation: Relation, bag: Bag) -> Sql:
    """NULL for what is not in the bag."""
    scope = context.scope(relation)
    bits: Sql = number(0)
    for place, each in enumerate(bag.elements):
        bits = binary(exp.Add, bits, case((scope.holds(each), number(1 << place)), default=number(0)))
    return case((present(relation.values[bag.member].text()), cast(bits, _LONG)))


def _grouped(context: Context, relation: Relation, bag: Bag) -> Relation:
    by, condition = [*relation.keys.values()], _condition(bag, relation.values[_MASK].text())

    def grouping(grouped: Relation, columns: Columns) -> exp.Query:
        return rendered(grouped, columns).group_by(*by, copy=False).having(condition, copy=False)

    return context.build.closed(replace(relation, values={}, rows="set"), grouping)


def _condition(bag: Bag, mask: Sql) -> Sql:
    """What is cheap to see is looked at first: how many there are, and whether each has any partner at all."""
    sides, size = _SIDES[bag.relation], len(bag.elements)
    count = exp.Count(this=mask)
    possible = every(*_possible(sides, size, count, mask))
    if size < 2:
        return possible
    paired = equal(call("TW_PAIRED", call("TW_LIST", mask)), number(size) if sides.elements else count)
    return case((possible, paired), default=truth(False))


@dataclass(frozen=True)
class _Sides:
    """On which sides nothing may be left over."""

    values: bool
    elements: bool


_SIDES = {"#=": _Sides(True, True), "#<": _Sides(True, False), "#>": _Sides(False, True)}


def _possible(sides: _Sides, size: int, count: Sql, mask: Sql) -> Iterable[Sql]:
    if sides.values:
        yield compare("<=", count, number(size))
        yield coalesce(compare(">", call("MIN", mask), number(0)), truth(True))
    if sides.elements:
        yield compare(">=", count, number(size))
        yield equal(coalesce(call("BIT_OR", mask), number(0)), number((1 << size) - 1))
