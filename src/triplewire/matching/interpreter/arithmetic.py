"""Arithmetic, comparison and ordering of term values, where Python and DuckDB agree exactly.

None is a SPARQL error; `Undecided` is raised where the two might differ.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from decimal import Context, Decimal
from typing import Any

from triplewire.matching.interpreter.values import DECIMAL, DOUBLE, WHOLE, TermValue, Undecided, term_text
from triplewire.model.terms import XSD
from triplewire.sparql.algebra import Family

NUMERIC = frozenset({Family.EXACT, Family.DOUBLE})

_EXACTLY = Context(prec=60)
_PLACES = 18
"""Fraction digits of the evaluator's decimals."""
_MOST = Decimal(10) ** 15
_CLOSE = 1e-9
"""The relative distance from which on numbers with inexact doubles are told apart."""
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


def compare_numbers(test: Comparison, left: TermValue, right: TermValue) -> bool:
    """Test two numbers. Undecided if the rounding of their doubles may make a difference."""
    one, other = left.number, right.number
    if (left.rough or right.rough) and abs(one - other) <= _CLOSE * max(abs(one), abs(other)):
        raise Undecided
    return test(one, other)


def exact_number(value: Decimal, rank: int) -> TermValue:
    """A computed integer or decimal."""
    exponent = value.as_tuple().exponent
    if abs(value) >= _MOST or not isinstance(exponent, int) or exponent < -_PLACES:
        raise Undecided
    number = float(value)
    return TermValue(
        Family.EXACT,
        number=number,
        exact=value,
        rank=rank,
        rough=not (number.is_integer() and abs(number) < _SAFE),
        datatype=_DATATYPES[rank],
    )


def double_number(value: float, *, rough: bool = False) -> TermValue:
    if not math.isfinite(value):
        raise Undecided
    return TermValue(Family.DOUBLE, number=value, rank=DOUBLE, rough=rough, datatype=_DATATYPES[DOUBLE])


def integer_number(value: int) -> TermValue:
    return exact_number(Decimal(value), WHOLE)


def as_number(given: TermValue | None) -> TermValue | None:
    """The value if it is a number, else None, which is an error."""
    if given is None or given.family in NUMERIC:
        return given
    if given.family is None:
        raise Undecided
    return None


def calculate(op: str, left: TermValue | None, right: TermValue | None) -> TermValue | None:
    """`+`, `-`, `*` or `/`; an error for anything but numbers, and for exact division by zero."""
    one, other = as_number(left), as_number(right)
    if one is None or other is None:
        return None
    rank = max(one.rank, other.rank)
    if rank <= DECIMAL and op == "/":
        return _divide(one, other)
    if rank <= DECIMAL:
        return exact_number(_IN_DECIMALS[op](_exact_decimal(one), _exact_decimal(other)), rank)
    if op == "/" and not other.number:
        raise Undecided
    return double_number(_IN_DOUBLES[op](one.number, other.number), rough=one.rough or other.rough)


def apply_sign(sign: str, given: TermValue | None) -> TermValue | None:
    """Unary `+` and `-`: the number in the form of computed ones, or its negative."""
    found = as_number(given)
    if found is None:
        return None
    if found.family is Family.EXACT:
        exact = _exact_decimal(found)
        return exact_number(_EXACTLY.minus(exact) if sign == "-" else exact, found.rank)
    return double_number(-found.number if sign == "-" else found.number, rough=found.rough)


def round_number(way: str, given: TermValue | None) -> TermValue | None:
    """ABS, CEIL, FLOOR and ROUND, which keep the type of a number; a half is rounded up."""
    found = as_number(given)
    if found is None:
        return None
    if found.family is Family.EXACT:
        return exact_number(Decimal(_ROUNDINGS[way](_exact_decimal(found))), found.rank)
    if found.rough:
        raise Undecided
    return double_number(float(_ROUNDINGS[way](found.number)))


def _half_up(value: float | Decimal) -> int:
    low = math.floor(value)
    return low + (float(value) - low >= 0.5 if isinstance(value, float) else value - low >= Decimal("0.5"))


_ROUNDINGS: Mapping[str, Callable[[Any], float | Decimal]] = {
    "abs": abs,
    "ceil": math.ceil,
    "floor": math.floor,
    "round": _half_up,
}


def sum_numbers(given: list[TermValue]) -> TermValue:
    rank = max((each.rank for each in given), default=WHOLE)
    if rank <= DECIMAL:
        return exact_number(_sum(given), rank)
    rough = len(given) > 2 or any(each.rough for each in given)
    return double_number(sum(each.number for each in given), rough=rough)


def average_numbers(given: list[TermValue]) -> TermValue:
    """The average; 0 for no numbers. For decimals it is truncated, not rounded, at the last digit that is held."""
    if not given:
        return integer_number(0)
    if max(each.rank for each in given) > DECIMAL:
        rough = len(given) > 2 or any(each.rough for each in given)
        return double_number(sum(each.number for each in given) / len(given), rough=rough)
    scaled = int(_EXACTLY.scaleb(_sum(given), _PLACES))
    cut = abs(scaled) // len(given) * (1 if scaled >= 0 else -1)
    return exact_number(_EXACTLY.scaleb(Decimal(cut), -_PLACES), DECIMAL)


