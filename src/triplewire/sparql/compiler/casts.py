"""Casts to the types of XML Schema, STRDT, and the parts of dates and times in their own time zone."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp

from triplewire.model.terms import XSD, XSD_STRING
from triplewire.sparql import sql
from triplewire.sparql.algebra import Family
from triplewire.sparql.compiler.arithmetic import BindSql
from triplewire.sparql.compiler.facets import facets_of
from triplewire.sparql.compiler.strings import plain_string
from triplewire.sparql.compiler.terms import ConstantValue, DerivedTerm
from triplewire.sparql.compiler.values import (
    ANY,
    NOT_LITERAL,
    NUMERIC,
    TIMES,
    ComputedBoolean,
    ComputedNumber,
    ComputedString,
    Value,
    typed_literal,
)
from triplewire.sparql.constants import DECIMAL_FORM, DOUBLE_FORM, INTEGER_FORM, INTEGERS
from triplewire.sparql.sql import Sql, call, case, cast, equal, is_null, negate, null, number, some, text

_LONG = exp.DataType.build("DECIMAL(38, 0)")
_LARGEST_FLOAT = 3.4028235677973366e38
"""The least number that rounds to an infinite xsd:float."""


def to_string(bind: BindSql, value: Value) -> Value:
    """Cast to xsd:string: the canonical form of numbers and booleans, the text of all else but blank nodes."""
    branches = []
    if value.families & NUMERIC:
        numeric = ComputedNumber(value.rank(), value.exact(), value.number(), value.families & NUMERIC)
        branches.append((value.among(*NUMERIC), sql.coalesce(numeric.string(), value.string())))
    if Family.BOOLEAN in value.families:
        branches.append((value.among(Family.BOOLEAN), ComputedBoolean(value.boolean()).string()))
    return ComputedString(bind(case(*branches, default=value.string())))


def to_boolean(bind: BindSql, value: Value) -> Value:
    lexical = _trim(value, bind)
    at = value.number()
    read = (
        null()
        if is_null(lexical)
        else case(
            (sql.among(lexical, ("true", "1")), sql.truth(True)), (sql.among(lexical, ("false", "0")), sql.truth(False))
        )
    )
    zero = some(equal(at, sql.double(0.0)), null() if is_null(at) else exp.IsNan(this=at))
    made = case((value.among(Family.BOOLEAN), value.boolean()), (value.among(*NUMERIC), negate(zero)), default=read)
    return ComputedBoolean(bind(made))


def to_integer(bind: BindSql, value: Value) -> Value:
    at = value.number()
    cut = case((sql.compare(">=", at, sql.double(0.0)), call("TW_FLOOR", at)), default=call("TW_CEIL", at))
    floating = null() if is_null(at) else sql.try_cast(sql.try_cast(cut, _LONG), sql.DECIMAL)
    exact = value.exact()
    whole = null() if is_null(exact) else sql.try_cast(call("TW_TRUNCATE", exact), sql.DECIMAL)
    return _exact(1, value, INTEGER_FORM, whole, floating, bind)


def to_decimal(bind: BindSql, value: Value) -> Value:
    at = value.number()
    # by its digits, because engines make others of a double that is scaled up
    floating = null() if is_null(at) else sql.try_cast(cast(at, sql.VARCHAR), sql.DECIMAL)
    return _exact(2, value, DECIMAL_FORM, value.exact(), floating, bind)


def _exact(rank: int, value: Value, form: str, exact: Sql, floating: Sql, bind: BindSql) -> Value:
    lexical = _trim(value, bind)
    read = null() if is_null(lexical) else case((_matches(lexical, form), sql.try_cast(lexical, sql.DECIMAL)))
    made = case(
        (value.among(Family.EXACT), exact),
        (value.among(Family.FLOAT, Family.DOUBLE), floating),
        (value.among(Family.BOOLEAN), _bit(value, sql.DECIMAL)),
        default=read,
    )
    held = bind(made)
    if is_null(held):
        return Value()
    return ComputedNumber(number(rank), held, cast(held, sql.DOUBLE), frozenset({Family.EXACT}))


def to_double(bind: BindSql, value: Value) -> Value:
    made = bind(_floating(value, bind))
    return Value() if is_null(made) else ComputedNumber(number(4), null(), made, frozenset({Family.DOUBLE}))


def to_float(bind: BindSql, value: Value) -> Value:
    made = bind(_floating(value, bind))
    if is_null(made):
        return Value()
    far = sql.compare(">=", exp.Abs(this=made), sql.double(_LARGEST_FLOAT))
    rounded = case(
        (far, sql.binary(exp.Mul, made, sql.double(float("inf")))),
        default=cast(sql.try_cast(made, sql.FLOAT), sql.DOUBLE),
    )
    return ComputedNumber(number(3), null(), bind(rounded), frozenset({Family.FLOAT}))


def _floating(value: Value, bind: BindSql) -> Sql:
    lexical = _trim(value, bind)
    read = null() if is_null(lexical) else case((_matches(lexical, DOUBLE_FORM), sql.try_cast(lexical, sql.DOUBLE)))
    return case(
        (value.among(*NUMERIC), value.number()), (value.among(Family.BOOLEAN), _bit(value, sql.DOUBLE)), default=read
    )


def _bit(value: Value, to: exp.DataType) -> Sql:
    return cast(cast(value.boolean(), exp.DataType.build("INT")), to)


def _trim(value: Value, bind: BindSql) -> Sql:
    """The text of a string, without the blanks around it, which XML Schema does not see."""
    return bind(call("TW_TRIM", plain_string(value, bind)))


def _matches(lexical: Sql, form: str) -> Sql:
    return call("TW_FULL_MATCH", lexical, text(form))


def to_datetime(bind: BindSql, value: Value) -> Value:
    """Cast to xsd:dateTime; a date becomes its first instant."""
    day = call("TW_EXTRACT", value.string(), text("^(.*?)(Z|[+-][0-9]{2}:[0-9]{2})?$"), number(1))
    zone = call("TW_EXTRACT", value.string(), text("(Z|[+-][0-9]{2}:[0-9]{2})$"), number(1))
    started = sql.concat(day, text("T00:00:00"), zone)
    return _temporal("dateTime", Family.DATETIME, value, Family.DATE, started, bind)


def to_date(bind: BindSql, value: Value) -> Value:
    """Cast to xsd:date: the day in the time's own zone."""
    day = call("TW_EXTRACT", value.string(), text("^(.*)T"), number(1))
    zone = call("TW_EXTRACT", value.string(), text("T.*?(Z|[+-][0-9]{2}:[0-9]{2})$"), number(1))
    return _temporal("date", Family.DATE, value, Family.DATETIME, sql.concat(day, zone), bind)


