"""Numbers: compared and computed with, where both Python and DuckDB do it exactly."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from decimal import Context, Decimal
from typing import Any

from triplewire.matching.singles.facts import DECIMAL, DOUBLE, WHOLE, Fact, Undecided
from triplewire.model.terms import XSD
from triplewire.sparql.algebra import Family

NUMERIC = frozenset({Family.EXACT, Family.DOUBLE})

_EXACTLY = Context(prec=60)
_PLACES = 18
"""Digits behind the point that the evaluator's decimals hold."""
_MOST = Decimal(10) ** 15
_CLOSE = 1e-9
"""Relatively: numbers whose doubles may be off are told apart only if they lie further apart."""
_SAFE = 2.0**53
_DATATYPES = {WHOLE: XSD + "integer", DECIMAL: XSD + "decimal", DOUBLE: XSD + "double"}

Comparison = Callable[[float, float], bool]
ORDERS: Mapping[str, Comparison] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
}


def compare(test: Comparison, left: Fact, right: Fact) -> bool:
    """Of two numbers."""
    one, other = left.number, right.number
    if (left.rough or right.rough) and abs(one - other) <= _CLOSE * max(abs(one), abs(other)):
        raise Undecided
    return test(one, other)


def exactly(value: Decimal, rank: int) -> Fact:
    """An integer or decimal that was computed."""
    exponent = value.as_tuple().exponent
    if abs(value) >= _MOST or not isinstance(exponent, int) or exponent < -_PLACES:
        raise Undecided
    number = float(value)
    return Fact(
        Family.EXACT,
        number=number,
        exact=value,
        rank=rank,
        rough=not (number.is_integer() and abs(number) < _SAFE),
        datatype=_DATATYPES[rank],
    )


def floating(value: float, *, rough: bool = False) -> Fact:
    """A double that was computed."""
    if not math.isfinite(value):
        raise Undecided
    return Fact(Family.DOUBLE, number=value, rank=DOUBLE, rough=rough, datatype=_DATATYPES[DOUBLE])


def counted(value: int) -> Fact:
    return exactly(Decimal(value), WHOLE)


def numeric(given: Fact | None) -> Fact | None:
    """The fact where it is a number; None, which is an error, where it is not."""
    if given is None or given.family in NUMERIC:
        return given
    if given.family is None:
        raise Undecided
    return None


def applied(op: str, left: Fact | None, right: Fact | None) -> Fact | None:
    """`+`, `-`, `*` or `/`; an error for anything but numbers, and for exact division by zero."""
    one, other = numeric(left), numeric(right)
    if one is None or other is None:
        return None
    if max(one.rank, other.rank) <= DECIMAL:
        return _quotient(one, other) if op == "/" else _in_decimals(op, one, other)
    if op == "/" and not other.number:
        raise Undecided
    return floating(_IN_DOUBLES[op](one.number, other.number), rough=one.rough or other.rough)


def negated(given: Fact | None) -> Fact | None:
    found = numeric(given)
    if found is None:
        return None
    if found.family is Family.EXACT:
        return exactly(_EXACTLY.minus(_held(found)), found.rank)
    return floating(-found.number, rough=found.rough)


def affirmed(given: Fact | None) -> Fact | None:
    """Unary plus: the same number, as it is written when it was computed."""
    found = numeric(given)
    if found is None:
        return None
    return (
        exactly(_held(found), found.rank) if found.family is Family.EXACT else floating(found.number, rough=found.rough)
    )


def rounded(way: str, given: Fact | None) -> Fact | None:
    """ABS, CEIL, FLOOR and ROUND, which keep the type of a number; a half goes up."""
    found = numeric(given)
    if found is None:
        return None
    if found.family is Family.EXACT:
        return exactly(Decimal(_ROUNDINGS[way](_held(found))), found.rank)
    if found.rough:
        raise Undecided
    return floating(float(_ROUNDINGS[way](found.number)))


def _half_up(value: float | Decimal) -> int:
    low = math.floor(value)
    return low + (float(value) - low >= 0.5 if isinstance(value, float) else value - low >= Decimal("0.5"))


_ROUNDINGS: Mapping[str, Callable[[Any], float | Decimal]] = {
    "abs": abs,
    "ceil": math.ceil,
    "floor": math.floor,
    "round": _half_up,
}


def total(given: list[Fact]) -> Fact:
    """SUM of numbers."""
    rank = max((each.rank for each in given), default=WHOLE)
    if rank <= DECIMAL:
        return exactly(_sum(given), rank)
    rough = len(given) > 2 or any(each.rough for each in given)
    return floating(sum(each.number for each in given), rough=rough)


def mean(given: list[Fact]) -> Fact:
    """AVG of numbers: of none it is 0; of decimals it is cut, not rounded, behind the last digit that is held."""
    if not given:
        return counted(0)
    if max(each.rank for each in given) > DECIMAL:
        rough = len(given) > 2 or any(each.rough for each in given)
        return floating(sum(each.number for each in given) / len(given), rough=rough)
    scaled = int(_EXACTLY.scaleb(_sum(given), _PLACES))
    cut = abs(scaled) // len(given) * (1 if scaled >= 0 else -1)
    return exactly(_EXACTLY.scaleb(Decimal(cut), -_PLACES), DECIMAL)


def _sum(given: list[Fact]) -> Decimal:
    found = Decimal(0)
    for each in given:
        found = _EXACTLY.add(found, _held(each))
    return found


def _held(given: Fact) -> Decimal:
    if given.exact is None:
        raise Undecided
    return given.exact


def _in_decimals(op: str, left: Fact, right: Fact) -> Fact:
    return exactly(_IN_DECIMALS[op](_held(left), _held(right)), max(left.rank, right.rank))


def _quotient(left: Fact, right: Fact) -> Fact | None:
    """How the evaluator rounds its last digit is not known, so nobody may ask for it."""
    if not _held(right):
        return None
    value = left.number / right.number
    return Fact(Family.EXACT, number=value, rank=DECIMAL, rough=True, datatype=_DATATYPES[DECIMAL])


_IN_DECIMALS: Mapping[str, Callable[[Decimal, Decimal], Decimal]] = {
    "+": _EXACTLY.add,
    "-": _EXACTLY.subtract,
    "*": _EXACTLY.multiply,
}
_IN_DOUBLES: Mapping[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}
