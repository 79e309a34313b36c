"""Term values: a term, or a computed value, as the interpreter sees it.

Only terms of plain form are parsed, those that Python and DuckDB read in the same way. Only the kind of any other is
known, and an operation that needs more raises `Undecided`.
"""

from __future__ import annotations

import re
from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

from triplewire.model.terms import RDF_LANG_STRING, XSD, XSD_STRING, literal, parse_literal
from triplewire.sparql.algebra import Family
from triplewire.sparql.constants import BOOLEANS, CHECKED_TYPES, INTEGERS

WHOLE, DECIMAL, DOUBLE = 1, 2, 4
"""The ranks of numbers: integer, decimal, double."""

_KNOWN_TERMS = 16_384
"""Terms whose values are cached, some 10 MB: constants of subscriptions rather than terms of events."""
_SHORT = 200
"""The longest term whose value is cached, in characters."""

_DIGITS = 15
"""Exact numbers with at most so many digits are told apart by doubles."""
INTEGER = re.compile(r"-?[0-9]{1,15}")
FRACTION = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]{1,15})?")
FLOATING = re.compile(r"-?[0-9]{1,17}(?:\.[0-9]{1,17})?(?:[eE][+-]?[0-9]{1,2})?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(Z?)")
_INSTANT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,6})?(Z|[+-](?:0[0-9]|1[0-3]):[0-5][0-9])?"
)
_INTEGER_TYPES = frozenset(XSD + name for name in INTEGERS)
_CLAIMS = frozenset(XSD + name for name in CHECKED_TYPES)
_EPOCH, _EPOCH_THERE = datetime(1970, 1, 1), datetime.fromisoformat("1970-01-01T00:00:00+00:00")


class Undecided(Exception):
    """The interpreter cannot decide this with certainty."""


class TermValue(NamedTuple):
    """The value of a term. `family` is None for a literal that is not interpreted. `lexical` is the result of STR,
    None if that is not known."""

    family: Family | None
    text: str | None = None
    """The term; None for a computed value."""
    lexical: str | None = None
    tag: str | None = None
    """The language tag."""
    number: float = 0.0
    exact: Decimal | None = None
    rank: int = 0
    rough: bool = False
    """Whether the double of a number may be off in its last digits."""
    truth: bool = False
    """For a boolean, its value; for a date or time, whether it has a zone; for another literal, whether its datatype
    is a number or a boolean and its text is not."""
    time: int = 0
    datatype: str | None = None


TRUE = TermValue(Family.BOOLEAN, f'"true"^^<{XSD}boolean>', "true", truth=True, datatype=XSD + "boolean")
FALSE = TermValue(Family.BOOLEAN, f'"false"^^<{XSD}boolean>', "false", datatype=XSD + "boolean")


def parse_term(term: str) -> TermValue:
    """Parse a term in canonical text."""
    return _cached_term(term) if len(term) <= _SHORT else _parse_term(term)


def _parse_term(term: str) -> TermValue:
    if term[0] == "<":
        return TermValue(None, term) if term[1] == "<" else TermValue(Family.IRI, term, term[1:-1])
    if term[0] != '"':
        return TermValue(Family.BLANK, term)
    lexical, _, rest = term[1:].rpartition('"')
    if "\\" in lexical:
        if "\\u" in lexical or "\\U" in lexical:
            return TermValue(None, term)
        lexical = parse_literal(term).lexical
    if not rest:
        return TermValue(Family.STRING, term, lexical, datatype=XSD_STRING)
    if rest[0] == "@":
        return TermValue(Family.TAGGED, term, lexical, rest[1:], datatype=RDF_LANG_STRING)
    return _parse_typed(term, lexical, rest[3:-1])


_cached_term = lru_cache(maxsize=_KNOWN_TERMS)(_parse_term)


def term_text(given: TermValue) -> str:
    """The term in canonical text."""
    return given.text if given.text is not None else computed_text(given)


def computed_text(given: TermValue) -> str:
    """The text of a computed value, as the evaluator writes it."""
    if given.family is Family.STRING or given.family is Family.TAGGED:
        return _quote(lexical_form(given), given.tag)
    if given.family is Family.EXACT:
        kind = "integer" if given.rank == WHOLE else "decimal"
        return f'"{_digits(given.exact)}"^^<{XSD}{kind}>'
    if given.family is Family.DOUBLE and not given.rough and 1e-4 <= abs(given.number) < 1e15:
        return f'"{repr(given.number).removesuffix(".0")}"^^<{XSD}double>'
    raise Undecided


