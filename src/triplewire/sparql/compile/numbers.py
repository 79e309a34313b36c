"""Numbers: promotion from integer over decimal and float to double, exact where SPARQL is exact.

Doubles are monotone: x > y follows from dbl(x) > dbl(y), and only where both doubles are equal and one of the
numbers has more digits than a double holds are the exact values looked at.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from triplewire.model.terms import XSD
from triplewire.sparql.algebra import Family
from triplewire.sparql.compile.sql import (
    DECIMAL,
    DOUBLE,
    FLOAT,
    Sql,
    binary,
    call,
    case,
    cast,
    compare,
    concat,
    equal,
    every,
    is_null,
    negate,
    null,
    number,
    present,
    some,
    text,
    truth,
    try_cast,
    wrap,
)
from triplewire.sparql.compile.statics import as_float
from triplewire.sparql.compile.values import NUMERIC, Known, Stored, Value, digits, double

_FRACTION = exp.DataType.build("DECIMAL(18, 18)")
_FINE_FRACTION = exp.DataType.build("DECIMAL(38, 38)")
_WHOLE = exp.DataType.build("DECIMAL(19, 0)")
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
    if not (Family.EXACT in left.families and Family.EXACT in right.families) or _never(long):
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


def _never(condition: Sql) -> bool:
    return isinstance(condition, exp.Boolean) and not condition.this


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
    if op == "=" and _may_meet_as_floats(left, right):
        return None
    strict = {"<": "<=", ">": ">="}.get(op, op)
    if op in ("<", ">", "=") or not _may_meet_as_floats(left, right):
        return compare(strict, left.number(), right.number())
    return compare(op, left.number(), _loosened(op, right)) if not isinstance(left, Known) else None


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


@dataclass(frozen=True)
class Number(Value):
    """A number that was computed. `made_exact` holds where the rank is at most 2, `made_double` above."""

    made_rank: Sql
    made_exact: Sql
    made_double: Sql
    families: frozenset[Family] = NUMERIC

    def number(self) -> Sql:
        if self.families == {Family.EXACT}:
            return cast(self.made_exact, DOUBLE)
        if Family.EXACT not in self.families:
            return self.made_double
        exact = cast(self.made_exact, DOUBLE)
        return case((compare("<=", self.made_rank, number(2)), exact), default=self.made_double)

    def exact(self) -> Sql:
        if Family.EXACT not in self.families:
            return null()
        return case((compare("<=", self.made_rank, number(2)), self.made_exact))

    def rank(self) -> Sql:
        return case((present(self.number()), self.made_rank))

    def long(self) -> Sql:
        return truth(Family.EXACT in self.families)

    def bound(self) -> Sql:
        return present(self.number())

    def datatype(self) -> Sql:
        names = ((1, "integer"), (2, "decimal"), (3, "float"), (4, "double"))
        return case(*((equal(self.rank(), number(rank)), text(XSD + name)) for rank, name in names))

    def string(self) -> Sql:
        exact = call("TW_DECIMAL_TEXT", self.made_exact)
        made = call("TW_DOUBLE_TEXT", self.number())
        return case((compare("<=", self.rank(), number(2)), exact), (present(self.number()), made))

    def among(self, *families: Family) -> Sql:
        if self.families <= set(families):
            return truth(True)
        ranks = {Family.EXACT: (1, 2), Family.FLOAT: (3,), Family.DOUBLE: (4,)}
        kept = [rank for family in families if family in self.families for rank in ranks[family]]
        return exp.In(this=self.made_rank, expressions=[number(rank) for rank in kept]) if kept else truth(False)


def arithmetic(op: str, left: Value, right: Value) -> Value:
    """The sum, difference, product or quotient of two numbers; an error for anything else."""
    if not (left.families & NUMERIC and right.families & NUMERIC):
        return Value()
    rank = _higher(left.rank(), right.rank())
    exact = _EXACT[op](left.exact(), right.exact())
    if op == "/":
        rank = _higher(rank, number(2))
    families = _families(left, right)
    return Number(rank, exact, _floating(op, left, right, rank, families), families)


def opposite(value: Value) -> Value:
    """Unary minus."""
    if not value.families & NUMERIC:
        return Value()
    exact = value.exact()
    flipped = exact if is_null(exact) else try_cast(exp.Neg(this=wrap(exact)), DECIMAL)
    return Number(value.rank(), flipped, exp.Neg(this=wrap(value.number())), value.families & NUMERIC)


def _families(left: Value, right: Value) -> frozenset[Family]:
    order = (Family.EXACT, Family.FLOAT, Family.DOUBLE)
    pairs = [(one, other) for one in left.families & NUMERIC for other in right.families & NUMERIC]
    return frozenset(max(pair, key=order.index) for pair in pairs)


def _higher(left: Sql, right: Sql) -> Sql:
    if isinstance(left, exp.Literal) and isinstance(right, exp.Literal):
        return max(left, right, key=lambda each: int(each.this))
    if is_null(left) or is_null(right):
        return null()
    return call("GREATEST", left, right)


def _floating(op: str, left: Value, right: Value, rank: Sql, families: frozenset[Family]) -> Sql:
    made = _in_doubles(op, left.number(), right.number())
    if Family.FLOAT not in families:
        return made
    return case((equal(rank, number(3)), cast(try_cast(made, FLOAT), DOUBLE)), default=made)


def _in_doubles(op: str, left: Sql, right: Sql) -> Sql:
    if op != "/":
        return binary({"+": exp.Add, "-": exp.Sub, "*": exp.Mul}[op], left, right)
    zero = equal(right, double(0.0))
    infinity = case(
        (exp.IsNan(this=left), double(float("nan"))),
        (compare(">", left, double(0.0)), double(float("inf"))),
        (compare("<", left, double(0.0)), double(float("-inf"))),
        default=double(float("nan")),
    )
    return case((zero, infinity), (present(left), binary(exp.Div, left, right)))


def _add(left: Sql, right: Sql) -> Sql:
    return try_cast(binary(exp.Add, left, right), DECIMAL)


def _subtract(left: Sql, right: Sql) -> Sql:
    return try_cast(binary(exp.Sub, left, right), DECIMAL)


def _multiply(left: Sql, right: Sql) -> Sql:
    """By parts, because the plain product of two such decimals has more digits than engines hold."""
    if is_null(left) or is_null(right):
        return null()
    (a, b), (c, d) = _parts(left), _parts(right)
    products = [try_cast(binary(exp.Mul, one, other), DECIMAL) for one, other in ((a, c), (a, d), (b, c), (b, d))]
    total = products[0]
    for product in products[1:]:
        total = _add(total, product)
    return total


def _parts(value: Sql) -> tuple[Sql, Sql]:
    whole = try_cast(call("TW_TRUNCATE", value), _WHOLE)
    return whole, try_cast(binary(exp.Sub, value, whole), _FRACTION)


def _divide(left: Sql, right: Sql) -> Sql:
    """A quotient of doubles, corrected once by its remainder; by zero it is an error."""
    if is_null(left) or is_null(right):
        return null()
    rough = try_cast(binary(exp.Div, cast(left, DOUBLE), cast(right, DOUBLE)), DECIMAL)
    rest = _subtract(left, _multiply(rough, right))
    fine = try_cast(binary(exp.Div, cast(rest, DOUBLE), cast(right, DOUBLE)), DECIMAL)
    return case((compare("!=", right, number(0)), _add(rough, fine)))


_EXACT = {"+": _add, "-": _subtract, "*": _multiply, "/": _divide}
