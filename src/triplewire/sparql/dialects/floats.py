"""Floats: the text of an xsd:double or xsd:float, in plain digits, made of the text that an engine gives it."""

from __future__ import annotations

from sqlglot import exp

from triplewire.sparql.compile.sql import (
    Sql,
    binary,
    call,
    case,
    compare,
    concat,
    double,
    equal,
    length,
    number,
    text,
    try_cast,
)

_WHOLE = exp.DataType.build("INT")


def plain_digits(value: Sql, written: Sql, mark: str) -> Sql:
    """`written` is the engine's text of the value, with an exponent after `mark` where it is far from 1."""
    whole = call("SUBSTRING", written, number(1), binary(exp.Sub, length(written), number(2)))
    return case(
        (exp.IsNan(this=value), text("NaN")),
        (equal(value, double(float("inf"))), text("INF")),
        (equal(value, double(float("-inf"))), text("-INF")),
        (_like(written, f"%{mark}%"), _spread(written, mark)),
        (_like(written, "%.0"), whole),
        default=written,
    )


def _spread(written: Sql, mark: str) -> Sql:
    """The digits with as many zeros, or the point at the place, that the exponent says."""
    sign = case((_like(written, "-%"), text("-")), default=text(""))
    mantissa = exp.SplitPart(this=written, delimiter=text(mark), part_index=number(1))
    # the bar marks the end, where a point and one zero are no digits
    digits = call(
        "TRANSLATE", call("REPLACE", concat(mantissa, text("|")), text(".0|"), text("")), text("-.|"), text("")
    )
    exponent = try_cast(exp.SplitPart(this=written, delimiter=text(mark), part_index=number(2)), _WHOLE)
    before = binary(exp.Add, exponent, number(1))
    zeros = call("REPEAT", text("0"), exp.Neg(this=exp.Paren(this=before)))
    split = concat(
        call("SUBSTRING", digits, number(1), before),
        text("."),
        call("SUBSTRING", digits, binary(exp.Add, exponent, number(2))),
    )
    body = case(
        (compare("<", exponent, number(0)), concat(text("0."), zeros, digits)),
        (compare("<=", length(digits), before), call("RPAD", digits, before, text("0"))),
        default=split,
    )
    return concat(sign, body)


def _like(written: Sql, form: str) -> Sql:
    return exp.Like(this=written, expression=text(form))
