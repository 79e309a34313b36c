"""Facets: the typed columns of a term, computed from its text by the engine, for DuckDB.

The text is canonical N-Triples, so a literal's last quote is its closing one, and numbers and times hold no
escapes. Each facet asks the cheapest question first, because most terms are IRIs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from sqlglot import exp

from triplewire.model.terms import RDF_LANG_STRING, XSD, XSD_STRING
from triplewire.sparql.compile.sql import (
    DOUBLE,
    FLOAT,
    TIMESTAMP,
    Sql,
    call,
    case,
    cast,
    concat,
    equal,
    every,
    length,
    number,
    some,
    text,
    try_cast,
)

INTEGERS = (
    "integer",
    "long",
    "int",
    "short",
    "byte",
    "nonNegativeInteger",
    "positiveInteger",
    "nonPositiveInteger",
    "negativeInteger",
    "unsignedLong",
    "unsignedInt",
    "unsignedShort",
    "unsignedByte",
)
"""The local names of xsd:integer and of the types derived from it."""

INTEGER_FORM = "[+-]?[0-9]+"
DECIMAL_FORM = r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)"
DOUBLE_FORM = rf"{DECIMAL_FORM}([eE][+-]?[0-9]+)?|[+-]?INF|NaN"
DATE_FORM = r"-?[0-9]{4,}-[0-9]{2}-[0-9]{2}"
ZONE_FORM = "(Z|[+-][0-9]{2}:[0-9]{2})?"
DATETIME_FORM = rf"{DATE_FORM}T[0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}(\.[0-9]+)?{ZONE_FORM}"

FACETS: Mapping[str, str] = {
    "kind": "VARCHAR",
    "datatype": "VARCHAR",
    "language": "VARCHAR",
    "number": "DOUBLE",
    "time": "TIMESTAMP",
}
"""What is known of a term beside its text, with the type of its column."""

QUADS: tuple[str, ...] = (
    "position",
    "quad",
    "graph",
    "subject",
    "predicate",
    "object",
    *(f"object_{facet}" for facet in FACETS),
    "stream",
    "source",
    "application",
    "time",
    "received",
)
"""The columns of the relation `quads`, in order."""


def facets_of(term: Sql) -> dict[str, Sql]:
    """An expression for each facet of the term that an expression gives as text."""
    return {name: make(term) for name, make in _MAKERS.items()}


def explode(events: str = "entries", columns: Collection[str] = QUADS) -> exp.Select:
    """The query that makes `quads`, or those of its columns that are asked for, of a table of log entries."""
    unknown = set(columns) - set(QUADS)
    if unknown:
        raise ValueError(f"quads has no columns {sorted(unknown)}")
    made = _columns()
    kept = [exp.alias_(made[name].copy(), name, quoted=True) for name in QUADS if name in set(columns)]
    return exp.select(*kept).from_(_numbered(events, columns).subquery("l"))


def _numbered(events: str, columns: Collection[str]) -> exp.Select:
    """One row for each quad: `terms` holds all terms of its event, `i` is the number of the quad."""
    tab, newline = call("CHR", number(9)), call("CHR", number(10))
    split = call("STRING_SPLIT", call("REPLACE", _e("text"), newline, tab.copy()), tab)
    carried = [name for name in ("position", "event", *_CARRIED) if name in _needed(columns)]
    inner = exp.select(*(_e(name) for name in carried), exp.alias_(split, "terms")).from_(
        exp.to_table(events, alias="e")
    )
    count = exp.IntDiv(this=call("LEN", exp.column("terms")), expression=number(3))
    rows = call("UNNEST", call("RANGE", count))
    return exp.select(*(exp.column(name, quoted=True) for name in (*carried, "terms")), exp.alias_(rows, "i")).from_(
        inner.subquery("t")
    )


_CARRIED = ("stream", "source", "application", "time", "received")


def _needed(columns: Collection[str]) -> set[str]:
    return {"event" if name == "graph" else name for name in columns}


def _columns() -> dict[str, Sql]:
    terms = [_term(offset) for offset in (1, 2, 3)]
    made: dict[str, Sql] = {
        "position": _l("position"),
        "quad": cast(exp.column("i", "l"), exp.DataType.build("INT")),
        "graph": concat(text("<"), _l("event"), text(">")),
        "subject": terms[0],
        "predicate": terms[1],
        "object": terms[2],
        "stream": _l("stream"),
        "source": _l("source"),
        "application": _l("application"),
        "time": call("MAKE_TIMESTAMP", _l("time")),
        "received": call("MAKE_TIMESTAMP", _l("received")),
    }
    return made | {f"object_{name}": sql for name, sql in facets_of(terms[2]).items()}


def _term(offset: int) -> Sql:
    row = exp.Mul(this=number(3), expression=exp.column("i", "l"))
    return call("LIST_EXTRACT", exp.column("terms", "l"), exp.Add(this=row, expression=number(offset)))


def _e(name: str) -> Sql:
    return exp.column(name, "e", quoted=True)


def _l(name: str) -> Sql:
    return exp.column(name, "l", quoted=True)


def _starts(term: Sql, start: str) -> Sql:
    return call("STARTS_WITH", term, text(start))


def _ends(term: Sql, end: str) -> Sql:
    return call("ENDS_WITH", term, text(end))


def _suffix(term: Sql) -> Sql:
    """What follows the closing quote."""
    return call("SPLIT_PART", term, text('"'), number(-1))


def _lexical(term: Sql) -> Sql:
    """The text between the quotes of a literal that holds no escapes."""
    return call("SPLIT_PART", term, text('"'), number(2))


def _kind(term: Sql) -> Sql:
    return case(
        (_starts(term, '"'), text("literal")),
        (_starts(term, "<<"), text("triple")),
        default=text("iri"),
    )


def _datatype(term: Sql) -> Sql:
    suffix = _suffix(term)
    named = call("SUBSTRING", suffix, number(4), exp.Sub(this=length(suffix), expression=number(4)))
    literal = case(
        (_ends(term, '"'), text(XSD_STRING)),
        (_ends(term, ">"), named),
        default=text(RDF_LANG_STRING),
    )
    return case((_starts(term, '"'), literal))


def _language(term: Sql) -> Sql:
    tagged = every(_starts(term, '"'), exp.Not(this=_ends(term, '"')), exp.Not(this=_ends(term, ">")))
    return case((tagged, call("SUBSTRING", _suffix(term), number(2))))


def _number(term: Sql) -> Sql:
    lexical = _lexical(term)
    plain = try_cast(lexical, DOUBLE)
    rounded = cast(try_cast(lexical, FLOAT), DOUBLE)
    literal = case(
        (_typed(term, "double"), _valid(lexical, DOUBLE_FORM, plain)),
        (_typed(term, "decimal"), _valid(lexical, DECIMAL_FORM, plain)),
        (_typed(term, "float"), _valid(lexical, DOUBLE_FORM, rounded)),
        (some(*(_typed(term, name) for name in INTEGERS)), _valid(lexical, INTEGER_FORM, plain)),
    )
    return case((every(_starts(term, '"'), _ends(term, ">")), literal))


def _time(term: Sql) -> Sql:
    lexical = _lexical(term)
    date = call("REGEXP_EXTRACT", lexical, text(DATE_FORM))
    zone = call("SUBSTRING", lexical, exp.Add(this=length(date), expression=number(1)))
    midnight = concat(date, text("T00:00:00"), zone)
    literal = case(
        (_typed(term, "dateTime"), _valid(lexical, DATETIME_FORM, _instant(lexical))),
        (_typed(term, "date"), _valid(lexical, DATE_FORM + ZONE_FORM, _instant(midnight))),
    )
    return case((every(_starts(term, '"'), _ends(term, ">")), literal))


def _instant(lexical: Sql) -> Sql:
    """The instant in UTC. Without a zone, or in Z, a plain cast does; it would ignore any other zone."""
    zoned = every(
        equal(call("SUBSTRING", lexical, number(-3), number(1)), text(":")),
        some(*(equal(call("SUBSTRING", lexical, number(-6), number(1)), text(sign)) for sign in "+-")),
    )
    shifted = call("MAKE_TIMESTAMP", call("EPOCH_US", try_cast(lexical, exp.DataType.build("TIMESTAMPTZ"))))
    return case((zoned, shifted), default=try_cast(lexical, TIMESTAMP))


def _typed(term: Sql, name: str) -> Sql:
    return _ends(term, f'"^^<{XSD}{name}>')


def _valid(lexical: Sql, form: str, value: Sql) -> Sql:
    return case((call("REGEXP_FULL_MATCH", lexical, text(form)), value))


_MAKERS: Mapping[str, Callable[[Sql], Sql]] = {
    "kind": _kind,
    "datatype": _datatype,
    "language": _language,
    "number": _number,
    "time": _time,
}