def _sum(given: list[TermValue]) -> Decimal:
    found = Decimal(0)
    for each in given:
        found = _EXACTLY.add(found, _exact_decimal(each))
    return found


def _exact_decimal(given: TermValue) -> Decimal:
    if given.exact is None:
        raise Undecided
    return given.exact


def _divide(left: TermValue, right: TermValue) -> TermValue | None:
    """Divide exactly. A result whose last digit depends on the evaluator's rounding is undecided."""
    if not _exact_decimal(right):
        return None
    value = left.number / right.number
    return TermValue(Family.EXACT, number=value, rank=DECIMAL, rough=True, datatype=_DATATYPES[DECIMAL])


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


_EQUAL = ORDERS["="]
_STRINGS = frozenset({Family.STRING, Family.TAGGED})
_TIMES = frozenset({Family.DATETIME, Family.DATE})
_NODES = frozenset({Family.IRI, Family.BLANK})


def equals(left: TermValue | None, right: TermValue | None) -> bool | None:
    """Compare by value if the datatypes are known; identical terms are equal; anything else is an error."""
    if left is None or right is None:
        return None
    one, other = left.family, right.family
    if one in NUMERIC and other in NUMERIC:
        return compare_numbers(_EQUAL, left, right)
    if one in _NODES or other in _NODES:
        return one is other and left.text == right.text
    if one is None or other is None:
        raise Undecided
    same = left.lexical == right.lexical and left.tag == right.tag and left.datatype == right.datatype
    if same and one is other and (one in _STRINGS or one is Family.OTHER):
        return True
    return _values_equal(left, right)


def _values_equal(left: TermValue, right: TermValue) -> bool | None:
    one, other = left.family, right.family
    if one is other and one in _TIMES:
        return _zoned_alike(left, right) and left.time == right.time
    if one is other and one is Family.BOOLEAN:
        return left.truth == right.truth
    if Family.OTHER in (one, other) and Family.TAGGED not in (one, other):
        return None
    return False


def compare_order(op: str, left: TermValue | None, right: TermValue | None) -> bool | None:
    """`<`, `<=`, `>`, `>=`: an error for terms without an order between them."""
    if left is None or right is None:
        return None
    one, other = left.family, right.family
    if one in NUMERIC and other in NUMERIC:
        return compare_numbers(ORDERS[op], left, right)
    if one in _NODES or other in _NODES:
        return None
    if one is None or other is None:
        raise Undecided
    return _values_ordered(op, left, right) if one is other else None


def _values_ordered(op: str, left: TermValue, right: TermValue) -> bool | None:
    test, family = ORDERS[op], left.family
    if family in _TIMES:
        _zoned_alike(left, right)
        return test(left.time, right.time)
    if family is Family.BOOLEAN:
        return test(left.truth, right.truth)
    if family not in _STRINGS or left.tag != right.tag or left.lexical is None or right.lexical is None:
        return None
    one, other = left.lexical, right.lexical
    return test(one > other, other > one)


def same_term(left: TermValue | None, right: TermValue | None) -> bool | None:
    return None if left is None or right is None else term_text(left) == term_text(right)


def effective_boolean(given: TermValue | None) -> bool | None:
    """The effective boolean value of a term; None is an error."""
    if given is None:
        return None
    family = given.family
    if family is Family.BOOLEAN:
        return given.truth
    if family in NUMERIC:
        if given.rough and abs(given.number) < 1e-9:
            raise Undecided
        return given.number != 0
    if family in _STRINGS:
        return given.lexical != ""
    if family is None:
        raise Undecided
    return False if family is Family.OTHER and given.truth else None


SortKey = tuple[int, float, str]
_UNBOUND: SortKey = (-1, 0.0, "")


def order_key(given: TermValue | None) -> SortKey:
    """An ascending sort key; equal terms have equal keys."""
    if given is None:
        return _UNBOUND
    family = given.family
    if family is Family.BLANK or family is Family.IRI:
        return (0 if family is Family.BLANK else 1, 0.0, term_text(given))
    if family in NUMERIC and not given.rough:
        return (2, given.number, "")
    if family is Family.DATETIME and given.truth:
        return (3, given.time, "")
    if family is Family.STRING and given.lexical is not None and _sorts_plainly(given.lexical):
        return (4, 0.0, given.lexical)
    raise Undecided


def _sorts_plainly(lexical: str) -> bool:
    """Does nothing in the text sort before a quotation mark, which follows it where the evaluator compares terms?"""
    return not lexical or (min(lexical) > '"' and "\\" not in lexical)


def _zoned_alike(left: TermValue, right: TermValue) -> bool:
    if left.truth != right.truth:
        raise Undecided
    return True