def lexical_form(given: TermValue) -> str:
    """The result of STR for a literal or an IRI."""
    if given.lexical is not None:
        return given.lexical
    if given.text is None:
        return computed_text(given).split('"')[1]
    raise Undecided


def string_value(lexical: str, tag: str | None = None) -> TermValue:
    family, datatype = (Family.STRING, XSD_STRING) if tag is None else (Family.TAGGED, RDF_LANG_STRING)
    return TermValue(family, None, lexical, tag, datatype=datatype)


def boolean_value(value: bool | None) -> TermValue | None:
    """A computed boolean; None is an error."""
    return None if value is None else TRUE if value else FALSE


def _parse_typed(term: str, lexical: str, datatype: str) -> TermValue:
    made = None
    if datatype == XSD + "double":
        if FLOATING.fullmatch(lexical):
            made = TermValue(Family.DOUBLE, term, lexical, number=float(lexical), rank=DOUBLE, datatype=datatype)
    elif datatype == XSD + "decimal":
        made = _parse_exact(term, lexical, datatype, DECIMAL) if FRACTION.fullmatch(lexical) else None
    elif datatype in _INTEGER_TYPES:
        made = _parse_exact(term, lexical, datatype, WHOLE) if INTEGER.fullmatch(lexical) else None
    elif datatype == XSD + "dateTime":
        made = _parse_time(Family.DATETIME, _INSTANT, term, lexical, datatype)
    elif datatype == XSD + "date":
        made = _parse_time(Family.DATE, _DATE, term, lexical, datatype)
    elif term in BOOLEANS:
        made = TermValue(Family.BOOLEAN, term, lexical, truth=BOOLEANS[term], datatype=datatype)
    else:
        return _other(term, lexical, datatype)
    return made or _ill_typed(term, lexical, datatype)


def _parse_exact(term: str, lexical: str, datatype: str, rank: int) -> TermValue | None:
    if sum(each.isdigit() for each in lexical) > _DIGITS:
        return None
    return TermValue(
        Family.EXACT, term, lexical, number=float(lexical), exact=Decimal(lexical), rank=rank, datatype=datatype
    )


def _ill_typed(term: str, lexical: str, datatype: str) -> TermValue:
    """A literal that is not of plain form. Without any digit it is surely no number and no time, unless it is a word
    for one."""
    if any(each.isdigit() for each in lexical) or lexical.strip("+-").lower() in ("inf", "infinity", "nan"):
        return TermValue(None, term, lexical, datatype=datatype)
    return _other(term, lexical, datatype)


def _other(term: str, lexical: str, datatype: str) -> TermValue:
    if datatype == XSD + "float":
        return TermValue(None, term, lexical, datatype=datatype)
    return TermValue(Family.OTHER, term, lexical, truth=datatype in _CLAIMS, datatype=datatype)


def _parse_time(family: Family, form: re.Pattern[str], term: str, lexical: str, datatype: str) -> TermValue | None:
    """Parse a time between the years 1 and 9999, with a valid hour."""
    plain = form.fullmatch(lexical)
    if plain is None:
        return None
    whole = lexical if family is Family.DATETIME else f"{lexical[:10]}T00:00:00{lexical[10:]}"
    try:
        found = datetime.fromisoformat(whole)
    except ValueError:
        return None
    since = found - (_EPOCH_THERE if found.tzinfo else _EPOCH)
    time = (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
    return TermValue(family, term, lexical, truth=bool(plain[1]), time=time, datatype=datatype)


_SPECIAL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff]")


def _quote(lexical: str, tag: str | None) -> str:
    if _SPECIAL.search(lexical):
        raise Undecided
    return literal(lexical, language=tag)


def _digits(exact: Decimal | None) -> str:
    """The number without exponent and trailing zeros. Undecided if it is not known exactly."""
    if exact is None:
        raise Undecided
    written = format(exact, "f")
    if "." in written:
        written = written.rstrip("0").rstrip(".")
    return "0" if written in ("-0", "") else written
