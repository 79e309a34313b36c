"""Strings: functions of strings, which keep the language tag of what they are given where SPARQL says so.

`bind` names a value that is used more than once.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from triplewire.sparql.algebra import Family
from triplewire.sparql.compile.arithmetic import Bind
from triplewire.sparql.compile.computed import Number, Text, Truth, tagged
from triplewire.sparql.compile.sql import (
    DECIMAL,
    DOUBLE,
    Sql,
    binary,
    call,
    case,
    cast,
    compare,
    concat,
    double,
    equal,
    every,
    is_null,
    length,
    negate,
    null,
    number,
    present,
    some,
    text,
)
from triplewire.sparql.compile.values import NUMERIC, STRINGS, Value

_TAG = "[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8})*"


def worded(value: Value, bind: Bind) -> Text:
    """The value where it is a string, tagged or not; an error where it is not."""
    if not value.families & set(STRINGS):
        return Text(null())
    kept = value.narrowed(*STRINGS)
    inner = bind(_where(value, STRINGS, kept.string()))
    return tagged(inner, bind(kept.language()) if Family.TAGGED in value.families else null())


def plain(value: Value, bind: Bind) -> Sql:
    """The text of a string without a tag; NULL for anything else."""
    return bind(_where(value, (Family.STRING,), value.narrowed(Family.STRING).string()))


def _where(value: Value, families: tuple[Family, ...], sql: Sql) -> Sql:
    return case((value.among(*families), sql)) if value.families & set(families) else null()


def whole(value: Sql, bind: Bind) -> Number:
    """An integer, of SQL that gives one."""
    made = bind(value)
    return Number(number(1), _exact(made), _double(made), frozenset({Family.EXACT}))


def _exact(value: Sql) -> Sql:
    return null() if is_null(value) else cast(value, DECIMAL)


def _double(value: Sql) -> Sql:
    return null() if is_null(value) else cast(value, DOUBLE)


def strlen(bind: Bind, value: Value) -> Value:
    return whole(length(worded(value, bind).value), bind)


def mapped(name: str) -> Callable[[Bind, Value], Value]:
    """A function that changes the text and keeps the tag."""

    def made(bind: Bind, value: Value) -> Value:
        given = worded(value, bind)
        return tagged(bind(call(name, given.value)), given.tag)

    return made


def encode(bind: Bind, value: Value) -> Value:
    return Text(bind(call("TW_ENCODE", worded(value, bind).value)))


def joined(bind: Bind, *values: Value) -> Value:
    """CONCAT: in the language of all of them, if they share one."""
    given = [worded(value, bind) for value in values]
    if not given:
        return Text(text(""))
    if any(is_null(each.value) for each in given):
        return Text(null())
    made = bind(concat(*(each.value for each in given))) if len(given) > 1 else given[0].value
    if any(is_null(each.tag) for each in given):
        return Text(made)
    shared = every(*(equal(given[0].tag, each.tag) for each in given[1:]))
    return tagged(made, bind(case((shared, given[0].tag))))


def substr(bind: Bind, value: Value, start: Value, count: Value | None = None) -> Value:
    """By positions that are rounded as XPath rounds; what lies outside of the string is not there."""
    given = worded(value, bind)
    first = _rounded(start, bind)
    if count is None:
        return tagged(bind(_from(given.value, first)), given.tag)
    end = bind(binary(exp.Add, first, _rounded(count, bind)))
    return tagged(bind(_between(given.value, first, end)), given.tag)


def _rounded(value: Value, bind: Bind) -> Sql:
    """A number as a whole double; a half goes up."""
    if not value.families & NUMERIC:
        return null()
    at = bind(value.number())
    return bind(call("TW_FLOOR", binary(exp.Add, at, double(0.5))))


_LAST = 2_000_000_000
"""No string is longer, so positions are cut here before they are made integers."""


def _from(value: Sql, first: Sql) -> Sql:
    if is_null(value) or is_null(first):
        return null()
    empty = case((present(value), text("")))
    return case((_is_nan(first), empty), (present(first), call("SUBSTRING", value, _position(first))))


def _between(value: Sql, first: Sql, end: Sql) -> Sql:
    if is_null(value) or is_null(first) or is_null(end):
        return null()
    here, there = _position(first), _position(end)
    empty = some(_is_nan(first), _is_nan(end), compare("<=", there, here))
    count = binary(exp.Sub, there, here)
    return case((empty, case((present(value), text("")))), (present(end), call("SUBSTRING", value, here, count)))


def _is_nan(value: Sql) -> Sql:
    return null() if is_null(value) else exp.IsNan(this=value)


def _position(value: Sql) -> Sql:
    low = case((compare("<", value, double(1.0)), double(1.0)), default=value)
    cut = case((compare(">", value, double(float(_LAST))), double(float(_LAST))), default=low)
    return cast(cut, exp.DataType.build("INT"))


def fits(left: Text, right: Text) -> Sql:
    """Are they compatible: may the second be looked for in the first?"""
    same = equal(left.tag, right.tag)
    without = negate(present(right.tag))
    return every(present(left.value), present(right.value), some(without, same))


def before(bind: Bind, value: Value, part: Value) -> Value:
    left, right, at = _found(value, part, bind)
    made = call("SUBSTRING", left.value, number(1), binary(exp.Sub, at, number(1)))
    return _part(left, right, at, made, bind)


def after(bind: Bind, value: Value, part: Value) -> Value:
    left, right, at = _found(value, part, bind)
    made = call("SUBSTRING", left.value, binary(exp.Add, at, length(right.value)))
    return _part(left, right, at, made, bind)


def _found(value: Value, part: Value, bind: Bind) -> tuple[Text, Text, Sql]:
    left, right = worded(value, bind), worded(part, bind)
    if is_null(left.value) or is_null(right.value):
        return Text(null()), Text(null()), null()
    empty = equal(right.value, text(""))
    return left, right, bind(case((empty, number(1)), default=call("TW_POSITION", left.value, right.value)))


def _part(left: Text, right: Text, at: Sql, made: Sql, bind: Bind) -> Value:
    """With the tag where the part was found; the empty string without it where not."""
    if is_null(at):
        return Text(null())
    here = compare(">", at, number(0))
    inner = case((here, made), default=text(""))
    return tagged(bind(case((fits(left, right), inner))), bind(case((here, left.tag))) if _tagged(left) else null())


def _tagged(value: Text) -> bool:
    return not is_null(value.tag)


def lang_matches(bind: Bind, value: Value, wanted: Value) -> Value:
    """By basic filtering: the range is the tag or starts it, at a hyphen; `*` is any tag."""
    tag = bind(call("LOWER", plain(value, bind)))
    span = bind(call("LOWER", plain(wanted, bind)))
    any_tag = equal(span, text("*"))
    prefix = call("TW_STARTS", tag, concat(span, text("-")))
    starts = every(compare("!=", span, text("")), prefix)
    matched = case((any_tag, compare("!=", tag, text(""))), default=some(equal(tag, span), starts))
    return Truth(case((every(present(tag), present(span)), matched)))


def strlang(bind: Bind, value: Value, tag: Value) -> Value:
    """The tag in lower case, as all are."""
    name = plain(tag, bind)
    lexical = plain(value, bind)
    valid = call("TW_FULL_MATCH", name, text(_TAG))
    return Text(bind(case((valid, lexical))), frozenset({Family.TAGGED}), bind(call("LOWER", name)))
