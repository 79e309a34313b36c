"""Scan predicates: the values that the rows used by each scan must have, derived from SQL conditions that hold.

Readers skip files by them (zone maps, Bloom filters). They follow from the query's own conditions, so no answer
depends on whether a reader uses them. Only simple conditions are followed; from all others nothing is derived, which
is always right.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from sqlglot import exp

from triplewire.sparql.compiler.facets import lexical_body, unescape
from triplewire.sparql.sql import Sql, call, is_false, is_null, length, number

ConstantKind: TypeAlias = Literal["text", "number", "time"]


@dataclass(frozen=True)
class SqlConstant:
    """A constant as it is written in SQL: a text, a double, or a time in UTC that is moved by some hours."""

    kind: ConstantKind
    text: str
    hours: int = 0

    def fill(self, fillings: Mapping[str, str]) -> SqlConstant:
        return replace(self, text=fillings[self.text]) if self.text in fillings else self


@dataclass(frozen=True)
class ValueInterval:
    """A closed interval: values at least each of the one and at most each of the other constants. Without constants it
    holds all values; NULL is none."""

    least: tuple[SqlConstant, ...] = ()
    greatest: tuple[SqlConstant, ...] = ()

    def intersect(self, other: ValueInterval) -> ValueInterval:
        least = dict.fromkeys((*self.least, *other.least))
        return ValueInterval(tuple(least), tuple(dict.fromkeys((*self.greatest, *other.greatest))))

    def fill(self, fillings: Mapping[str, str]) -> ValueInterval:
        least, greatest = (tuple(each.fill(fillings) for each in part) for part in (self.least, self.greatest))
        return ValueInterval(least, greatest)


ValueIntervals: TypeAlias = tuple[ValueInterval, ...]
"""A union of intervals; without any it is empty."""


@dataclass(frozen=True)
class ColumnBound:
    """A row is of no use unless its value in the column lies in one of the intervals."""

    column: str
    intervals: ValueIntervals

    def fill(self, fillings: Mapping[str, str]) -> ColumnBound:
        return ColumnBound(self.column, tuple(each.fill(fillings) for each in self.intervals))


@dataclass(frozen=True)
class SemiJoinTie:
    """A row is of no use unless its value in the column is that of another column, in a row of use to another scan."""

    column: str
    alias: str
    """The other scan."""
    other: str


@dataclass(frozen=True)
class ScanPredicate:
    """A scan of `quads` or `events` under an alias. A row is of use only if it is within all bounds of one of the ways
    in which the scan takes part in the query, and has all ties."""

    relation: str
    alias: str
    alternatives: tuple[tuple[ColumnBound, ...], ...]
    ties: tuple[SemiJoinTie, ...] = ()

    def fill(self, fillings: Mapping[str, str]) -> ScanPredicate:
        return replace(
            self, alternatives=tuple(tuple(each.fill(fillings) for each in way) for way in self.alternatives)
        )


ColumnKey: TypeAlias = tuple[str, str]
"""An alias and a column of it."""

ColumnBounds: TypeAlias = Mapping[ColumnKey, tuple[ValueIntervals, ...]]
"""The value of each column lies in all of these. A column that is not there may have any value, or none."""

DerivedBounds: TypeAlias = ColumnBounds | None
"""None where the condition is never TRUE."""

_MIRRORED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.EQ: exp.EQ,
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
}
_KINDS: dict[exp.DType, ConstantKind] = {exp.DType.DOUBLE: "number", exp.DType.TIMESTAMP: "time"}
_ESCAPED = frozenset('"\\\x7f\ufffe\uffff')
_LAST = chr(0x10FFFF)
_FIRST = ("<", '"', "_")
"""The first characters of IRIs, literals and blank nodes."""


def derive_bounds(condition: Sql) -> DerivedBounds:
    """Derive intervals of columns from a condition that holds."""
    match condition:
        case exp.Paren():
            return derive_bounds(condition.this)
        case exp.And():
            return conjoin_bounds([derive_bounds(condition.left), derive_bounds(condition.right)])
        case exp.Or():
            return disjoin_bounds([derive_bounds(condition.left), derive_bounds(condition.right)])
        case exp.Case() if condition.this is None:
            return disjoin_bounds(_branches(condition))
        case exp.Coalesce():
            return disjoin_bounds(map(derive_bounds, (condition.this, *condition.expressions)))
        case exp.In() if isinstance(condition.this, exp.Column) and condition.expressions:
            return _listed(condition.this, [read_constant(each) for each in condition.expressions])
        case exp.Not(this=exp.Is(this=exp.Column() as held, expression=exp.Null())):
            return {column_key(held): ((ValueInterval(),),)}
        case exp.Anonymous(this="TW_STARTS"):
            return _starting(*condition.expressions)
    if is_false(condition) or is_null(condition):
        return None
    return _compared(condition)


def conjoin_bounds(parts: Iterable[DerivedBounds]) -> DerivedBounds:
    """Combine intervals that hold together."""
    made: dict[ColumnKey, tuple[ValueIntervals, ...]] = {}
    for part in parts:
        if part is None:
            return None
        for key, found in part.items():
            made[key] = meet_intervals((*made.get(key, ()), *found))
    return made


def meet_intervals(found: Iterable[ValueIntervals]) -> tuple[ValueIntervals, ...]:
    """Merge all single intervals into one."""
    single, others = ValueInterval(), list[ValueIntervals]()
    for each in dict.fromkeys(found):
        if len(each) == 1:
            single = single.intersect(each[0])
        else:
            others.append(each)
    return ((single,), *others) if single != ValueInterval() or not others else tuple(others)


def disjoin_bounds(parts: Iterable[DerivedBounds]) -> DerivedBounds:
    """Combine intervals of which one set holds. If a column has several intervals the first is used."""
    known = [each for each in parts if each is not None]
    if not known:
        return None
    shared = [key for key in known[0] if all(key in each for each in known)]
    return {key: (tuple(dict.fromkeys(one for each in known for one in _one(each[key]))),) for key in shared}


def _one(found: tuple[ValueIntervals, ...]) -> ValueIntervals:
    return next((each for each in found if each != (ValueInterval(),)), found[0])


def _branches(condition: exp.Case) -> Iterator[DerivedBounds]:
    """Use that one branch was taken, and that its result is TRUE."""
    for each in condition.args["ifs"]:
        yield conjoin_bounds([derive_bounds(each.this), derive_bounds(each.args["true"])])
    default = condition.args.get("default")
    yield None if default is None else derive_bounds(default)


def _compared(condition: Sql) -> DerivedBounds:
    kind = type(condition)
    if kind not in _MIRRORED:
        return {}
    left, right = condition.this, condition.expression
    if not isinstance(left, exp.Column):
        left, right, kind = right, left, _MIRRORED[kind]
    known = read_constant(right)
    return {column_key(left): ((_interval(kind, known),),)} if isinstance(left, exp.Column) and known else {}


def _interval(kind: type[exp.Expr], known: SqlConstant) -> ValueInterval:
    """Derive the closed interval of an inequality: including the bound itself is harmless."""
    least = (known,) if kind in (exp.EQ, exp.GT, exp.GTE) else ()
    return ValueInterval(least, (known,) if kind in (exp.EQ, exp.LT, exp.LTE) else ())


def _listed(held: exp.Column, members: list[SqlConstant | None]) -> DerivedBounds:
    known = [each for each in members if each is not None]
    return {column_key(held): (point_intervals(known),)} if len(known) == len(members) else {}


def point_intervals(constants: Iterable[SqlConstant]) -> ValueIntervals:
    return tuple(ValueInterval((each,), (each,)) for each in dict.fromkeys(constants))


def column_key(held: exp.Column) -> ColumnKey:
    return held.table, held.name


def read_constant(sql: Sql) -> SqlConstant | None:
    """Return the constant that the SQL is; None if it is not one, or of an unknown kind."""
    match sql:
        case exp.Paren():
            return read_constant(sql.this)
        case exp.Literal() if sql.is_string:
            return SqlConstant("text", sql.name)
        case exp.Cast(this=exp.Literal() as written) if sql.to.this in _KINDS:
            return SqlConstant(_KINDS[sql.to.this], written.name)
        case exp.Add() | exp.Sub():
            return _moved(sql)
    return None


def _moved(sql: exp.Binary) -> SqlConstant | None:
    """Read a time that is shifted by whole hours."""
    start, by = read_constant(sql.this), sql.expression
    hourly = isinstance(by, exp.Interval) and isinstance(by.this, exp.Literal) and str(by.args.get("unit")) == "HOUR"
    if start is None or start.kind != "time" or not hourly:
        return None
    hours = int(by.this.name)
    return SqlConstant("time", start.text, start.hours + (hours if isinstance(sql, exp.Add) else -hours))


def _starting(value: Sql, start: Sql) -> DerivedBounds:
    """Derive the interval of a prefix test. In a literal the prefix may be escaped; then nothing is derived."""
    held = _read(value)
    if held is None or not (isinstance(start, exp.Literal) and start.is_string and start.name):
        return {}
    if any(each in _ESCAPED or each < " " for each in start.name) or start.name.endswith(_LAST):
        return {}
    return {column_key(held): (tuple(prefix_interval(first + start.name) for first in _FIRST),)}


def _read(value: Sql) -> exp.Column | None:
    """The column that holds the term whose text the value is, if it is that, where it has one."""
    found = value.find(exp.Column)
    if found is None:
        return None
    held = found.copy()
    inner = call("SUBSTRING", held, number(2), exp.Sub(this=length(held), expression=number(2)))
    forms = (inner, unescape(inner), unescape(lexical_body(held)))
    return held if all(each in forms for each in _results(value, forms)) else None


def _results(value: Sql, forms: tuple[Sql, ...]) -> list[Sql]:
    """Return the non-NULL results of a CASE."""
    if value in forms or not isinstance(value, exp.Case) or value.args.get("default") is not None:
        return [value]
    return [each.args["true"] for each in value.args["ifs"]]


def prefix_interval(start: str) -> ValueInterval:
    """Return the interval of all texts with this prefix, and of the one text that comes next."""
    following = ord(start[-1]) + 1
    after = start[:-1] + chr(0xE000 if following == 0xD800 else following)
    return ValueInterval((SqlConstant("text", start),), (SqlConstant("text", after),))
