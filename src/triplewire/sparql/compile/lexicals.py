"""Lexicals: what stands between the quotes of a literal."""

from __future__ import annotations

from sqlglot import exp

from triplewire.sparql.compile.sql import Sql, call, case, length, number, text


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
