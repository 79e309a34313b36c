"""Arithmetic: in decimals where both numbers are integers or decimals, else in floats or doubles.

`bind` names a value that is used more than once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from sqlglot import exp

from triplewire.sparql.algebra import Family
from triplewire.sparql.compile.computed import Number
from triplewire.sparql.compile.sql import (
    DECIMAL,
    DOUBLE,
    FLOAT,
    VARCHAR,
    Sql,
    binary,
    call,
    case,
    cast,
    compare,
    double,
    equal,
    is_null,
    null,
    number,
    present,
    text,
    try_cast,
    wrap,
)
from triplewire.sparql.compile.values import NUMERIC, Value

Bind: TypeAlias = Callable[[Sql], Sql]

_FRACTION = exp.DataType.build("DECIMAL(18, 18)")
_WHOLE = exp.DataType.build("DECIMAL(19, 0)")
_RISING = (Family.EXACT, Family.FLOAT, Family.DOUBLE)


def arithmetic(op: str, values: list[Value], bind: Bind) -> Value:
    """The result of `+`, `-`, `*` or `/`, unary or binary; an error for anything but numbers."""
    if not all(value.families & NUMERIC for value in values):
        return Value()
    parts = [named(value, bind) for value in values]
    return _unary(op, parts[0], bind) if len(parts) == 1 else _binary(op, parts[0], parts[1], bind)


def named(value: Value, bind: Bind) -> Number:
    """The parts of a number under names."""
    parts = (bind(value.rank()), bind(value.exact()), bind(value.number()))
    return Number(*parts, value.families & NUMERIC)


def _unary(op: str, value: Number, bind: Bind) -> Value:
    if op == "+":
        return value
    exact = value.exact() if is_null(value.exact()) else exp.Neg(this=value.exact())
    return Number(value.rank(), bind(exact), bind(exp.Neg(this=wrap(value.number()))), value.families)


def _binary(op: str, left: Number, right: Number, bind: Bind) -> Value:
    families = frozenset(max(one, other, key=_RISING.index) for one in left.families for other in right.families)
    rank = _highest(left.rank(), right.rank(), *([number(2)] if op == "/" else []))
    exact = bind(_EXACT[op](left.exact(), right.exact(), bind)) if Family.EXACT in families else null()
    floating = _IN_DOUBLES[op](left.number(), right.number())
    rounded = _single(_IN_DOUBLES[op](_as_float(left), _as_float(right)))
    in_floats = equal(rank, number(3)) if Family.FLOAT in families else exp.false()
    in_decimals = compare("<=", rank, number(2)) if Family.EXACT in families else exp.false()
    made = case((in_decimals, cast(exact, DOUBLE)), (in_floats, rounded), default=floating)
    return Number(bind(rank), exact, bind(made), families)


def _as_float(value: Number) -> Sql:
    """A number as it is when it meets a float; a float is one already."""
    return _single(value.number()) if Family.EXACT in value.families else value.number()


def _single(value: Sql) -> Sql:
    return cast(try_cast(value, FLOAT), DOUBLE)


def _highest(*ranks: Sql) -> Sql:
    """The rank of the result. Where a rank is NULL the result is too, whatever this says."""
    known = [each for each in ranks if isinstance(each, exp.Literal)]
    return max(known, key=lambda each: int(each.this)) if len(known) == len(ranks) else call("GREATEST", *ranks)


def _add(left: Sql, right: Sql, _: Bind) -> Sql:
    return try_cast(binary(exp.Add, left, right), DECIMAL)


def _subtract(left: Sql, right: Sql, _: Bind) -> Sql:
    return try_cast(binary(exp.Sub, left, right), DECIMAL)


def _multiply(left: Sql, right: Sql, bind: Bind) -> Sql:
    """By parts, because the plain product of two such decimals has more digits than engines hold."""
    if is_null(left) or is_null(right):
        return null()
    (a, b), (c, d) = _parts(left, bind), _parts(right, bind)
    products = [try_cast(binary(exp.Mul, one, other), DECIMAL) for one, other in ((a, c), (a, d), (b, c), (b, d))]
    total = products[0]
    for product in products[1:]:
        total = _add(total, product, bind)
    return total


def _parts(value: Sql, bind: Bind) -> tuple[Sql, Sql]:
    whole = bind(try_cast(call("TW_TRUNCATE", value), _WHOLE))
    return whole, bind(try_cast(binary(exp.Sub, value, whole), _FRACTION))


def _divide(left: Sql, right: Sql, bind: Bind) -> Sql:
    """A quotient of doubles, corrected once by its remainder; by zero it is an error."""
    if is_null(left) or is_null(right):
        return null()
    divisor = bind(case((compare("!=", right, number(0)), right)))
    rough = bind(_rough(left, divisor))
    rest = _subtract(left, _multiply(rough, right, bind), bind)
    return _add(rough, _rough(rest, divisor), bind)


def _rough(left: Sql, right: Sql) -> Sql:
    return try_cast(binary(exp.Div, cast(left, DOUBLE), cast(right, DOUBLE)), DECIMAL)


_EXACT: Mapping[str, Callable[[Sql, Sql, Bind], Sql]] = {"+": _add, "-": _subtract, "*": _multiply, "/": _divide}


def _quotient(left: Sql, right: Sql) -> Sql:
    """Engines differ on division by zero, so it is spelled out."""
    if is_null(left) or is_null(right):
        return null()
    signed = equal(cast(right, VARCHAR), text("-0.0"))
    rising, falling = double(float("inf")), double(float("-inf"))
    by_zero = case(
        (exp.IsNan(this=left), double(float("nan"))),
        (compare(">", left, double(0.0)), case((signed, falling), default=rising)),
        (compare("<", left, double(0.0)), case((signed.copy(), rising.copy()), default=falling.copy())),
        (present(left), double(float("nan"))),
    )
    return case((equal(right, double(0.0)), by_zero), (present(left), binary(exp.Div, left, right)))


_IN_DOUBLES: Mapping[str, Callable[[Sql, Sql], Sql]] = {
    "+": lambda left, right: binary(exp.Add, left, right),
    "-": lambda left, right: binary(exp.Sub, left, right),
    "*": lambda left, right: binary(exp.Mul, left, right),
    "/": _quotient,
}