def _temporal(name: str, family: Family, value: Value, other: Family, converted: Sql, bind: BindSql) -> Value:
    lexical = case((value.among(family), value.string()), (value.among(other), converted), default=_trim(value, bind))
    if is_null(lexical):
        return Value()
    written = bind(typed_literal(bind(lexical), XSD + name))
    # text that is no time may hold anything, but then it has no time either
    made = bind(case((sql.present(bind(facets_of(written, ["time"])["time"])), written)))
    return _derived(made, frozenset({family}), bind)


def _derived(made: Sql, families: frozenset[Family], bind: BindSql) -> Value:
    return DerivedTerm(families=families, made=made, facet_sql=lambda name: bind(facets_of(made, [name])[name]))


def strdt(bind: BindSql, value: Value, datatype: Value) -> Value:
    """A literal of this text and type, whether or not the type allows the text."""
    lexical = plain_string(value, bind)
    if Family.IRI not in datatype.families or is_null(lexical):
        return Value()
    name = bind(case((datatype.among(Family.IRI), datatype.narrow(Family.IRI).string())))
    if isinstance(datatype, ConstantValue) and datatype.static.lexical == XSD_STRING:
        return ComputedString(lexical)
    quoted = sql.concat(text('"'), call("TW_ESCAPE", lexical), text('"'))
    kind = sql.concat(text("^^<"), name, text(">"))
    suffix = (
        kind if isinstance(datatype, ConstantValue) else case((equal(name, text(XSD_STRING)), text("")), default=kind)
    )
    families = _families(datatype.static.lexical) if isinstance(datatype, ConstantValue) else ANY - set(NOT_LITERAL)
    return _derived(bind(sql.concat(quoted, suffix)), families, bind)


def _families(datatype: str) -> frozenset[Family]:
    """Return the families that a literal of a type may have; an ill-typed one is OTHER."""
    local = datatype.removeprefix(XSD) if datatype.startswith(XSD) else ""
    found = Family.EXACT if local in (*INTEGERS, "decimal") else _OWN.get(local)
    return frozenset({Family.OTHER} | ({found} if found else set()))


