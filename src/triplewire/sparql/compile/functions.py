"""The library of functions: each is a small entry that makes a value of values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from sqlglot import exp

from triplewire.sparql.algebra import Family
from triplewire.sparql.compile.addresses import fresh, iri, struuid, uuid
from triplewire.sparql.compile.arithmetic import Bind, arithmetic
from triplewire.sparql.compile.casts import CASTS, strdt
from triplewire.sparql.compile.comparisons import equals, ordered, same_term
from triplewire.sparql.compile.computed import Address, Text, Truth
from triplewire.sparql.compile.dates import part, timezone, tz
from triplewire.sparql.compile.hashes import digest
from triplewire.sparql.compile.ontologies import ONTOLOGICAL
from triplewire.sparql.compile.patterns import regex, replaced
from triplewire.sparql.compile.roundings import random, rounding
from triplewire.sparql.compile.sql import Sql, call, case, compare, equal, every, is_null, negate, some, text
from triplewire.sparql.compile.strings import (
    after,
    before,
    encode,
    joined,
    lang_matches,
    mapped,
    strlang,
    strlen,
    substr,
)
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


def _in(value: Value, *members: Value) -> Value:
    """An error on the left is one, even where there is nothing to compare it with."""
    found = some(*(equals(value, member) for member in members))
    return Truth(found if members else case((value.bound(), found)))


def _ordered(op: str) -> Callable[[Value, Value], Value]:
    return lambda left, right: Truth(ordered(op, left, right))


def _arithmetic(op: str, bind: Bind, *values: Value) -> Value:
    return arithmetic(op, list(values), bind)


def held(value: Value, bind: Bind) -> Value:
    """The same under names, for values that are used more than once."""
    match value:
        case Truth(condition):
            return Truth(bind(condition))
        case Text(inner, families, tag):
            return Text(bind(inner), families, bind(tag))
        case Address(inner):
            return Address(bind(inner))
    return value


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
    "isblank": _is(Family.BLANK),
    "isliteral": _is_literal,
    "isnumeric": _is(*_NUMBERS),
    "sameterm": lambda left, right: Truth(same_term(left, right)),
    "strstarts": _matching("TW_STARTS"),
    "strends": _matching("TW_ENDS"),
    "contains": _matching("TW_CONTAINS"),
    "regex": regex,
    **ONTOLOGICAL,
}
"""Operators and functions by the name that the algebra gives them, which compute so little that it may be repeated.
Logic and `bound` are not here, because they do not take values."""

NAMING: Mapping[str, Callable[..., Value]] = {
    **{op: partial(_arithmetic, op) for op in ("+", "-", "*", "/")},
    **{name: rounding(name) for name in ("abs", "ceil", "floor", "round")},
    **{name: part(name) for name in ("year", "month", "day", "hours", "minutes", "seconds")},
    **{name: digest(name) for name in ("md5", "sha1", "sha256", "sha384", "sha512")},
    "timezone": timezone,
    "tz": tz,
    "strlen": strlen,
    "ucase": mapped("TW_UPPER"),
    "lcase": mapped("TW_LOWER"),
    "encode_for_uri": encode,
    "concat": joined,
    "substr": substr,
    "strbefore": before,
    "strafter": after,
    "replace": replaced,
    "langmatches": lang_matches,
    "strlang": strlang,
    "strdt": strdt,
    "iri": iri,
    "uri": iri,
    **CASTS,
}
"""Those that name what they compute; they take what names it first."""

VOLATILE: Mapping[str, Callable[[Bind, int], Value]] = {
    "rand": random,
    "uuid": uuid,
    "struuid": struuid,
    "bnode": fresh,
}
"""Those without arguments whose value is another at each call; they take what tells calls apart."""


def effective(value: Value) -> Sql:
    """The effective boolean value of a term."""
    zero = some(equal(value.number(), exp.Literal.number(0)), exp.IsNan(this=value.number()))
    return case(
        (value.among(Family.BOOLEAN), value.narrowed(Family.BOOLEAN).boolean()),
        (value.among(*_NUMBERS), negate(zero)),
        (value.among(*_STRINGS), compare("!=", value.narrowed(*_STRINGS).string(), text(""))),
        (value.ill_typed(), exp.false()),
    )
