"""Roundings: ABS, CEIL, FLOOR and ROUND, which keep the type of a number."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from triplewire.sparql.algebra import Family
from triplewire.sparql.compile.arithmetic import Bind, named
from triplewire.sparql.compile.computed import Number
from triplewire.sparql.compile.sql import (
    DECIMAL,
    Sql,
    binary,
    call,
    case,
    compare,
    double,
    equal,
    every,
    is_null,
    null,
    number,
    present,
    try_cast,
)
from triplewire.sparql.compile.values import NUMERIC, Value

_HALF = exp.DataType.build("DECIMAL(2, 1)")


def rounding(name: str) -> Callable[[Bind, Value], Value]:
    exactly, floating = _MAKERS[name]

    def made(bind: Bind, value: Value) -> Value:
        if not value.families & NUMERIC:
            return Value()
        given = named(value, bind)
        exact = null() if is_null(given.exact()) else bind(try_cast(exactly(given.exact()), DECIMAL))
        return Number(given.rank(), exact, bind(_number(given, exact, floating)), given.families)

    return made


def _number(given: Number, exact: Sql, floating: Callable[[Sql], Sql]) -> Sql:
    """An exact number whose digits are not held is an error."""
    in_decimals = given.among(Family.EXACT)
    made = case((present(exact), floating(given.number())))
    if is_null(exact):
        return floating(given.number())
    return case((in_decimals, made), default=floating(given.number()))


def _rounded(value: Sql) -> Sql:
    """To the nearest, a half up; what is rounded up to zero from below is a negative zero."""
    low = call("TW_FLOOR", value)
    up = compare(">=", binary(exp.Sub, value, low), double(0.5))
    made = case((up, binary(exp.Add, low, double(1.0))), default=low)
    minus = every(compare("<", value, double(0.0)), compare(">=", value, double(-0.5)))
    # infinity less itself is no number, which is no half either way
    return case((minus, double(-0.0)), (equal(low, value), value), default=made)


def _exact_rounded(value: Sql) -> Sql:
    half = exp.Cast(this=exp.Literal.string("0.5"), to=_HALF.copy())
    return call("FLOOR", binary(exp.Add, value, half))


_MAKERS: dict[str, tuple[Callable[[Sql], Sql], Callable[[Sql], Sql]]] = {
    "abs": (lambda value: exp.Abs(this=value), lambda value: exp.Abs(this=value)),
    "ceil": (lambda value: call("CEIL", value), lambda value: call("TW_CEIL", value)),
    "floor": (lambda value: call("FLOOR", value), lambda value: call("TW_FLOOR", value)),
    "round": (_exact_rounded, _rounded),
}


def random(bind: Bind, serial: int) -> Value:
    """RAND: another number in each solution, and for each call."""
    return Number(number(4), null(), bind(call("TW_RANDOM", number(serial))), frozenset({Family.DOUBLE}))