_OWN = {family.value: family for family in (Family.FLOAT, Family.DOUBLE, Family.BOOLEAN, Family.DATETIME, Family.DATE)}

CASTS: Mapping[str, Callable[[BindSql, Value], Value]] = {
    f"<{XSD}string>": to_string,
    f"<{XSD}boolean>": to_boolean,
    f"<{XSD}integer>": to_integer,
    f"<{XSD}decimal>": to_decimal,
    f"<{XSD}float>": to_float,
    f"<{XSD}double>": to_double,
    f"<{XSD}dateTime>": to_datetime,
    f"<{XSD}date>": to_date,
}
"""The casts, by the name that the algebra gives them."""

_FORM = r"^(-?[0-9]+)-([0-9]{2})-([0-9]{2})(T([0-9]{2}):([0-9]{2}):([0-9.]+))?(Z|[+-][0-9]{2}:[0-9]{2})?$"
_GROUPS = {"year": 1, "month": 2, "day": 3, "hours": 5, "minutes": 6, "seconds": 7, "zone": 8}
_DAY = (Family.DATETIME,)
DURATION = XSD + "dayTimeDuration"


def make_date_part(name: str) -> Callable[[BindSql, Value], Value]:
    """YEAR to SECONDS. The parts of the day are those of times only; seconds are decimals."""
    families = TIMES if name in ("year", "month", "day") else _DAY
    rank = number(2 if name == "seconds" else 1)

    def compile_part(bind: BindSql, value: Value) -> Value:
        found = _extract_part(name, value, families, bind)
        if is_null(found):
            return Value()
        exact = bind(sql.try_cast(found, sql.DECIMAL))
        return ComputedNumber(rank, exact, cast(exact, sql.DOUBLE), frozenset({Family.EXACT}))

    return compile_part


def tz(bind: BindSql, value: Value) -> Value:
    """The zone as it is written; none is the empty string."""
    return ComputedString(bind(_extract_part("zone", value, TIMES, bind)))


def timezone(bind: BindSql, value: Value) -> Value:
    """The zone as a duration; none is an error."""
    zone = bind(_extract_part("zone", value, TIMES, bind))
    if is_null(zone):
        return Value()
    hours, minutes = (_digits(zone, start) for start in (2, 5))
    sign = case((call("TW_STARTS", zone, text("-")), text("-PT")), default=text("PT"))
    long = sql.concat(sign, _unit(hours, "H"), _unit(minutes, "M"))
    utc = exp.In(this=zone, expressions=[text(each) for each in ("Z", "+00:00", "-00:00")])
    lexical = case((utc, text("PT0S")), (equal(zone, text("")), null()), default=long)
    made = bind(typed_literal(lexical, DURATION))
    known = case((sql.present(made), text(DURATION)))
    return DerivedTerm(
        families=frozenset({Family.OTHER}), made=made, facet_sql=lambda name: known if name == "datatype" else null()
    )


def _digits(zone: Sql, start: int) -> Sql:
    """Two digits without a zero in front."""
    return cast(sql.try_cast(call("SUBSTRING", zone, number(start), number(2)), exp.DataType.build("INT")), sql.VARCHAR)


def _unit(digits: Sql, letter: str) -> Sql:
    return case((equal(digits, text("0")), text("")), default=sql.concat(digits, text(letter)))


def _extract_part(name: str, value: Value, families: tuple[Family, ...], bind: BindSql) -> Sql:
    if not value.families & set(families):
        return null()
    kept = value.narrow(*families)
    lexical = bind(case((value.among(*families), _normalize_midnight(kept.string()))))
    return call("TW_EXTRACT", lexical, text(_FORM), number(_GROUPS[name]))


def _normalize_midnight(lexical: Sql) -> Sql:
    """Midnight at the end of a day is the start of the next."""
    day = sql.try_cast(call("SUBSTRING", lexical, number(1), number(10)), exp.DataType.build("DATE"))
    next_day = cast(sql.binary(exp.Add, day, number(1)), sql.VARCHAR)
    rest = call("SUBSTRING", lexical, number(14))
    late = exp.Like(this=lexical, expression=text("%T24:%"))
    return case((late, sql.concat(next_day, text("T00"), rest)), default=lexical)
