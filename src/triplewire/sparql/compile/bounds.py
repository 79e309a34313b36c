"""Bounds: what follows for the columns of relations from a condition that is TRUE.

Only what is simple is followed. Of the rest nothing follows, which is always right.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from sqlglot import exp

from triplewire.sparql.compile.lexicals import body, unescaped
from triplewire.sparql.compile.sql import Sql, call, is_false, is_null, length, number
from triplewire.sparql.readings import Constant, Interval, Intervals, Kind

Key: TypeAlias = tuple[str, str]
"""An alias and a column of it."""

Bounds: TypeAlias = Mapping[Key, tuple[Intervals, ...]]
"""The value of each column lies in all of these. A column that is not there may have any value, or none."""

Found: TypeAlias = Bounds | None
"""None where the condition is never TRUE."""

_MIRRORED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.EQ: exp.EQ,
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
}
_KINDS: dict[exp.DType, Kind] = {exp.DType.DOUBLE: "number", exp.DType.TIMESTAMP: "time"}
_ESCAPED = frozenset('"\\\x7f\ufffe\uffff')
_LAST = chr(0x10FFFF)
_FIRST = ("<", '"', "_")
"""What the text of a term begins with."""


def bounds(condition: Sql) -> Found:
    """Of a condition that holds."""
    match condition:
        case exp.Paren():
            return bounds(condition.this)
        case exp.And():
            return conjoined([bounds(condition.left), bounds(condition.right)])
        case exp.Or():
            return disjoined([bounds(condition.left), bounds(condition.right)])
        case exp.Case() if condition.this is None:
            return disjoined(_branches(condition))
        case exp.Coalesce():
            return disjoined(map(bounds, (condition.this, *condition.expressions)))
        case exp.In() if isinstance(condition.this, exp.Column) and condition.expressions:
            return _listed(condition.this, [constant(each) for each in condition.expressions])
        case exp.Not(this=exp.Is(this=exp.Column() as held, expression=exp.Null())):
            return {key_of(held): ((Interval(),),)}
        case exp.Anonymous(this="TW_STARTS"):
            return _starting(*condition.expressions)
    if is_false(condition) or is_null(condition):
        return None
    return _compared(condition)


def conjoined(parts: Iterable[Found]) -> Found:
    """What follows from all of them together."""
    made: dict[Key, tuple[Intervals, ...]] = {}
    for part in parts:
        if part is None:
            return None
        for key, found in part.items():
            made[key] = met((*made.get(key, ()), *found))
    return made


def met(found: Iterable[Intervals]) -> tuple[Intervals, ...]:
    """The same, with all that are one interval as one."""
    single, others = Interval(), list[Intervals]()
    for each in dict.fromkeys(found):
        if len(each) == 1:
            single = single.met(each[0])
        else:
            others.append(each)
    return ((single,), *others) if single != Interval() or not others else tuple(others)


def disjoined(parts: Iterable[Found]) -> Found:
    """What follows from any of them. Of several intervals for one column the first does."""
    known = [each for each in parts if each is not None]
    if not known:
        return None
    shared = [key for key in known[0] if all(key in each for each in known)]
    return {key: (tuple(dict.fromkeys(one for each in known for one in _one(each[key]))),) for key in shared}


def _one(found: tuple[Intervals, ...]) -> Intervals:
    return next((each for each in found if each != (Interval(),)), found[0])


def _branches(condition: exp.Case) -> Iterator[Found]:
    """One of the branches was taken, and what it gives is TRUE."""
    for each in condition.args["ifs"]:
        yield conjoined([bounds(each.this), bounds(each.args["true"])])
    default = condition.args.get("default")
    yield None if default is None else bounds(default)


def _compared(condition: Sql) -> Found:
    kind = type(condition)
    if kind not in _MIRRORED:
        return {}
    left, right = condition.this, condition.expression
    if not isinstance(left, exp.Column):
        left, right, kind = right, left, _MIRRORED[kind]
    known = constant(right)
    return {key_of(left): ((_interval(kind, known),),)} if isinstance(left, exp.Column) and known else {}


def _interval(kind: type[exp.Expr], known: Constant) -> Interval:
    """A bound that is not met itself makes no difference."""
    least = (known,) if kind in (exp.EQ, exp.GT, exp.GTE) else ()
    return Interval(least, (known,) if kind in (exp.EQ, exp.LT, exp.LTE) else ())


def _listed(held: exp.Column, members: list[Constant | None]) -> Found:
    known = [each for each in members if each is not None]
    return {key_of(held): (points(known),)} if len(known) == len(members) else {}


def points(constants: Iterable[Constant]) -> Intervals:
    """These values and no others."""
    return tuple(Interval((each,), (each,)) for each in dict.fromkeys(constants))


def key_of(held: exp.Column) -> Key:
    return held.table, held.name


def constant(sql: Sql) -> Constant | None:
    """What the SQL is, if it is a constant that is understood."""
    match sql:
        case exp.Paren():
            return constant(sql.this)
        case exp.Literal() if sql.is_string:
            return Constant("text", sql.name)
        case exp.Cast(this=exp.Literal() as written) if sql.to.this in _KINDS:
            return Constant(_KINDS[sql.to.this], written.name)
        case exp.Add() | exp.Sub():
            return _moved(sql)
    return None


def _moved(sql: exp.Binary) -> Constant | None:
    """A time that is moved by whole hours."""
    start, by = constant(sql.this), sql.expression
    hourly = isinstance(by, exp.Interval) and isinstance(by.this, exp.Literal) and str(by.args.get("unit")) == "HOUR"
    if start is None or start.kind != "time" or not hourly:
        return None
    hours = int(by.this.name)
    return Constant("time", start.text, start.hours + (hours if isinstance(sql, exp.Add) else -hours))


def _starting(value: Sql, start: Sql) -> Found:
    """Of the text of a term. What it begins with may stand escaped in a literal, of which nothing is said then."""
    held = _read(value)
    if held is None or not (isinstance(start, exp.Literal) and start.is_string and start.name):
        return {}
    if any(each in _ESCAPED or each < " " for each in start.name) or start.name.endswith(_LAST):
        return {}
    return {key_of(held): (tuple(prefixed(first + start.name) for first in _FIRST),)}


def _read(value: Sql) -> exp.Column | None:
    """The column that holds the term whose text the value is, if it is that, where it has one."""
    found = value.find(exp.Column)
    if found is None:
        return None
    held = found.copy()
    inner = call("SUBSTRING", held, number(2), exp.Sub(this=length(held), expression=number(2)))
    forms = (inner, unescaped(inner), unescaped(body(held)))
    return held if all(each in forms for each in _results(value, forms)) else None


def _results(value: Sql, forms: tuple[Sql, ...]) -> list[Sql]:
    """What a CASE may give, where it gives anything."""
    if value in forms or not isinstance(value, exp.Case) or value.args.get("default") is not None:
        return [value]
    return [each.args["true"] for each in value.args["ifs"]]


def prefixed(start: str) -> Interval:
    """All texts that begin so, and the one that comes next."""
    following = ord(start[-1]) + 1
    after = start[:-1] + chr(0xE000 if following == 0xD800 else following)
    return Interval((Constant("text", start),), (Constant("text", after),))
