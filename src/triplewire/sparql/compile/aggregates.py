"""Aggregates: the set functions of SPARQL as aggregate functions of SQL, for a SELECT with GROUP BY.

An error in the argument, or no value, makes SUM, AVG, MIN, MAX and GROUP_CONCAT an error; COUNT and SAMPLE pass it
over. GROUP_CONCAT joins what STR gives.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from triplewire.model.terms import XSD
from triplewire.sparql.algebra import Family
from triplewire.sparql.compile.columns import Derived, Stored
from triplewire.sparql.compile.computed import Number, Text
from triplewire.sparql.compile.orders import total_order_keys
from triplewire.sparql.compile.sql import (
    DECIMAL,
    DOUBLE,
    FLOAT,
    Sql,
    call,
    case,
    cast,
    coalesce,
    compare,
    equal,
    every,
    is_null,
    is_true,
    null,
    number,
    present,
    text,
    truth,
    try_cast,
)
from triplewire.sparql.compile.values import NUMERIC, Value, facet_of

_FLOATING = frozenset({Family.FLOAT, Family.DOUBLE})


def aggregate(
    op: str, value: Value | None, *, separator: str = " ", among: Sql | None = None, steady: bool = False
) -> Value:
    """The value of a set function over a group; of all rows if there is no value, which only COUNT allows.

    `among` is a condition for the rows that count. If `steady`, nothing depends on the order of rows.
    """
    rows = _Rows(truth(True) if among is None else among, steady)
    if value is None:
        return _whole(rows.all())
    match op:
        case "count":
            return _whole(rows.count(value))
        case "sum" | "avg":
            return _numeric(op, value, rows)
        case "group_concat":
            return _joined(value, separator, rows)
    return _chosen(op, value, rows)


@dataclass(frozen=True)
class _Rows:
    """The rows of a group that count."""

    among: Sql
    steady: bool = False

    def only(self, sql: Sql) -> Sql:
        return case((self.among, sql))

    def all(self) -> Sql:
        return exp.Count(this=exp.Star() if is_true(self.among) else self.only(number(1)))

    def of(self, sql: Sql) -> Sql:
        """How many are not NULL."""
        return number(0) if is_null(sql) else exp.Count(this=self.only(sql))

    def count(self, value: Value) -> Sql:
        if is_true(value.bound()):
            return self.all()
        return exp.Count(this=case((every(self.among, value.bound()), number(1))))


def _whole(count: Sql) -> Value:
    return Number(number(1), cast(count, DECIMAL), cast(count, DOUBLE), frozenset({Family.EXACT}))


@dataclass(frozen=True)
class Summed(Number):
    """A sum or mean: `floating` is its value where it is not exact, which is all that its text needs then."""

    floating: Sql = field(default_factory=null)

    def _digits(self, name: str) -> Sql:
        return Number(self.made_rank, self.made_exact, self.floating, self.families)._digits(name)


def _numeric(op: str, value: Value, rows: _Rows) -> Value:
    """SUM and AVG: as the highest type in the group; exactly, if that is a decimal."""
    count = rows.all()
    families = (value.families & NUMERIC) | {Family.EXACT}
    rank = _rank(op, value, rows, count)
    exact = _checked(value, rows, _exact(op, value, rows, count))
    floating = _checked(value, rows, _floating(op, value, rows, rank))
    both = case((compare("<=", rank, number(2)), cast(exact, DOUBLE)), default=floating)
    return Summed(rank, exact, both if value.families & _FLOATING else cast(exact, DOUBLE), families, floating)


def _checked(value: Value, rows: _Rows, made: Sql) -> Sql:
    """An error if one of the group is no number."""
    if is_null(made) or (value.families <= NUMERIC and is_true(value.bound())):
        return made
    return case((equal(rows.of(value.number()), rows.all()), made))


def _rank(op: str, value: Value, rows: _Rows, count: Sql) -> Sql:
    """Of the highest type; an average of integers is a decimal, and nothing at all is the integer 0."""
    kinds = [(name, rank) for name, rank, family in _KINDS if family in value.families]
    told = kinds if op == "sum" else [(name, rank) for name, rank in kinds if rank > 2]
    branches = [(_any(rows, _has_type(value, name)), number(rank)) for name, rank in told]
    if len(kinds) == 1 and value.families <= NUMERIC and (op == "avg" or kinds[0][1] > 2):
        branches = [(compare(">", count, number(0)), number(kinds[0][1]))]
    elif op == "avg":
        branches.append((compare(">", count, number(0)), number(2)))
    return case(*branches, default=number(1))


_KINDS = (("double", 4, Family.DOUBLE), ("float", 3, Family.FLOAT), ("decimal", 2, Family.EXACT))


def _any(rows: _Rows, condition: Sql) -> Sql:
    return condition if is_null(condition) else call("BOOL_OR", every(rows.among, condition))


def _has_type(value: Value, name: str) -> Sql:
    """By the column of types, where there is one."""
    if isinstance(value, Number):
        return equal(value.rank(), number({kind: rank for kind, rank, _ in _KINDS}[name]))
    return equal(value.facet("datatype") if isinstance(value, Stored) else value.datatype(), text(XSD + name))


def _exact(op: str, value: Value, rows: _Rows, count: Sql) -> Sql:
    zero = cast(number(0), DECIMAL)
    if Family.EXACT not in value.families:
        return zero
    total = call("TW_SUM", rows.only(_digits(value)))
    # a number with more digits than are held makes no exact sum
    complete = equal(rows.of(_digits(value)), count)
    made = call("TW_MEAN", total, count) if op == "avg" else total
    return case((equal(count, number(0)), zero), (complete, made))


def _digits(value: Value) -> Sql:
    """The exact value. Types are told apart by their column, which is shorter than the text."""
    if not isinstance(value, Stored) or not value.families & _FLOATING:
        return value.exact()
    names = [text(XSD + name) for name in ("double", "float")]
    floating = exp.In(this=value.facet("datatype"), expressions=names)
    inner = value.narrowed(Family.EXACT).exact()
    return case((every(present(value.number()), exp.Not(this=floating)), inner))


def _floating(op: str, value: Value, rows: _Rows, rank: Sql) -> Sql:
    if not value.families & _FLOATING:
        return null()
    name = op.upper()
    made = call(f"TW_{name}_STEADY" if rows.steady else name, rows.only(value.number()))
    if Family.FLOAT not in value.families:
        return made
    return case((equal(rank, number(3)), cast(try_cast(made, FLOAT), DOUBLE)), default=made)


def _joined(value: Value, separator: str, rows: _Rows) -> Value:
    strings = value.string()
    if is_null(strings):
        return Text(case((equal(rows.all(), number(0)), text(""))))
    name = "TW_JOINED_STEADY" if rows.steady else "TW_JOINED"
    joined = coalesce(call(name, rows.only(strings), text(separator)), text(""))
    return Text(case((equal(rows.of(strings), rows.all()), joined)))


def _chosen(op: str, value: Value, rows: _Rows) -> Value:
    """MIN, MAX and SAMPLE: one of the terms, as it is."""
    if not value.families:
        return Value()
    keys = [value.text()] if op == "sample" else total_order_keys(value)
    key = call("TW_ROW", *keys) if len(keys) > 1 else keys[0]
    taken = case((every(rows.among, value.bound()), key))
    best = "TW_AT_MOST" if op == "max" else "TW_AT_LEAST"
    right = truth(True) if op == "sample" or is_true(value.bound()) else equal(rows.count(value), rows.all())

    def made(sql: Sql) -> Sql:
        return sql if is_null(sql) else case((right, call(best, sql, taken)))

    return Derived(
        families=value.families, made=made(value.text()), made_facet=lambda name: made(facet_of(value, name))
    )
