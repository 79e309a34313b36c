"""Numbers: compared after promotion from integer over decimal and float to double, exactly where SPARQL is exact.

Doubles are monotone: x > y follows from dbl(x) > dbl(y), and only where both doubles are equal and one of the
numbers has more digits than a double holds are the exact values looked at.
"""

from __future__ import annotations

from sqlglot import exp

from triplewire.sparql.algebra import Family
from triplewire.sparql.compile.columns import Stored
from triplewire.sparql.compile.computed import Number
from triplewire.sparql.compile.lexicals import digits
from triplewire.sparql.compile.sql import (
    FLOAT,
    Sql,
    call,
    case,
    compare,
    concat,
    double,
    equal,
    every,
    is_false,
    negate,
    number,
    some,
    text,
    truth,
    try_cast,
    wrap,
)
from triplewire.sparql.compile.statics import Known, as_float
from triplewire.sparql.compile.values import Value

_FINE_FRACTION = exp.DataType.build("DECIMAL(38, 38)")
_LONG_WHOLE = exp.DataType.build("DECIMAL(38, 0)")
_SLACK = 2.0**-23
"""Rounding to xsd:float moves a number by less than this, relatively."""


def compare_numbers(op: str, left: Value, right: Value) -> Sql:
    """TRUE, FALSE, or NULL if one of them is not a number."""
    if op == "!=":
        return negate(compare_numbers("=", left, right))
    precise = _promoted(op, left, right)
    bound = _bound(op, left, right)
    return precise if bound is None else every(bound, precise)


def _promoted(op: str, left: Value, right: Value) -> Sql:
    core = _as_doubles(op, left, right)
    if not _may_meet_as_floats(left, right):
        return core
    rounded = compare(op, try_cast(left.number(), FLOAT), try_cast(right.number(), FLOAT))
    return case((_meet_as_floats(left, right), every(rounded, _ordered(op, left, right))), default=core)


def _as_doubles(op: str, left: Value, right: Value) -> Sql:
    """As doubles, and exactly where both are exact and the doubles do not tell."""
    plain = every(compare(op, left.number(), right.number()), _ordered(op, left, right))
    long = some(left.long(), right.long())
    if not (Family.EXACT in left.families and Family.EXACT in right.families) or is_false(long):
        return plain
    tie = every(equal(left.number(), right.number()), long, left.among(Family.EXACT), right.among(Family.EXACT))
    exact = exp.Coalesce(this=_exactly(op, left, right), expressions=[truth("=" in op)])
    return case((tie, exact), default=plain)


def _ordered(op: str, left: Value, right: Value) -> Sql:
    """Engines hold NaN equal to itself and above all else; SPARQL holds that nothing compares to it."""
    suspect = right if op in ("<", "<=") else left
    if not suspect.families & {Family.FLOAT, Family.DOUBLE}:
        return truth(True)
    if isinstance(suspect, Known) and suspect.static.number == suspect.static.number:
        return truth(True)
    return negate(exp.IsNan(this=suspect.number()))


def _may_meet_as_floats(left: Value, right: Value) -> bool:
    """Can one be a float and the other a number of lower rank, so that both are compared as floats?"""
    for one, other in ((left, right), (right, left)):
        if Family.FLOAT in one.families and Family.EXACT in other.families and not _is_float(other):
            return True
    return False


def _is_float(value: Value) -> bool:
    """A constant that rounding to a float does not change."""
    return isinstance(value, Known) and value.static.number is not None and _unrounded(value.static.number)


def _unrounded(value: float) -> bool:
    return as_float(value) == value


def _meet_as_floats(left: Value, right: Value) -> Sql:
    pairs = ((left, right), (right, left))
    return some(*(every(one.among(Family.FLOAT), other.among(Family.EXACT)) for one, other in pairs))


def _bound(op: str, left: Value, right: Value) -> Sql | None:
    """A simple comparison of columns that follows from the precise one, for hash joins, ranges and statistics."""
    if isinstance(left, Number) or isinstance(right, Number):
        return None
    if op == "=" and _may_meet_as_floats(left, right):
        return _near(left, right) if isinstance(right, Known) and right.families == {Family.EXACT} else None
    strict = {"<": "<=", ">": ">="}.get(op, op)
    if op in ("<", ">", "=") or not _may_meet_as_floats(left, right):
        return compare(strict, left.number(), right.number())
    return compare(op, left.number(), _loosened(op, right)) if right.families == {Family.EXACT} else None


def _near(left: Value, right: Known) -> Sql:
    """The constant itself, or what is left of it as a float."""
    return every(*(compare(op, left.number(), _loosened(op, right)) for op in (">=", "<=")))


def _loosened(op: str, value: Value) -> Sql:
    """The bound moved by what rounding to a float may move it."""
    if isinstance(value, Known) and value.static.number is not None:
        exact = value.static.number
        return double((min if op == ">=" else max)(exact, as_float(exact)))
    slack = exp.Mul(this=exp.Abs(this=value.number()), expression=double(_SLACK))
    return (exp.Sub if op == ">=" else exp.Add)(this=wrap(value.number()), expression=slack)


def _exactly(op: str, left: Value, right: Value) -> Sql:
    """By all digits if both are terms, else by the digits that computing keeps."""
    if not all(isinstance(each, Stored | Known) for each in (left, right)):
        return compare(op, left.exact(), right.exact())
    whole = [_whole(each) for each in (left, right)]
    fraction = [_fraction(each) for each in (left, right)]
    return case((equal(*whole), compare(op, *fraction)), default=compare(op, *whole))


def _whole(value: Value) -> Sql:
    if isinstance(value, Known):
        return try_cast(text(value.static.lexical.split(".")[0] + ".0"), _LONG_WHOLE)
    return try_cast(concat(_split(digits(value.text()), 1), text(".0")), _LONG_WHOLE)


def _fraction(value: Value) -> Sql:
    """The digits after the point, signed as the number is."""
    if isinstance(value, Known):
        sign = "-." if value.static.lexical.startswith("-") else "."
        return try_cast(text(sign + value.static.lexical.partition(".")[2] + "0"), _FINE_FRACTION)
    lexical = digits(value.text())
    point = case((call("TW_STARTS", lexical, text("-")), text("-.")), default=text("."))
    return try_cast(concat(point, _split(lexical, 2), text("0")), _FINE_FRACTION)


def _split(lexical: Sql, part: int) -> Sql:
    return exp.SplitPart(this=lexical, delimiter=text("."), part_index=number(part))
