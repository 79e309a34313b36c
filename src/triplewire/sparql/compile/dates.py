"""Dates: the parts of a time or date, in its own time zone, read from its lexical form."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from triplewire.model.terms import XSD
from triplewire.sparql.algebra import Family
from triplewire.sparql.compile.arithmetic import Bind
from triplewire.sparql.compile.columns import Derived
from triplewire.sparql.compile.computed import Number, Text, typed
from triplewire.sparql.compile.sql import (
    DECIMAL,
    DOUBLE,
    VARCHAR,
    Sql,
    binary,
    call,
    case,
    cast,
    concat,
    equal,
    is_null,
    null,
    number,
    present,
    text,
    try_cast,
)
from triplewire.sparql.compile.values import TIMES, Value

_FORM = r"^(-?[0-9]+)-([0-9]{2})-([0-9]{2})(T([0-9]{2}):([0-9]{2}):([0-9.]+))?(Z|[+-][0-9]{2}:[0-9]{2})?$"
_GROUPS = {"year": 1, "month": 2, "day": 3, "hours": 5, "minutes": 6, "seconds": 7, "zone": 8}
_DAY = (Family.DATETIME,)
DURATION = XSD + "dayTimeDuration"


def part(name: str) -> Callable[[Bind, Value], Value]:
    """YEAR to SECONDS. The parts of the day are those of times only; seconds are decimals."""
    families = TIMES if name in ("year", "month", "day") else _DAY
    rank = number(2 if name == "seconds" else 1)

    def made(bind: Bind, value: Value) -> Value:
        found = _part(name, value, families, bind)
        if is_null(found):
            return Value()
        exact = bind(try_cast(found, DECIMAL))
        return Number(rank, exact, cast(exact, DOUBLE), frozenset({Family.EXACT}))

    return made


def tz(bind: Bind, value: Value) -> Value:
    """The zone as it is written; none is the empty string."""
    return Text(bind(_part("zone", value, TIMES, bind)))


def timezone(bind: Bind, value: Value) -> Value:
    """The zone as a duration; none is an error."""
    zone = bind(_part("zone", value, TIMES, bind))
    if is_null(zone):
        return Value()
    hours, minutes = (_digits(zone, start) for start in (2, 5))
    sign = case((call("TW_STARTS", zone, text("-")), text("-PT")), default=text("PT"))
    long = concat(sign, _unit(hours, "H"), _unit(minutes, "M"))
    utc = exp.In(this=zone, expressions=[text(each) for each in ("Z", "+00:00", "-00:00")])
    lexical = case((utc, text("PT0S")), (equal(zone, text("")), null()), default=long)
    made = bind(typed(lexical, DURATION))
    known = case((present(made), text(DURATION)))
    return Derived(
        families=frozenset({Family.OTHER}),
        made=made,
        made_facet=lambda name: known if name == "datatype" else null(),
    )


def _digits(zone: Sql, start: int) -> Sql:
    """Two digits without a zero in front."""
    return cast(try_cast(call("SUBSTRING", zone, number(start), number(2)), exp.DataType.build("INT")), VARCHAR)


def _unit(digits: Sql, letter: str) -> Sql:
    return case((equal(digits, text("0")), text("")), default=concat(digits, text(letter)))


def _part(name: str, value: Value, families: tuple[Family, ...], bind: Bind) -> Sql:
    if not value.families & set(families):
        return null()
    kept = value.narrowed(*families)
    lexical = bind(case((value.among(*families), _settled(kept.string()))))
    return call("TW_EXTRACT", lexical, text(_FORM), number(_GROUPS[name]))


def _settled(lexical: Sql) -> Sql:
    """Midnight at the end of a day is the start of the next."""
    day = try_cast(call("SUBSTRING", lexical, number(1), number(10)), exp.DataType.build("DATE"))
    next_day = cast(binary(exp.Add, day, number(1)), VARCHAR)
    rest = call("SUBSTRING", lexical, number(14))
    late = exp.Like(this=lexical, expression=text("%T24:%"))
    return case((late, concat(next_day, text("T00"), rest)), default=lexical)
