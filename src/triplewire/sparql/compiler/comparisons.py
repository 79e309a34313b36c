"""Comparisons: `=` and `<` over all families of terms, with SPARQL's errors, and the sort keys of ORDER BY, MIN and
MAX.

Numbers are promoted from integer over decimal and float to double. Rounding to double is monotone, so exact values are
compared only where both doubles are equal and one number has more digits than a double holds. Sorted are unbound
values first, then blank nodes, IRIs and literals; among literals numbers by value, times by instant, strings by code
point, booleans, and all others by text.
"""

from __future__ import annotations

from sqlglot import exp

from triplewire.sparql import sql
from triplewire.sparql.algebra import Family
from triplewire.sparql.compiler.facets import lexical_digits
from triplewire.sparql.compiler.terms import ConstantValue, StoredTerm
from triplewire.sparql.compiler.values import (
    NOT_LITERAL,
    NUMERIC,
    STRINGS,
    TIMES,
    ComputedNumber,
    ComputedString,
    Value,
)
from triplewire.sparql.constants import as_float
from triplewire.sparql.sql import Sql, call, case, cast, equal, every, is_null, negate, null, number, some, text

_FINE_FRACTION = exp.DataType.build("DECIMAL(38, 38)")
_LONG_WHOLE = exp.DataType.build("DECIMAL(38, 0)")
_SLACK = 2.0**-23
"""Rounding to xsd:float moves a number by less than this, relatively."""


def compare_numbers(op: str, left: Value, right: Value) -> Sql:
    """TRUE, FALSE, or NULL if one of them is not a number."""
    if op == "!=":
        return negate(compare_numbers("=", left, right))
    precise = _compare_promoted(op, left, right)
    bound = _bound(op, left, right)
    return precise if bound is None else every(bound, precise)


def _compare_promoted(op: str, left: Value, right: Value) -> Sql:
    core = _as_doubles(op, left, right)
    if not _may_meet_as_floats(left, right):
        return core
    rounded = sql.compare(op, sql.try_cast(left.number(), sql.FLOAT), sql.try_cast(right.number(), sql.FLOAT))
    return case((_meet_as_floats(left, right), every(rounded, _not_nan(op, left, right))), default=core)


def _as_doubles(op: str, left: Value, right: Value) -> Sql:
    """Compare as doubles; and exactly where both are exact and the doubles are equal."""
    plain = every(sql.compare(op, left.number(), right.number()), _not_nan(op, left, right))
    long = some(left.long(), right.long())
    if not (Family.EXACT in left.families and Family.EXACT in right.families) or sql.is_false(long):
        return plain
    tie = every(equal(left.number(), right.number()), long, left.among(Family.EXACT), right.among(Family.EXACT))
    exact = exp.Coalesce(this=_exactly(op, left, right), expressions=[sql.truth("=" in op)])
    return case((tie, exact), default=plain)


def _not_nan(op: str, left: Value, right: Value) -> Sql:
    """Engines hold NaN equal to itself and above all else; SPARQL holds that nothing compares to it."""
    suspect = right if op in ("<", "<=") else left
    if not suspect.families & {Family.FLOAT, Family.DOUBLE}:
        return sql.truth(True)
    if isinstance(suspect, ConstantValue) and suspect.static.number == suspect.static.number:
        return sql.truth(True)
    return negate(exp.IsNan(this=suspect.number()))


def _may_meet_as_floats(left: Value, right: Value) -> bool:
    """Tell whether one may be a float and the other of lower rank, so that both are compared as floats."""
    for one, other in ((left, right), (right, left)):
        if Family.FLOAT in one.families and Family.EXACT in other.families and not _is_float(other):
            return True
    return False


def _is_float(value: Value) -> bool:
    """A constant that rounding to a float does not change."""
    return isinstance(value, ConstantValue) and value.static.number is not None and _unrounded(value.static.number)


def _unrounded(value: float) -> bool:
    return as_float(value) == value


def _meet_as_floats(left: Value, right: Value) -> Sql:
    pairs = ((left, right), (right, left))
    return some(*(every(one.among(Family.FLOAT), other.among(Family.EXACT)) for one, other in pairs))


def _bound(op: str, left: Value, right: Value) -> Sql | None:
    """A simple comparison of columns that follows from the precise one, for hash joins, ranges and statistics."""
    if isinstance(left, ComputedNumber) or isinstance(right, ComputedNumber):
        return None
    if op == "=" and _may_meet_as_floats(left, right):
        return _near(left, right) if isinstance(right, ConstantValue) and right.families == {Family.EXACT} else None
    strict = {"<": "<=", ">": ">="}.get(op, op)
    if op in ("<", ">", "=") or not _may_meet_as_floats(left, right):
        return sql.compare(strict, left.number(), right.number())
    return sql.compare(op, left.number(), _loosen(op, right)) if right.families == {Family.EXACT} else None


def _near(left: Value, right: ConstantValue) -> Sql:
    """The constant itself, or what is left of it as a float."""
    return every(*(sql.compare(op, left.number(), _loosen(op, right)) for op in (">=", "<=")))


