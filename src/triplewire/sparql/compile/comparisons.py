"""Comparisons: `=` and `<` over all families of terms, with the errors that SPARQL wants."""

from __future__ import annotations

from sqlglot import exp

from triplewire.sparql.algebra import Family
from triplewire.sparql.compile.computed import Text
from triplewire.sparql.compile.numbers import compare_numbers
from triplewire.sparql.compile.sql import (
    Sql,
    case,
    cast,
    compare,
    equal,
    every,
    is_true,
    negate,
    null,
    some,
    truth,
)
from triplewire.sparql.compile.values import NOT_LITERAL, NUMERIC, Value

_NUMBERS = (Family.EXACT, Family.FLOAT, Family.DOUBLE)
_TIMES = (Family.DATETIME, Family.DATE)
_BY_TEXT = frozenset({Family.IRI, Family.BLANK, Family.STRING, Family.TAGGED, Family.OTHER})
"""Families in which terms are equal only if they are the same."""
_HALF_ZONES = exp.Interval(this=exp.Literal.string("14"), unit=exp.var("HOUR"))
"""How far a time without a zone may lie from the same time in UTC."""


def same_term(left: Value, right: Value) -> Sql:
    """Are they the same term? Of terms with one text each, by that."""
    if not left.families & right.families:
        return case((every(left.bound(), right.bound()), truth(False)))
    return equal(left.text(), right.text())


def equals(left: Value, right: Value) -> Sql:
    """`=`: by value where the datatype is known, the same term otherwise, else an error."""
    if not left.families or not right.families:
        return null()
    unknown = _both_literal_one_unknown(left, right)
    return case(
        *_branches("=", left, right, _NUMBERS),
        *_same(left, right),
        *(branch for family in (*_TIMES, Family.BOOLEAN) for branch in _branches("=", left, right, (family,))),
        (unknown, null()),
        (every(left.bound(), right.bound()), truth(False)),
    )


def holds_equal(left: Value, right: Value) -> Sql:
    """TRUE exactly where `=` is; elsewhere FALSE or NULL. Simple enough for joins where the families are known."""
    shared = left.families & right.families
    if shared and shared <= _BY_TEXT and not any(isinstance(each, Text) for each in (left, right)):
        return equal(left.text(), right.text())
    if left.families <= NUMERIC or right.families <= NUMERIC:
        return compare_numbers("=", left, right)
    if left.families <= {Family.STRING} or right.families <= {Family.STRING}:
        plain = [each.narrowed(Family.STRING).string() for each in (left, right)]
        return every(left.among(Family.STRING), right.among(Family.STRING), equal(*plain))
    if left.families <= set(_TIMES) or right.families <= set(_TIMES):
        return every(equal(left.time(), right.time()), equals(left, right))
    return equals(left, right)


def ordered(op: str, left: Value, right: Value) -> Sql:
    """`<`, `<=`, `>`, `>=`: an error for terms that have no order between them."""
    groups = (_NUMBERS, (Family.STRING,), (Family.TAGGED,), (Family.DATETIME,), (Family.DATE,), (Family.BOOLEAN,))
    if left.families <= NUMERIC or right.families <= NUMERIC:
        return compare_numbers(op, left, right)
    return case(*(branch for group in groups for branch in _branches(op, left, right, group)))


def holds_ordered(op: str, left: Value, right: Value) -> Sql:
    """TRUE exactly where `ordered` is, with a plain comparison of times first, for statistics to prune by: times that
    zones leave no doubt about are in the same order without them."""
    precise = ordered(op, left, right)
    times = set(_TIMES)
    if not (left.families <= times or right.families <= times) or not (
        left.families & times and right.families & times
    ):
        return precise
    if is_true(equal(left.zoned(), right.zoned())):
        return precise
    return every(compare(op, left.time(), right.time()), precise)


def _branches(op: str, left: Value, right: Value, group: tuple[Family, ...]) -> list[tuple[Sql, Sql]]:
    """The branch of a CASE for two values of one group of families; none if they cannot both be in it."""
    if not (left.families & set(group) and right.families & set(group)):
        return []
    both = every(left.among(*group), right.among(*group))
    return [(both, _compared(op, left.narrowed(*group), right.narrowed(*group), group[0]))]


def _compared(op: str, left: Value, right: Value, family: Family) -> Sql:
    if family in NUMERIC:
        return compare_numbers(op, left, right)
    if family in _TIMES:
        return _times(op, left, right)
    if family == Family.BOOLEAN:
        whole = exp.DataType.build("INT")
        return compare(op, cast(left.boolean(), whole), cast(right.boolean(), whole))
    compared = compare(op, left.string(), right.string())
    return compared if family == Family.STRING else case((equal(left.language(), right.language()), compared))


def _times(op: str, left: Value, right: Value) -> Sql:
    """Where only one has a zone they can be told apart, and put in order, only if they lie further apart than zones."""
    plain = compare(op, left.time(), right.time())
    alike = equal(left.zoned(), right.zoned())
    before = compare("<", exp.Add(this=left.time(), expression=_HALF_ZONES.copy()), right.time())
    after = compare(">", exp.Sub(this=left.time(), expression=_HALF_ZONES.copy()), right.time())
    return case((alike, plain), (before, truth(op in ("<", "<="))), (after, truth(op in (">", ">="))))


def _same(left: Value, right: Value) -> list[tuple[Sql, Sql]]:
    """The branch for terms that are the same."""
    if not left.families & right.families - NUMERIC:
        return []
    return [(same_term(left, right), truth(True))]


def _both_literal_one_unknown(left: Value, right: Value) -> Sql:
    """A tagged literal is equal to nothing but itself, so it is known to differ."""
    literal = [negate(each.among(*NOT_LITERAL, Family.TAGGED)) for each in (left, right)]
    unknown = [each.among(Family.OTHER) for each in (left, right)]
    return every(*literal, some(*unknown))
