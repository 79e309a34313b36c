"""Assignments: the zone of each row of the table, as an expression of its columns in the words of any engine."""

from __future__ import annotations

from sqlglot import exp

from triplewire.lake.keys import NUMBER, TIME, double, micros_at, ordinal, place_of
from triplewire.lake.tilings import Tree
from triplewire.lake.transformations import Transformation
from triplewire.lake.zones import ZoneMap
from triplewire.sparql.compile import sql
from triplewire.sparql.compile.sql import Sql


def assignment(zones: ZoneMap, table: str | None = None) -> Sql:
    """The id of the zone of a row, of its columns `graph`, `subject`, `predicate`, `object`, `object_number` and
    `object_time`; qualified by the name of a table where one is given. `to_sql` writes it for an engine."""
    return _assigned(zones.tree, zones.transformation, table)


def under(dimension: str, bound: str, order: Transformation, table: str | None = None) -> Sql:
    """Is the key of a row under a bound?"""
    text = order.of_column(exp.column(dimension, table))
    plain = sql.compare("<", text, sql.text(bound))
    if dimension != "object":
        return plain
    number, time = (exp.column(f"object_{facet}", table) for facet in ("number", "time"))
    original = exp.column("object", table)
    return sql.case(
        (sql.present(number), _number_under(number, original, bound)),
        (sql.present(time), _time_under(time, original, bound)),
        default=plain,
    )


def _assigned(tree: Tree, order: Transformation, table: str | None) -> Sql:
    if isinstance(tree, str):
        return sql.text(tree)
    low, high = (_assigned(each, order, table) for each in (tree.low, tree.high))
    return sql.case((under(tree.dimension, tree.bound, order, table), low), default=high)


def _number_under(number: Sql, text: Sql, bound: str) -> Sql:
    if not bound.startswith(NUMBER):
        return sql.truth(bound > NUMBER)
    place, rest = place_of(bound)
    if place > ordinal(float("nan")):
        return sql.truth(True)
    if place < ordinal(float("-inf")):
        return sql.truth(False)
    return _pair_under(number, sql.double(double(place)), text, rest)


def _time_under(time: Sql, text: Sql, bound: str) -> Sql:
    if not bound.startswith(TIME):
        return sql.truth(bound > TIME)
    place, rest = place_of(bound)
    if place >= 1 << 64:
        return sql.truth(True)
    return _pair_under(sql.call("TW_MICROS", time), _whole(micros_at(place)), text, rest)


def _pair_under(value: Sql, bound: Sql, text: Sql, rest: str) -> Sql:
    """Is (value, text) under (bound, rest)?"""
    less = sql.compare("<", value, bound)
    if not rest:
        return less
    return sql.some(less, sql.every(sql.equal(value, bound), sql.compare("<", text, sql.text(rest))))


def _whole(value: int) -> Sql:
    """As a text that is cast: the least of all has no positive counterpart that an engine could negate."""
    return sql.cast(sql.text(str(value)), exp.DataType.build("BIGINT"))