def _loosen(op: str, value: Value) -> Sql:
    """The bound moved by what rounding to a float may move it."""
    if isinstance(value, ConstantValue) and value.static.number is not None:
        exact = value.static.number
        return sql.double((min if op == ">=" else max)(exact, as_float(exact)))
    slack = exp.Mul(this=exp.Abs(this=value.number()), expression=sql.double(_SLACK))
    return (exp.Sub if op == ">=" else exp.Add)(this=sql.wrap(value.number()), expression=slack)


def _exactly(op: str, left: Value, right: Value) -> Sql:
    """Compare by all digits if both are terms, else by the digits that computing keeps."""
    if not all(isinstance(each, StoredTerm | ConstantValue) for each in (left, right)):
        return sql.compare(op, left.exact(), right.exact())
    whole = [_whole(each) for each in (left, right)]
    fraction = [_fraction(each) for each in (left, right)]
    return case((equal(*whole), sql.compare(op, *fraction)), default=sql.compare(op, *whole))


def _whole(value: Value) -> Sql:
    if isinstance(value, ConstantValue):
        return sql.try_cast(text(value.static.lexical.split(".")[0] + ".0"), _LONG_WHOLE)
    return sql.try_cast(sql.concat(_split(lexical_digits(value.text()), 1), text(".0")), _LONG_WHOLE)


def _fraction(value: Value) -> Sql:
    """The digits after the point, signed as the number is."""
    if isinstance(value, ConstantValue):
        sign = "-." if value.static.lexical.startswith("-") else "."
        return sql.try_cast(text(sign + value.static.lexical.partition(".")[2] + "0"), _FINE_FRACTION)
    lexical = lexical_digits(value.text())
    point = case((call("TW_STARTS", lexical, text("-")), text("-.")), default=text("."))
    return sql.try_cast(sql.concat(point, _split(lexical, 2), text("0")), _FINE_FRACTION)


def _split(lexical: Sql, part: int) -> Sql:
    return exp.SplitPart(this=lexical, delimiter=text("."), part_index=number(part))


_NUMBER_FAMILIES = (Family.EXACT, Family.FLOAT, Family.DOUBLE)
_EQUAL_BY_TEXT = frozenset({Family.IRI, Family.BLANK, Family.STRING, Family.TAGGED, Family.OTHER})
"""Families in which terms are equal only if they are the same."""
_HALF_ZONES = exp.Interval(this=exp.Literal.string("14"), unit=exp.var("HOUR"))
"""How far a time without a zone may lie from the same time in UTC."""


def same_term(left: Value, right: Value) -> Sql:
    if not left.families & right.families:
        return case((every(left.bound(), right.bound()), sql.truth(False)))
    return equal(left.text(), right.text())


def compare_equal(left: Value, right: Value) -> Sql:
    """`=`: by value where the datatype is known, the same term otherwise, else an error."""
    if not left.families or not right.families:
        return null()
    unknown = _both_literal_one_unknown(left, right)
    return case(
        *_branches("=", left, right, _NUMBER_FAMILIES),
        *_same_term_branch(left, right),
        *(branch for family in (*TIMES, Family.BOOLEAN) for branch in _branches("=", left, right, (family,))),
        (unknown, null()),
        (every(left.bound(), right.bound()), sql.truth(False)),
    )


def holds_equal(left: Value, right: Value) -> Sql:
    """TRUE exactly where `=` is; elsewhere FALSE or NULL. Simple enough for joins where the families are known."""
    shared = left.families & right.families
    if shared and shared <= _EQUAL_BY_TEXT and not any(isinstance(each, ComputedString) for each in (left, right)):
        return equal(left.text(), right.text())
    if left.families <= NUMERIC or right.families <= NUMERIC:
        return compare_numbers("=", left, right)
    if left.families <= {Family.STRING} or right.families <= {Family.STRING}:
        plain = [each.narrow(Family.STRING).string() for each in (left, right)]
        return every(left.among(Family.STRING), right.among(Family.STRING), equal(*plain))
    if left.families <= set(TIMES) or right.families <= set(TIMES):
        return every(equal(left.time(), right.time()), compare_equal(left, right))
    return compare_equal(left, right)


def compare_ordered(op: str, left: Value, right: Value) -> Sql:
    """`<`, `<=`, `>`, `>=`: an error for terms that have no order between them."""
    groups = (
        _NUMBER_FAMILIES,
        (Family.STRING,),
        (Family.TAGGED,),
        (Family.DATETIME,),
        (Family.DATE,),
        (Family.BOOLEAN,),
    )
    if left.families <= NUMERIC or right.families <= NUMERIC:
        return compare_numbers(op, left, right)
    return case(*(branch for group in groups for branch in _branches(op, left, right, group)))


def holds_ordered(op: str, left: Value, right: Value) -> Sql:
    """TRUE exactly where `ordered` is, with a plain comparison of times first, for statistics to prune by: times that
    zones leave no doubt about are in the same order without them."""
    precise = compare_ordered(op, left, right)
    times = set(TIMES)
    if not (left.families <= times or right.families <= times) or not (
        left.families & times and right.families & times
    ):
        return precise
    if sql.is_true(equal(left.zoned(), right.zoned())):
        return precise
    return every(sql.compare(op, left.time(), right.time()), precise)


