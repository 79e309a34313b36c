"""Arithmetic and rounding: in decimals where all operands are integers or decimals, otherwise in floats or doubles.

`bind` names a value that is used more than once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from sqlglot import exp

from triplewire.sparql import sql
from triplewire.sparql.algebra import Family
from triplewire.sparql.compiler.values import NUMERIC, ComputedNumber, Value
from triplewire.sparql.sql import Sql, call, case, cast, equal, every, is_null, null, number, text

BindSql: TypeAlias = Callable[[Sql], Sql]

_FRACTION = exp.DataType.build("DECIMAL(18, 18)")
_WHOLE = exp.DataType.build("DECIMAL(19, 0)")
_RISING = (Family.EXACT, Family.FLOAT, Family.DOUBLE)


def arithmetic(op: str, bind: BindSql, *values: Value) -> Value:
    """Compile `+`, `-`, `*` or `/`, unary or binary; an error for anything but numbers."""
    if not all(value.families & NUMERIC for value in values):
        return Value()
    parts = [bind_number(value, bind) for value in values]
    return _unary(op, parts[0], bind) if len(parts) == 1 else _binary(op, parts[0], parts[1], bind)


def bind_number(value: Value, bind: BindSql) -> ComputedNumber:
    parts = (bind(value.rank()), bind(value.exact()), bind(value.number()))
    return ComputedNumber(*parts, value.families & NUMERIC)


def _unary(op: str, value: ComputedNumber, bind: BindSql) -> Value:
    if op == "+":
        return value
    exact = value.exact() if is_null(value.exact()) else exp.Neg(this=value.exact())
    return ComputedNumber(value.rank(), bind(exact), bind(exp.Neg(this=sql.wrap(value.number()))), value.families)


def _binary(op: str, left: ComputedNumber, right: ComputedNumber, bind: BindSql) -> Value:
    families = frozenset(max(one, other, key=_RISING.index) for one in left.families for other in right.families)
    rank = _highest(left.rank(), right.rank(), *([number(2)] if op == "/" else []))
    exact = bind(_EXACT[op](left.exact(), right.exact(), bind)) if Family.EXACT in families else null()
    floating = _IN_DOUBLES[op](left.number(), right.number())
    rounded = _single(_IN_DOUBLES[op](_as_float(left), _as_float(right)))
    in_floats = equal(rank, number(3)) if Family.FLOAT in families else exp.false()
    in_decimals = sql.compare("<=", rank, number(2)) if Family.EXACT in families else exp.false()
    made = case((in_decimals, cast(exact, sql.DOUBLE)), (in_floats, rounded), default=floating)
    return ComputedNumber(bind(rank), exact, bind(made), families)


def _as_float(value: ComputedNumber) -> Sql:
    """A number as it is when it meets a float; a float is one already."""
    return _single(value.number()) if Family.EXACT in value.families else value.number()


def _single(value: Sql) -> Sql:
    return cast(sql.try_cast(value, sql.FLOAT), sql.DOUBLE)


def _highest(*ranks: Sql) -> Sql:
    """The rank of the result. Where a rank is NULL the result is too, whatever this says."""
    known = [each for each in ranks if isinstance(each, exp.Literal)]
    return max(known, key=lambda each: int(each.this)) if len(known) == len(ranks) else call("GREATEST", *ranks)


def _add(left: Sql, right: Sql, _: BindSql) -> Sql:
    return sql.try_cast(sql.binary(exp.Add, left, right), sql.DECIMAL)


def _subtract(left: Sql, right: Sql, _: BindSql) -> Sql:
    return sql.try_cast(sql.binary(exp.Sub, left, right), sql.DECIMAL)


def _multiply(left: Sql, right: Sql, bind: BindSql) -> Sql:
    """Multiply by parts, because the plain product of two such decimals has more digits than engines hold."""
    if is_null(left) or is_null(right):
        return null()
    (a, b), (c, d) = _parts(left, bind), _parts(right, bind)
    products = [
        sql.try_cast(sql.binary(exp.Mul, one, other), sql.DECIMAL) for one, other in ((a, c), (a, d), (b, c), (b, d))
    ]
    total = products[0]
    for product in products[1:]:
        total = _add(total, product, bind)
    return total


def _parts(value: Sql, bind: BindSql) -> tuple[Sql, Sql]:
    whole = bind(sql.try_cast(call("TW_TRUNCATE", value), _WHOLE))
    return whole, bind(sql.try_cast(sql.binary(exp.Sub, value, whole), _FRACTION))


def _divide(left: Sql, right: Sql, bind: BindSql) -> Sql:
    """Divide as doubles, and correct the quotient once by its remainder; division by zero is an error."""
    if is_null(left) or is_null(right):
        return null()
    divisor = bind(case((sql.compare("!=", right, number(0)), right)))
    rough = bind(_rough(left, divisor))
    rest = _subtract(left, _multiply(rough, right, bind), bind)
    return _add(rough, _rough(rest, divisor), bind)


def _rough(left: Sql, right: Sql) -> Sql:
    return sql.try_cast(sql.binary(exp.Div, cast(left, sql.DOUBLE), cast(right, sql.DOUBLE)), sql.DECIMAL)


_EXACT: Mapping[str, Callable[[Sql, Sql, BindSql], Sql]] = {"+": _add, "-": _subtract, "*": _multiply, "/": _divide}


def _quotient(left: Sql, right: Sql) -> Sql:
    """Divide doubles. Engines differ on division by zero, so it is spelled out."""
    if is_null(left) or is_null(right):
        return null()
    signed = equal(cast(right, sql.VARCHAR), text("-0.0"))
    rising, falling = sql.double(float("inf")), sql.double(float("-inf"))
    by_zero = case(
        (exp.IsNan(this=left), sql.double(float("nan"))),
        (sql.compare(">", left, sql.double(0.0)), case((signed, falling), default=rising)),
        (sql.compare("<", left, sql.double(0.0)), case((signed.copy(), rising.copy()), default=falling.copy())),
        (sql.present(left), sql.double(float("nan"))),
    )
    return case((equal(right, sql.double(0.0)), by_zero), (sql.present(left), sql.binary(exp.Div, left, right)))


_IN_DOUBLES: Mapping[str, Callable[[Sql, Sql], Sql]] = {
    "+": lambda left, right: sql.binary(exp.Add, left, right),
    "-": lambda left, right: sql.binary(exp.Sub, left, right),
    "*": lambda left, right: sql.binary(exp.Mul, left, right),
    "/": _quotient,
}

_HALF = exp.DataType.build("DECIMAL(2, 1)")


def make_rounding(name: str) -> Callable[[BindSql, Value], Value]:
    exactly, floating = _MAKERS[name]

    def compile_rounding(bind: BindSql, value: Value) -> Value:
        if not value.families & NUMERIC:
            return Value()
        given = bind_number(value, bind)
        exact = null() if is_null(given.exact()) else bind(sql.try_cast(exactly(given.exact()), sql.DECIMAL))
        return ComputedNumber(given.rank(), exact, bind(_number(given, exact, floating)), given.families)

    return compile_rounding


def _number(given: ComputedNumber, exact: Sql, floating: Callable[[Sql], Sql]) -> Sql:
    """Return the number as a double. An exact number with too many digits is an error."""
    in_decimals = given.among(Family.EXACT)
    made = case((sql.present(exact), floating(given.number())))
    if is_null(exact):
        return floating(given.number())
    return case((in_decimals, made), default=floating(given.number()))


def _round_double(value: Sql) -> Sql:
    """Round to the nearest, a half up; a number that is rounded up to zero from below becomes negative zero."""
    low = call("TW_FLOOR", value)
    up = sql.compare(">=", sql.binary(exp.Sub, value, low), sql.double(0.5))
    made = case((up, sql.binary(exp.Add, low, sql.double(1.0))), default=low)
    minus = every(sql.compare("<", value, sql.double(0.0)), sql.compare(">=", value, sql.double(-0.5)))
    # infinity less itself is no number, which is no half either way
    return case((minus, sql.double(-0.0)), (equal(low, value), value), default=made)


def _round_exact(value: Sql) -> Sql:
    half = exp.Cast(this=exp.Literal.string("0.5"), to=_HALF.copy())
    return call("FLOOR", sql.binary(exp.Add, value, half))


_MAKERS: dict[str, tuple[Callable[[Sql], Sql], Callable[[Sql], Sql]]] = {
    "abs": (lambda value: exp.Abs(this=value), lambda value: exp.Abs(this=value)),
    "ceil": (lambda value: call("CEIL", value), lambda value: call("TW_CEIL", value)),
    "floor": (lambda value: call("FLOOR", value), lambda value: call("TW_FLOOR", value)),
    "round": (_round_exact, _round_double),
}


def random_number(bind: BindSql, serial: int) -> Value:
    """Compile RAND: another number in each solution, and for each call."""
    return ComputedNumber(number(4), null(), bind(call("TW_RANDOM", number(serial))), frozenset({Family.DOUBLE}))
