"""Facts about constant terms, known at compile time: family, lexical form, number and instant.

They agree with the facets that an engine computes from a stored term (`compiler.facets`).
"""

from __future__ import annotations

import math
import re
import struct
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from triplewire.model.terms import RDF_LANG_STRING, XSD, XSD_STRING, is_iri, is_literal, parse_literal
from triplewire.sparql.algebra import Family

INTEGERS = (
    *("integer", "long", "int", "short", "byte", "nonNegativeInteger", "positiveInteger", "nonPositiveInteger"),
    *("negativeInteger", "unsignedLong", "unsignedInt", "unsignedShort", "unsignedByte"),
)
"""The local names of xsd:integer and of the types derived from it."""

INTEGER_FORM = "[+-]?[0-9]+"
DECIMAL_FORM = r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)"
DOUBLE_FORM = rf"{DECIMAL_FORM}([eE][+-]?[0-9]+)?|[+-]?INF|NaN"
DATE_FORM = r"-?[0-9]{4,}-[0-9]{2}-[0-9]{2}"
ZONE_FORM = "(Z|[+-][0-9]{2}:[0-9]{2})?"
DATETIME_FORM = rf"{DATE_FORM}T[0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}(\.[0-9]+)?{ZONE_FORM}"

CHECKED_TYPES = ("boolean", "decimal", "float", "double", *INTEGERS)
"""The types of XML Schema, by local name, whose lexical forms are checked."""

BOOLEANS = {f'"{lexical}"^^<{XSD}boolean>': lexical in ("true", "1") for lexical in ("true", "false", "1", "0")}
SHORT_EXACT = 15 + len(f'""^^<{XSD}int>')
"""A numeric term of at most this length has at most 15 digits, which a double holds exactly."""

_NUMERIC = {
    XSD + "decimal": (Family.EXACT, DECIMAL_FORM),
    XSD + "float": (Family.FLOAT, DOUBLE_FORM),
    XSD + "double": (Family.DOUBLE, DOUBLE_FORM),
    **{XSD + name: (Family.EXACT, INTEGER_FORM) for name in INTEGERS},
}
_TEMPORAL = {XSD + "dateTime": (Family.DATETIME, DATETIME_FORM), XSD + "date": (Family.DATE, DATE_FORM + ZONE_FORM)}


@dataclass(frozen=True)
class ConstantTerm:
    """A constant term and its facets. `time` is a naive datetime in UTC."""

    term: str
    family: Family
    lexical: str
    datatype: str | None = None
    language: str | None = None
    number: float | None = None
    time: datetime | None = None


def family_of(term: str) -> Family:
    return parse_constant(term).family


def parse_constant(term: str) -> ConstantTerm:
    """Return the facts about a term, which is given as canonical N-Triples text."""
    if is_iri(term):
        return ConstantTerm(term, Family.IRI, term[1:-1])
    if not is_literal(term):
        return ConstantTerm(term, Family.BLANK if term.startswith("_:") else Family.OTHER, term)
    parts = parse_literal(term)
    family, number, time = _value(parts.lexical, parts.datatype)
    return ConstantTerm(term, family, parts.lexical, parts.datatype, parts.language, number, time)


def as_float(value: float) -> float:
    """Return the nearest xsd:float."""
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def _value(lexical: str, datatype: str) -> tuple[Family, float | None, datetime | None]:
    """Return a literal's family, and its number or instant. Ill-typed literals are OTHER."""
    if datatype in _NUMERIC:
        family, form = _NUMERIC[datatype]
        if re.fullmatch(form, lexical, re.ASCII):
            value = float(lexical)
            return family, as_float(value) if family == Family.FLOAT else value, None
    elif datatype in _TEMPORAL:
        family, form = _TEMPORAL[datatype]
        if re.fullmatch(form, lexical, re.ASCII) and (time := _instant(lexical, family)) is not None:
            return family, None, time
    elif datatype == XSD_STRING:
        return Family.STRING, None, None
    elif datatype == RDF_LANG_STRING:
        return Family.TAGGED, None, None
    elif datatype == XSD + "boolean" and lexical in ("true", "false", "0", "1"):
        return Family.BOOLEAN, None, None
    return Family.OTHER, None, None


def _instant(lexical: str, family: Family) -> datetime | None:
    """Return the instant in UTC, cut to microseconds; None for no date, or one outside the years 1 to 9999."""
    date, zone = re.fullmatch(rf"(.*?){ZONE_FORM}", lexical).groups() if family == Family.DATE else (lexical, "")  # type: ignore[union-attr]
    whole = f"{date}T00:00:00{zone or ''}" if family == Family.DATE else lexical
    late = "T24:00:00" in whole
    shortened = re.sub(r"(\.[0-9]{6})[0-9]+", r"\1", whole.replace("T24:00:00", "T00:00:00"))
    try:
        found = datetime.fromisoformat(shortened) + timedelta(days=1 if late else 0)
        return found.astimezone(UTC).replace(tzinfo=None) if found.tzinfo else found
    except (ValueError, OverflowError):
        return None
