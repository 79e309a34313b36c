"""Casts: the constructors of XML Schema's types, and STRDT, which only writes a type behind a text."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp

from triplewire.model.terms import XSD, XSD_STRING
from triplewire.sparql.algebra import Family
from triplewire.sparql.compile.arithmetic import Bind
from triplewire.sparql.compile.columns import Derived
from triplewire.sparql.compile.computed import Number, Text, Truth, typed
from triplewire.sparql.compile.facets import (
    DECIMAL_FORM,
    DOUBLE_FORM,
    INTEGER_FORM,
    INTEGERS,
    facets_of,
)
from triplewire.sparql.compile.sql import (
    DECIMAL,
    DOUBLE,
    FLOAT,
    VARCHAR,
    Sql,
    among,
    binary,
    call,
    case,
    cast,
    coalesce,
    compare,
    concat,
    double,
    equal,
    is_null,
    negate,
    null,
    number,
    present,
    some,
    text,
    truth,
    try_cast,
)
from triplewire.sparql.compile.statics import Known
from triplewire.sparql.compile.strings import plain
from triplewire.sparql.compile.values import ANY, NOT_LITERAL, NUMERIC, Value

_LONG = exp.DataType.build("DECIMAL(38, 0)")
_LARGEST_FLOAT = 3.4028235677973366e38
"""What is at least as large rounds to an infinite xsd:float."""


def to_string(bind: Bind, value: Value) -> Value:
    """The canonical form of numbers and booleans, the text of all else but blank nodes."""
    branches = []
    if value.families & NUMERIC:
        numeric = Number(value.rank(), value.exact(), value.number(), value.families & NUMERIC)
        branches.append((value.among(*NUMERIC), coalesce(numeric.string(), value.string())))
    if Family.BOOLEAN in value.families:
        branches.append((value.among(Family.BOOLEAN), Truth(value.boolean()).string()))
    return Text(bind(case(*branches, default=value.string())))


def to_boolean(bind: Bind, value: Value) -> Value:
    lexical = _trimmed(value, bind)
    at = value.number()
    read = (
        null()
        if is_null(lexical)
        else case((among(lexical, ("true", "1")), truth(True)), (among(lexical, ("false", "0")), truth(False)))
    )
    zero = some(equal(at, double(0.0)), null() if is_null(at) else exp.IsNan(this=at))
    made = case((value.among(Family.BOOLEAN), value.boolean()), (value.among(*NUMERIC), negate(zero)), default=read)
    return Truth(bind(made))


def to_integer(bind: Bind, value: Value) -> Value:
    at = value.number()
    cut = case((compare(">=", at, double(0.0)), call("TW_FLOOR", at)), default=call("TW_CEIL", at))
    floating = null() if is_null(at) else try_cast(try_cast(cut, _LONG), DECIMAL)
    exact = value.exact()
    whole = null() if is_null(exact) else try_cast(call("TW_TRUNCATE", exact), DECIMAL)
    return _exact(1, value, INTEGER_FORM, whole, floating, bind)


def to_decimal(bind: Bind, value: Value) -> Value:
    at = value.number()
    # by its digits, because engines make others of a double that is scaled up
    floating = null() if is_null(at) else try_cast(cast(at, VARCHAR), DECIMAL)
    return _exact(2, value, DECIMAL_FORM, value.exact(), floating, bind)


def _exact(rank: int, value: Value, form: str, exact: Sql, floating: Sql, bind: Bind) -> Value:
    lexical = _trimmed(value, bind)
    read = null() if is_null(lexical) else case((_matches(lexical, form), try_cast(lexical, DECIMAL)))
    made = case(
        (value.among(Family.EXACT), exact),
        (value.among(Family.FLOAT, Family.DOUBLE), floating),
        (value.among(Family.BOOLEAN), _bit(value, DECIMAL)),
        default=read,
    )
    held = bind(made)
    return Value() if is_null(held) else Number(number(rank), held, cast(held, DOUBLE), frozenset({Family.EXACT}))


def to_double(bind: Bind, value: Value) -> Value:
    made = bind(_floating(value, bind))
    return Value() if is_null(made) else Number(number(4), null(), made, frozenset({Family.DOUBLE}))


def to_float(bind: Bind, value: Value) -> Value:
    made = bind(_floating(value, bind))
    if is_null(made):
        return Value()
    far = compare(">=", exp.Abs(this=made), double(_LARGEST_FLOAT))
    rounded = case((far, binary(exp.Mul, made, double(float("inf")))), default=cast(try_cast(made, FLOAT), DOUBLE))
    return Number(number(3), null(), bind(rounded), frozenset({Family.FLOAT}))


def _floating(value: Value, bind: Bind) -> Sql:
    lexical = _trimmed(value, bind)
    read = null() if is_null(lexical) else case((_matches(lexical, DOUBLE_FORM), try_cast(lexical, DOUBLE)))
    return case(
        (value.among(*NUMERIC), value.number()),
        (value.among(Family.BOOLEAN), _bit(value, DOUBLE)),
        default=read,
    )


def _bit(value: Value, to: exp.DataType) -> Sql:
    return cast(cast(value.boolean(), exp.DataType.build("INT")), to)


def _trimmed(value: Value, bind: Bind) -> Sql:
    """The text of a string, without the blanks around it, which XML Schema does not see."""
    return bind(call("TW_TRIM", plain(value, bind)))


def _matches(lexical: Sql, form: str) -> Sql:
    return call("TW_FULL_MATCH", lexical, text(form))


def to_datetime(bind: Bind, value: Value) -> Value:
    """A date is its first moment."""
    day = call("TW_EXTRACT", value.string(), text("^(.*?)(Z|[+-][0-9]{2}:[0-9]{2})?$"), number(1))
    zone = call("TW_EXTRACT", value.string(), text("(Z|[+-][0-9]{2}:[0-9]{2})$"), number(1))
    started = concat(day, text("T00:00:00"), zone)
    return _temporal("dateTime", Family.DATETIME, value, Family.DATE, started, bind)


def to_date(bind: Bind, value: Value) -> Value:
    """The day of a time, in its zone."""
    day = call("TW_EXTRACT", value.string(), text("^(.*)T"), number(1))
    zone = call("TW_EXTRACT", value.string(), text("T.*?(Z|[+-][0-9]{2}:[0-9]{2})$"), number(1))
    return _temporal("date", Family.DATE, value, Family.DATETIME, concat(day, zone), bind)


def _temporal(name: str, family: Family, value: Value, other: Family, converted: Sql, bind: Bind) -> Value:
    lexical = case(
        (value.among(family), value.string()),
        (value.among(other), converted),
        default=_trimmed(value, bind),
    )
    if is_null(lexical):
        return Value()
    written = bind(typed(bind(lexical), XSD + name))
    # text that is no time may hold anything, but then it has no time either
    made = bind(case((present(bind(facets_of(written, ["time"])["time"])), written)))
    return _written(made, frozenset({family}), bind)


def _written(made: Sql, families: frozenset[Family], bind: Bind) -> Value:
    return Derived(families=families, made=made, made_facet=lambda name: bind(facets_of(made, [name])[name]))


def strdt(bind: Bind, value: Value, datatype: Value) -> Value:
    """A literal of this text and type, whether or not the type allows the text."""
    lexical = plain(value, bind)
    if Family.IRI not in datatype.families or is_null(lexical):
        return Value()
    name = bind(case((datatype.among(Family.IRI), datatype.narrowed(Family.IRI).string())))
    if isinstance(datatype, Known) and datatype.static.lexical == XSD_STRING:
        return Text(lexical)
    quoted = concat(text('"'), call("TW_ESCAPE", lexical), text('"'))
    kind = concat(text("^^<"), name, text(">"))
    suffix = kind if isinstance(datatype, Known) else case((equal(name, text(XSD_STRING)), text("")), default=kind)
    families = _families(datatype.static.lexical) if isinstance(datatype, Known) else ANY - set(NOT_LITERAL)
    return _written(bind(concat(quoted, suffix)), families, bind)


def _families(datatype: str) -> frozenset[Family]:
    """What a literal of a type may be; ill-typed it is OTHER."""
    local = datatype.removeprefix(XSD) if datatype.startswith(XSD) else ""
    found = Family.EXACT if local in (*INTEGERS, "decimal") else _OWN.get(local)
    return frozenset({Family.OTHER} | ({found} if found else set()))


_OWN = {family.value: family for family in (Family.FLOAT, Family.DOUBLE, Family.BOOLEAN, Family.DATETIME, Family.DATE)}

CASTS: Mapping[str, Callable[[Bind, Value], Value]] = {
    f"<{XSD}string>": to_string,
    f"<{XSD}boolean>": to_boolean,
    f"<{XSD}integer>": to_integer,
    f"<{XSD}decimal>": to_decimal,
    f"<{XSD}float>": to_float,
    f"<{XSD}double>": to_double,
    f"<{XSD}dateTime>": to_datetime,
    f"<{XSD}date>": to_date,
}
"""By the name that the algebra gives them."""
