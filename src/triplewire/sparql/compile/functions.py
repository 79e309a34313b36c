"""The library of functions: each is a small entry that makes a value of values."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp

from triplewire.sparql.algebra import Family
from triplewire.sparql.compile.comparisons import equals, ordered, same_term
from triplewire.sparql.compile.computed import Address, Text, Truth
from triplewire.sparql.compile.sql import Sql, call, case, compare, equal, every, is_null, negate, some, text
from triplewire.sparql.compile.values import Value

_NUMBERS = (Family.EXACT, Family.FLOAT, Family.DOUBLE)
_STRINGS = (Family.STRING, Family.TAGGED)


def _str(value: Value) -> Value:
    return Text(value.string())


def _lang(value: Value) -> Value:
    tag = value.language()
    found = text("") if is_null(tag) else exp.Coalesce(this=tag, expressions=[text("")])
    return Text(case((value.literal(), found)))


def _datatype(value: Value) -> Value:
    return Address(value.datatype())


def _is(*families: Family) -> Callable[[Value], Value]:
    return lambda value: Truth(case((value.bound(), value.among(*families))))


def _is_literal(value: Value) -> Value:
    return Truth(value.literal())


def _matching(name: str) -> Callable[[Value, Value], Value]:
    """A test of two strings whose tags, if there are any, are compatible."""

    def made(left: Value, right: Value) -> Value:
        tagged = every(right.among(Family.TAGGED), equal(left.language(), right.language()))
        fits = every(left.among(*_STRINGS), some(right.among(Family.STRING), tagged))
        strings = [each.narrowed(*_STRINGS).string() for each in (left, right)]
        return Truth(case((fits, call(name, *strings))))

    return made


def _regex(value: Value, pattern: Value, flags: Value | None = None) -> Value:
    fits = every(value.among(*_STRINGS), pattern.among(Family.STRING))
    wanted = text("") if flags is None else flags.narrowed(Family.STRING).string()
    strings = (value.narrowed(*_STRINGS).string(), pattern.narrowed(Family.STRING).string())
    return Truth(case((fits, call("TW_REGEX", *strings, wanted))))


def _in(value: Value, *members: Value) -> Value:
    """An error on the left is one, even where there is nothing to compare it with."""
    found = some(*(equals(value, member) for member in members))
    return Truth(found if members else case((value.bound(), found)))


def _ordered(op: str) -> Callable[[Value, Value], Value]:
    return lambda left, right: Truth(ordered(op, left, right))


def _not(condition: Callable[..., Value]) -> Callable[..., Value]:
    return lambda *values: Truth(negate(condition(*values).boolean()))


FUNCTIONS: Mapping[str, Callable[..., Value]] = {
    "=": lambda left, right: Truth(equals(left, right)),
    "!=": lambda left, right: Truth(negate(equals(left, right))),
    "<": _ordered("<"),
    "<=": _ordered("<="),
    ">": _ordered(">"),
    ">=": _ordered(">="),
    "in": _in,
    "not in": _not(_in),
    "str": _str,
    "lang": _lang,
    "datatype": _datatype,
    "isiri": _is(Family.IRI),
    "isblank": lambda value: Truth(case((value.bound(), exp.false()))),
    "isliteral": _is_literal,
    "isnumeric": _is(*_NUMBERS),
    "sameterm": lambda left, right: Truth(same_term(left, right)),
    "strstarts": _matching("TW_STARTS"),
    "strends": _matching("TW_ENDS"),
    "contains": _matching("TW_CONTAINS"),
    "regex": _regex,
}
"""Operators and functions by the name that the algebra gives them. Logic and `bound` are not here, because they do
not take values; nor is arithmetic, because it names what it computes."""


def effective(value: Value) -> Sql:
    """The effective boolean value of a term."""
    zero = some(equal(value.number(), exp.Literal.number(0)), exp.IsNan(this=value.number()))
    return case(
        (value.among(Family.BOOLEAN), value.narrowed(Family.BOOLEAN).boolean()),
        (value.among(*_NUMBERS), negate(zero)),
        (value.among(*_STRINGS), compare("!=", value.narrowed(*_STRINGS).string(), text(""))),
        (value.ill_typed(), exp.false()),
    )
