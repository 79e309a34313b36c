"""Facets: the typed columns of a term (kind, datatype, language, number, time), computed by the engine from its text.

The text is canonical N-Triples: a literal's last quote is its closing one, and numbers and times hold no escapes. Each
facet asks the cheapest question first, because most terms are IRIs. The lexical form of a literal is extracted here
too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from sqlglot import exp

from triplewire.model.terms import RDF_LANG_STRING, XSD, XSD_STRING
from triplewire.sparql import sql
from triplewire.sparql.constants import (
    DATE_FORM,
    DATETIME_FORM,
    DECIMAL_FORM,
    DOUBLE_FORM,
    INTEGER_FORM,
    INTEGERS,
    ZONE_FORM,
)
from triplewire.sparql.sql import Sql, call, case, cast, every, number, some, text

FACETS: Mapping[str, str] = {
    "kind": "VARCHAR",
    "datatype": "VARCHAR",
    "language": "VARCHAR",
    "number": "DOUBLE",
    "time": "TIMESTAMP",
}
"""The facets of a term, with the types of their columns."""

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
    "extensions",
)
"""The columns of the relation `quads`, in order. Queries read all but the last, which first quads alone have."""


def facets_of(term: Sql, names: Iterable[str] = FACETS) -> dict[str, Sql]:
    return {name: _MAKERS[name](term) for name in names}


def explode(entries: str = "entries", columns: Collection[str] = QUADS) -> exp.Select:
    """The query that makes `quads`, or those of its columns that are asked for, of a table of log entries."""
    wanted = set(columns)
    if unknown := wanted - set(QUADS):
        raise ValueError(f"quads has no columns {sorted(unknown)}")
    facets = [name for name in FACETS if f"object_{name}" in wanted]
    made = _made(facets_of(exp.column("object", "l"), facets))
    kept = [exp.alias_(made[name], name, quoted=True) for name in QUADS if name in wanted]
    return exp.select(*kept).from_(_lines(_split(entries, wanted)).subquery("l"))


def _split(entries: str, wanted: set[str]) -> exp.Select:
    """Split an event into one list of terms, three for each quad, and the columns that are carried along."""
    tab = call("CHR", number(9))
    flat = call("REPLACE", exp.column("text", "e", quoted=True), call("CHR", number(10)), tab)
    carried = ["event" if name == "graph" else name for name in ("position", "graph", *_HEADERS) if name in wanted]
    columns = [exp.column(name, "e", quoted=True) for name in carried]
    terms = exp.alias_(call("STRING_SPLIT", flat, tab.copy()), "terms")
    return exp.select(*columns, terms).from_(exp.to_table(entries, alias="e"))


def _lines(events: exp.Select) -> exp.Select:
    """A row for each quad, with its number and terms."""
    count = exp.IntDiv(this=call("LEN", exp.column("terms")), expression=number(3))
    rows = exp.select(exp.Star(), exp.alias_(call("UNNEST", call("RANGE", count)), "i")).from_(events.subquery("s"))
    terms = [exp.alias_(_term(index), name) for index, name in enumerate(("subject", "predicate", "object"), start=1)]
    return exp.select(exp.Star(), *terms).from_(rows.subquery("r"))


def _term(index: int) -> Sql:
    row = exp.Mul(this=number(3), expression=exp.column("i"))
    return call("LIST_EXTRACT", exp.column("terms"), exp.Add(this=row, expression=number(index)))


_HEADERS = ("stream", "source", "application", "time", "received", "extensions")


def _made(facets: Mapping[str, Sql]) -> dict[str, Sql]:
    """Map each column of `quads` to its expression over a line."""
    made: dict[str, Sql] = {name: exp.column(name, "l", quoted=True) for name in QUADS}
    made["quad"] = cast(exp.column("i", "l"), exp.DataType.build("INT"))
    made["graph"] = sql.concat(text("<"), exp.column("event", "l"), text(">"))
    made |= {name: call("MAKE_TIMESTAMP", made[name]) for name in ("time", "received")}
    made["extensions"] = case((exp.EQ(this=exp.column("i", "l"), expression=number(0)), made["extensions"]))
    return made | {f"object_{name}": facet for name, facet in facets.items()}


def _starts(term: Sql, start: str) -> Sql:
    return call("TW_STARTS", term, text(start))


def _ends(term: Sql, end: str) -> Sql:
    return call("TW_ENDS", term, text(end))


def _split_part(term: Sql, part: int) -> Sql:
    """Split by quotes: part -1 follows the closing one, part 2 is the lexical form of a literal without escapes."""
    return call("SPLIT_PART", term, text('"'), number(part))


def _kind(term: Sql) -> Sql:
    return case(
        (_starts(term, '"'), text("literal")),
        (_starts(term, "<<"), text("triple")),
        (_starts(term, "_:"), text("blank")),
        default=text("iri"),
    )


def _datatype(term: Sql) -> Sql:
    suffix = _split_part(term, -1)
    named = call("SUBSTRING", suffix, number(4), exp.Sub(this=sql.length(suffix), expression=number(4)))
    literal = case((_ends(term, '"'), text(XSD_STRING)), (_ends(term, ">"), named), default=text(RDF_LANG_STRING))
    return case((_starts(term, '"'), literal))


def _language(term: Sql) -> Sql:
    tagged = every(_starts(term, '"'), exp.Not(this=_ends(term, '"')), exp.Not(this=_ends(term, ">")))
    return case((tagged, call("SUBSTRING", _split_part(term, -1), number(2))))


def _number(term: Sql) -> Sql:
    derived = _split_part(term, 2)
    literal = case(
        *(_typed_number(term, name, form) for name, form in _NUMBERS.items()),
        (
            some(*(_typed(term, name) for name in INTEGERS[1:])),
            _valid(derived, INTEGER_FORM, sql.try_cast(derived, sql.DOUBLE)),
        ),
    )
    return case((every(_starts(term, '"'), _ends(term, ">")), literal))


_NUMBERS = {"double": DOUBLE_FORM, "decimal": DECIMAL_FORM, "integer": INTEGER_FORM, "float": DOUBLE_FORM}


def _typed_number(term: Sql, name: str, form: str) -> tuple[Sql, Sql]:
    lexical = _inside(term, name)
    value = cast(sql.try_cast(lexical, sql.FLOAT), sql.DOUBLE) if name == "float" else sql.try_cast(lexical, sql.DOUBLE)
    return _typed(term, name), _valid(lexical, form, value)


def _time(term: Sql) -> Sql:
    literal = case(
        (
            _typed(term, "dateTime"),
            _valid(_inside(term, "dateTime"), DATETIME_FORM, call("TW_INSTANT", _inside(term, "dateTime"))),
        ),
        (_typed(term, "date"), _valid(_inside(term, "date"), DATE_FORM + ZONE_FORM, _midnight(_inside(term, "date")))),
    )
    return case((every(_starts(term, '"'), _ends(term, ">")), literal))


def _midnight(lexical: Sql) -> Sql:
    """The instant at which a date starts."""
    date = call("TW_EXTRACT", lexical, text(DATE_FORM), number(0))
    zone = call("SUBSTRING", lexical, exp.Add(this=sql.length(date), expression=number(1)))
    return call("TW_INSTANT", sql.concat(date, text("T00:00:00"), zone))


def _typed(term: Sql, name: str) -> Sql:
    return _ends(term, _closing(name))


def _closing(name: str) -> str:
    return f'"^^<{XSD}{name}>'


def _inside(term: Sql, name: str) -> Sql:
    """The lexical form of a literal that is known to be of this type."""
    return call(
        "SUBSTRING", term, number(2), exp.Sub(this=sql.length(term), expression=number(1 + len(_closing(name))))
    )


def _valid(lexical: Sql, form: str, value: Sql) -> Sql:
    return case((call("TW_FULL_MATCH", lexical, text(form)), value))


_MAKERS: Mapping[str, Callable[[Sql], Sql]] = {
    "kind": _kind,
    "datatype": _datatype,
    "language": _language,
    "number": _number,
    "time": _time,
}


def lexical_body(term: Sql) -> Sql:
    """Return the text between the quotes of a literal; the last quote is the closing one."""
    suffix = exp.SplitPart(this=term, delimiter=text('"'), part_index=number(-1))
    rest = exp.Sub(this=exp.Sub(this=sql.length(term), expression=sql.length(suffix)), expression=number(2))
    return call("SUBSTRING", term, number(2), rest)


def lexical_digits(term: Sql) -> Sql:
    """Return the same for a number, which holds no escapes."""
    return exp.SplitPart(this=term, delimiter=text('"'), part_index=number(2))


def unescape(inner: Sql) -> Sql:
    """Decode escapes. Most literals hold none, so only those that do are decoded."""
    return case((call("TW_CONTAINS", inner, text("\\")), call("TW_UNESCAPE", inner)), default=inner)