def _branches(op: str, left: Value, right: Value, group: tuple[Family, ...]) -> list[tuple[Sql, Sql]]:
    """The branch of a CASE for two values of one group of families; none if they cannot both be in it."""
    if not (left.families & set(group) and right.families & set(group)):
        return []
    both = every(left.among(*group), right.among(*group))
    return [(both, _compare_family(op, left.narrow(*group), right.narrow(*group), group[0]))]


def _compare_family(op: str, left: Value, right: Value, family: Family) -> Sql:
    if family in NUMERIC:
        return compare_numbers(op, left, right)
    if family in TIMES:
        return _times(op, left, right)
    if family == Family.BOOLEAN:
        whole = exp.DataType.build("INT")
        return sql.compare(op, cast(left.boolean(), whole), cast(right.boolean(), whole))
    compared = sql.compare(op, left.string(), right.string())
    return compared if family == Family.STRING else case((equal(left.language(), right.language()), compared))


def _times(op: str, left: Value, right: Value) -> Sql:
    """Where only one has a zone they can be told apart, and put in order, only if they lie further apart than zones."""
    plain = sql.compare(op, left.time(), right.time())
    alike = equal(left.zoned(), right.zoned())
    before = sql.compare("<", exp.Add(this=left.time(), expression=_HALF_ZONES.copy()), right.time())
    after = sql.compare(">", exp.Sub(this=left.time(), expression=_HALF_ZONES.copy()), right.time())
    return case((alike, plain), (before, sql.truth(op in ("<", "<="))), (after, sql.truth(op in (">", ">="))))


def _same_term_branch(left: Value, right: Value) -> list[tuple[Sql, Sql]]:
    if not left.families & right.families - NUMERIC:
        return []
    return [(same_term(left, right), sql.truth(True))]


def _both_literal_one_unknown(left: Value, right: Value) -> Sql:
    """A tagged literal is equal to nothing but itself, so it is known to differ."""
    literal = [negate(each.among(*NOT_LITERAL, Family.TAGGED)) for each in (left, right)]
    unknown = [each.among(Family.OTHER) for each in (left, right)]
    return every(*literal, some(*unknown))


_CLASSES: tuple[tuple[Family, ...], ...] = (
    (Family.BLANK,),
    (Family.IRI,),
    _NUMBER_FAMILIES,
    TIMES,
    STRINGS,
    (Family.BOOLEAN,),
    (Family.OTHER,),
)

_ORDERED_BY_TEXT = frozenset({Family.BLANK, Family.IRI, Family.OTHER})


def total_order_keys(value: Value) -> list[Sql]:
    """Keys to sort by, ascending, NULLs first. Equal values are told apart by their text."""
    return [*order_keys(value), value.text()] if value.families else []


def order_keys(value: Value) -> list[Sql]:
    """Return sort keys that are equal for equal values."""
    if not value.families:
        return []
    classes = [(index, group) for index, group in enumerate(_CLASSES) if value.families & set(group)]
    keys = [_class_number(value, classes)] if len(classes) > 1 else []
    return [*keys, *(key for key in _within(value) if not is_null(key))]


def _class_number(value: Value, classes: list[tuple[int, tuple[Family, ...]]]) -> Sql:
    """Return the number of the class that a term sorts in; the last class takes the rest."""
    *rest, (last, _) = classes
    tests = [(value.among(*group), number(index)) for index, group in rest]
    return case((negate(value.bound()), number(-1)), *tests, default=number(last))


def _within(value: Value) -> list[Sql]:
    """Return the keys that are compared inside a class, each NULL for terms of other classes."""
    keys = []
    if value.families & NUMERIC:
        keys += [value.number(), _digits(value)]
    if value.families & set(TIMES):
        keys.append(value.time())
    if Family.BOOLEAN in value.families:
        keys.append(case((value.boolean(), number(1)), (negate(value.boolean()), number(0))))
    if value.families & set(STRINGS):
        keys.append(_string(value))
    return [*keys, *_texts(value)]


def _texts(value: Value) -> list[Sql]:
    """Return the text of terms that have no value beside it."""
    if not value.families & _ORDERED_BY_TEXT:
        return []
    return [
        value.text() if value.families <= _ORDERED_BY_TEXT else case((value.among(*_ORDERED_BY_TEXT), value.text()))
    ]


def _digits(value: Value) -> Sql:
    """The exact value, where a double may not tell it from its neighbours."""
    return case((every(value.long(), value.among(Family.EXACT)), value.exact()))


def _string(value: Value) -> Sql:
    """The text without its escapes, which sort otherwise; NULL for what is no string."""
    if value.families <= set(STRINGS):
        return value.string()
    escaped = every(call("TW_CONTAINS", value.text(), text("\\")), value.among(*STRINGS))
    return case((escaped, value.string()), (value.among(*STRINGS), call("SUBSTRING", value.text(), number(2))))
