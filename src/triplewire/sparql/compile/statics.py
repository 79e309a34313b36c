"""Statics: what is known of a constant while compiling. Agrees with the facets that an engine computes."""

from __future__ import annotations

import math
import re
import struct
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from triplewire.model.terms import RDF_LANG_STRING, XSD, XSD_STRING, is_iri, is_literal, literal, parse_literal
from triplewire.sparql.algebra import Family
from triplewire.sparql.compile.columns import CHECKED
from triplewire.sparql.compile.facets import (
    DATE_FORM,
    DATETIME_FORM,
    DECIMAL_FORM,
    DOUBLE_FORM,
    INTEGER_FORM,
    INTEGERS,
    ZONE_FORM,
)
from triplewire.sparql.compile.sql import (
    DECIMAL,
    TIMESTAMP,
    Sql,
    call,
    cast,
    double,
    null,
    number,
    text,
    truth,
    try_cast,
)
from triplewire.sparql.compile.values import Value

_NUMERIC = {
    XSD + "decimal": (Family.EXACT, DECIMAL_FORM),
    XSD + "float": (Family.FLOAT, DOUBLE_FORM),
    XSD + "double": (Family.DOUBLE, DOUBLE_FORM),
    **{XSD + name: (Family.EXACT, INTEGER_FORM) for name in INTEGERS},
}
_TEMPORAL = {
    XSD + "dateTime": (Family.DATETIME, DATETIME_FORM),
    XSD + "date": (Family.DATE, DATE_FORM + ZONE_FORM),
}


@dataclass(frozen=True)
class Static:
    """A constant term and its facets. `time` is a naive datetime in UTC."""

    term: str
    family: Family
    lexical: str
    datatype: str | None = None
    language: str | None = None
    number: float | None = None
    time: datetime | None = None


def family_of(term: str) -> Family:
    """The family of a constant, as a parameter in its place may state it."""
    return static(term).family


def static(term: str) -> Static:
    if is_iri(term):
        return Static(term, Family.IRI, term[1:-1])
    if term.startswith("_:"):
        return Static(term, Family.BLANK, term)
    if not is_literal(term):
        return Static(term, Family.OTHER, term)
    parts = parse_literal(term)
    made = (term, parts.lexical, parts.datatype, parts.language)
    if parts.datatype in _NUMERIC:
        return _numeric(*made)
    if parts.datatype in _TEMPORAL:
        return _temporal(*made)
    return _literal(_plain_family(parts.lexical, parts.datatype), *made)


def as_float(value: float) -> float:
    """The nearest xsd:float."""
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def _literal(
    family: Family, term: str, lexical: str, datatype: str, language: str | None, number: float | None = None
) -> Static:
    return Static(term, family, lexical, datatype, language, number)


def _plain_family(lexical: str, datatype: str) -> Family:
    if datatype == XSD_STRING:
        return Family.STRING
    if datatype == RDF_LANG_STRING:
        return Family.TAGGED
    boolean = datatype == XSD + "boolean" and lexical in ("true", "false", "0", "1")
    return Family.BOOLEAN if boolean else Family.OTHER


def _numeric(term: str, lexical: str, datatype: str, language: str | None) -> Static:
    family, form = _NUMERIC[datatype]
    if not re.fullmatch(form, lexical, re.ASCII):
        return _literal(Family.OTHER, term, lexical, datatype, language)
    value = float(lexical)
    return _literal(family, term, lexical, datatype, language, as_float(value) if family == Family.FLOAT else value)


def _temporal(term: str, lexical: str, datatype: str, language: str | None) -> Static:
    family, form = _TEMPORAL[datatype]
    time = _instant(lexical, family) if re.fullmatch(form, lexical, re.ASCII) else None
    if time is None:
        return _literal(Family.OTHER, term, lexical, datatype, language)
    return Static(term, family, lexical, datatype, language, time=time)


def _instant(lexical: str, family: Family) -> datetime | None:
    """In UTC, cut to microseconds; None if there is no such date, or not between the years 1 and 9999."""
    date, zone = re.fullmatch(rf"(.*?){ZONE_FORM}", lexical).groups() if family == Family.DATE else (lexical, "")  # type: ignore[union-attr]
    whole = f"{date}T00:00:00{zone or ''}" if family == Family.DATE else lexical
    late = "T24:00:00" in whole
    shortened = re.sub(r"(\.[0-9]{6})[0-9]+", r"\1", whole.replace("T24:00:00", "T00:00:00"))
    try:
        found = datetime.fromisoformat(shortened) + timedelta(days=1 if late else 0)
        return found.astimezone(UTC).replace(tzinfo=None) if found.tzinfo else found
    except (ValueError, OverflowError):
        return None


class Known(Value):
    """A constant: every answer is a literal of SQL."""

    def __init__(self, static: Static) -> None:
        self.static = static
        self.families = frozenset({static.family})

    def text(self) -> Sql:
        return text(self.static.term)

    def string(self) -> Sql:
        if self.static.family == Family.BLANK:
            return null()
        if "\0" in self.static.lexical:
            # engines end their text at a zero character
            return call("TW_UNESCAPE", text(literal(self.static.lexical)[1:-1]))
        return text(self.static.lexical)

    def datatype(self) -> Sql:
        return text(self.static.datatype) if self.static.datatype else null()

    def language(self) -> Sql:
        return text(self.static.language) if self.static.language else null()

    def number(self) -> Sql:
        return null() if self.static.number is None else double(self.static.number)

    def exact(self) -> Sql:
        return try_cast(text(self.static.lexical), DECIMAL) if self.static.family == Family.EXACT else null()

    def rank(self) -> Sql:
        ranks = {Family.DOUBLE: 4, Family.FLOAT: 3, Family.EXACT: 2 if self.static.datatype == XSD + "decimal" else 1}
        return number(ranks[self.static.family]) if self.static.family in ranks else null()

    def long(self) -> Sql:
        return truth(self.static.family == Family.EXACT and len(self.static.lexical) > 15)

    def time(self) -> Sql:
        return cast(text(self.static.time.isoformat(" ")), TIMESTAMP) if self.static.time else null()

    def zoned(self) -> Sql:
        lexical = self.static.lexical
        return truth(lexical.endswith("Z") or (lexical[-6:-5] in ("+", "-") and lexical[-3:-2] == ":"))

    def boolean(self) -> Sql:
        known = self.static.family == Family.BOOLEAN
        return truth(self.static.lexical in ("true", "1")) if known else null()

    def bound(self) -> Sql:
        return truth(True)

    def ill_typed(self) -> Sql:
        return truth(self.static.family == Family.OTHER and (self.static.datatype or "").removeprefix(XSD) in CHECKED)
