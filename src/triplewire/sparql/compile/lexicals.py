"""Lexicals: what stands between the quotes of a literal, and numbers as text."""

from __future__ import annotations

from sqlglot import exp

from triplewire.sparql.compile.sql import (
    Sql,
    call,
    case,
    compare,
    double,
    equal,
    every,
    length,
    number,
    text,
)


def floating_text(value: Sql, digits: Sql) -> Sql:
    """A float or double as a string: plain digits from 0.001 to below a million, where all engines write the same.

    Outside of that, where SPARQL wants an exponent and engines differ, it is an error.
    """
    size = exp.Abs(this=value)
    plain = every(compare(">=", size, double(0.001)), compare("<", size, double(1e6)))
    whole = call("SUBSTRING", digits, number(1), exp.Sub(this=length(digits), expression=number(2)))
    return case(
        (exp.IsNan(this=value), text("NaN")),
        (equal(value, double(float("inf"))), text("INF")),
        (equal(value, double(float("-inf"))), text("-INF")),
        (equal(value, double(0.0)), text("0")),
        (plain, case((call("TW_ENDS", digits, text(".0")), whole), default=digits)),
    )


def body(term: Sql) -> Sql:
    """What stands between the quotes of a literal: the last quote is the closing one."""
    suffix = exp.SplitPart(this=term, delimiter=text('"'), part_index=number(-1))
    rest = exp.Sub(this=exp.Sub(this=length(term), expression=length(suffix)), expression=number(2))
    return call("SUBSTRING", term, number(2), rest)


def digits(term: Sql) -> Sql:
    """The same for a number, which holds no escapes."""
    return exp.SplitPart(this=term, delimiter=text('"'), part_index=number(2))


def unescaped(inner: Sql) -> Sql:
    """Most literals hold no escapes; only those that do are decoded."""
    return case((call("TW_CONTAINS", inner, text("\\")), call("TW_UNESCAPE", inner)), default=inner)
