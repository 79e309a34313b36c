"""Comparisons: `=` and `<` over terms, what is true, and the order in which terms are sorted.

True, False, or None for an error.
"""

from __future__ import annotations

from triplewire.matching.singles.facts import Fact, Undecided, text_of
from triplewire.matching.singles.numbers import NUMERIC, ORDERS, compare
from triplewire.sparql.algebra import Family

_EQUAL = ORDERS["="]
_STRINGS = frozenset({Family.STRING, Family.TAGGED})
_TIMES = frozenset({Family.DATETIME, Family.DATE})
_NODES = frozenset({Family.IRI, Family.BLANK})


def equals(left: Fact | None, right: Fact | None) -> bool | None:
    """By value where the datatype is known, the same term otherwise, else an error."""
    if left is None or right is None:
        return None
    one, other = left.family, right.family
    if one in NUMERIC and other in NUMERIC:
        return compare(_EQUAL, left, right)
    if one in _NODES or other in _NODES:
        return one is other and left.text == right.text
    if one is None or other is None:
        raise Undecided
    if one is other and (one in _STRINGS or one is Family.OTHER) and _same(left, right):
        return True
    return _values_equal(left, right)


def _values_equal(left: Fact, right: Fact) -> bool | None:
    one, other = left.family, right.family
    if one is other and one in _TIMES:
        return _zoned_alike(left, right) and left.time == right.time
    if one is other and one is Family.BOOLEAN:
        return left.truth == right.truth
    if Family.OTHER in (one, other) and Family.TAGGED not in (one, other):
        return None
    return False


def ordered(op: str, left: Fact | None, right: Fact | None) -> bool | None:
    """`<`, `<=`, `>`, `>=`: an error for terms that have no order between them."""
    if left is None or right is None:
        return None
    one, other = left.family, right.family
    if one in NUMERIC and other in NUMERIC:
        return compare(ORDERS[op], left, right)
    if one in _NODES or other in _NODES:
        return None
    if one is None or other is None:
        raise Undecided
    return _values_ordered(op, left, right) if one is other else None


def _values_ordered(op: str, left: Fact, right: Fact) -> bool | None:
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


def same_term(left: Fact | None, right: Fact | None) -> bool | None:
    return None if left is None or right is None else text_of(left) == text_of(right)


def effective(given: Fact | None) -> bool | None:
    """The effective boolean value of a term."""
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


Key = tuple[int, float, str]
_UNBOUND: Key = (-1, 0.0, "")


def order_key(given: Fact | None) -> Key:
    """What terms are sorted by, ascending: equal ones have equal keys."""
    if given is None:
        return _UNBOUND
    family = given.family
    if family is Family.BLANK or family is Family.IRI:
        return (0 if family is Family.BLANK else 1, 0.0, text_of(given))
    if family in NUMERIC and not given.rough:
        return (2, given.number, "")
    if family is Family.DATETIME and given.truth:
        return (3, given.time, "")
    if family is Family.STRING and given.lexical is not None and _plainly_sorted(given.lexical):
        return (4, 0.0, given.lexical)
    raise Undecided


def _plainly_sorted(lexical: str) -> bool:
    """Nothing in it sorts before a quote, which may follow it where the evaluator compares terms."""
    return not lexical or (min(lexical) > '"' and "\\" not in lexical)


def _same(left: Fact, right: Fact) -> bool:
    return left.lexical == right.lexical and left.tag == right.tag and left.datatype == right.datatype


def _zoned_alike(left: Fact, right: Fact) -> bool:
    if left.truth != right.truth:
        raise Undecided
    return True
