"""Durations: how long a window is, as XSD writes it (`PT10M`) or short (`10m`)."""

from __future__ import annotations

import re
from decimal import Decimal

from triplewire.config import limits
from triplewire.sparql.syntax.cursor import Cursor
from triplewire.sparql.syntax.tokens import Token

_XSD = re.compile(r"(-?)P(?=.)(?:(\d+)D)?(?:T(?=.)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?", re.ASCII)
_SHORT = re.compile(r"(-?)(\d+(?:\.\d+)?)(d|h|m|s|ms)", re.ASCII)
_PARTS = frozenset({"word", "integer", "decimal", "double"})
_SECOND = 1_000_000
_UNITS = {"d": 86_400 * _SECOND, "h": 3_600 * _SECOND, "m": 60 * _SECOND, "s": _SECOND, "ms": 1_000}
_LONGEST = 24
"""Characters of a number or duration that is looked at: far more than any within the limits has."""

_EXPECTED = "a duration of days, hours, minutes and seconds, such as `PT10M`, `P1DT12H` or `10m`"


def duration(cursor: Cursor, what: str) -> int:
    """The duration that comes next, in microseconds: whole ones, more than none, and not too many."""
    token, text = _taken(cursor)
    found = microseconds(text)
    if found is None:
        raise cursor.wrong(_EXPECTED, token)
    if found <= 0:
        raise cursor.wrong(f"a {what} above zero", token)
    if found != int(found):
        raise cursor.wrong(f"a {what} of whole microseconds", token)
    if found > limits.QUERY_WINDOW_DAYS * _UNITS["d"]:
        raise cursor.unsupported(f"a {what} of more than {limits.QUERY_WINDOW_DAYS} days", token)
    return int(found)


def count(cursor: Cursor, what: str) -> int:
    """The number of triples that comes next."""
    token, text = _taken(cursor)
    if not re.fullmatch(r"-?\d+", text, re.ASCII):
        raise cursor.wrong("a whole number of triples", token)
    digits = text.lstrip("0")
    if not digits or digits.startswith("-"):
        raise cursor.wrong(f"a {what} above zero", token)
    if len(digits) > _LONGEST or int(digits) > limits.QUERY_WINDOW_TRIPLES:
        raise cursor.unsupported(f"a {what} of more than {limits.QUERY_WINDOW_TRIPLES} triples", token)
    return int(digits)


def _taken(cursor: Cursor) -> tuple[Token, str]:
    """Tokens without space between them, as one text: `PT0.5S` is three."""
    first = cursor.token
    start = bool(cursor.accept("-"))
    while cursor.token.kind in _PARTS and (not start or cursor.token.offset == cursor.last.end):
        cursor.take()
        start = True
    return first, cursor.since(first) if start else ""


def microseconds(text: str) -> Decimal | None:
    """How many a text says; None for one that is no duration."""
    if len(text) > _LONGEST:
        return None
    if found := _XSD.fullmatch(text):
        sign, *parts = found.groups()
        given = zip(("d", "h", "m", "s"), parts, strict=True)
        made = sum((Decimal(part) * _UNITS[unit] for unit, part in given if part is not None), Decimal(0))
        return -made if sign else made
    if found := _SHORT.fullmatch(text):
        return Decimal(found[1] + found[2]) * _UNITS[found[3]]
    return None
