"""Grammar of RSP-QL windows: their declaration, their use, stream names and durations (`PT10M` or `10m`)."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Final, TypeAlias

from triplewire.model.events import STREAM_NAME, STREAM_NAME_CHARACTERS
from triplewire.sparql.syntax.cursor import Cursor, WindowClause, WindowDeclarations, WindowKind
from triplewire.sparql.syntax.lexer import Token
from triplewire.sparql.syntax.terms import at_iri, parse_iri_text

QUERY_WINDOWS: Final = 16
"""The most windows of one continuous query. Each is kept, and whenever one closes the query is evaluated over all."""

QUERY_WINDOW_DAYS: Final = 366
"""The longest range of a time window, its step, or the gap that ends a session. The content of windows is limited
separately."""

QUERY_WINDOW_TRIPLES: Final = 1_000_000
"""The largest range of a window that counts triples, or its step: at worst some 300 MB are kept."""

_XSD = re.compile(r"(-?)P(?=.)(?:(\d+)D)?(?:T(?=.)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?", re.ASCII)
_SHORT = re.compile(r"(-?)(\d+(?:\.\d+)?)(d|h|m|s|ms)", re.ASCII)
_PARTS = frozenset({"word", "integer", "decimal", "double"})
_SECOND = 1_000_000
_UNITS = {"d": 86_400 * _SECOND, "h": 3_600 * _SECOND, "m": 60 * _SECOND, "s": _SECOND, "ms": 1_000}
_LONGEST_NUMBER = 24
"""The longest number or duration that is parsed: far longer than any within the limits."""

_EXPECTED_DURATION = "a duration of days, hours, minutes and seconds, such as `PT10M`, `P1DT12H` or `10m`"


def parse_duration(cursor: Cursor, what: str) -> int:
    """Parse a duration and return it in microseconds: a whole number, positive, and within the limit."""
    token, text = _take_text(cursor)
    found = duration_microseconds(text)
    if found is None:
        raise cursor.syntax_error(_EXPECTED_DURATION, token)
    if found <= 0:
        raise cursor.syntax_error(f"a {what} above zero", token)
    if found != int(found):
        raise cursor.syntax_error(f"a {what} of whole microseconds", token)
    if found > QUERY_WINDOW_DAYS * _UNITS["d"]:
        raise cursor.unsupported(f"a {what} of more than {QUERY_WINDOW_DAYS} days", token)
    return int(found)


def parse_triple_count(cursor: Cursor, what: str) -> int:
    token, text = _take_text(cursor)
    if not re.fullmatch(r"-?\d+", text, re.ASCII):
        raise cursor.syntax_error("a whole number of triples", token)
    digits = text.lstrip("0")
    if not digits or digits.startswith("-"):
        raise cursor.syntax_error(f"a {what} above zero", token)
    if len(digits) > _LONGEST_NUMBER or int(digits) > QUERY_WINDOW_TRIPLES:
        raise cursor.unsupported(f"a {what} of more than {QUERY_WINDOW_TRIPLES} triples", token)
    return int(digits)


def _take_text(cursor: Cursor) -> tuple[Token, str]:
    """Parse adjacent tokens as one text: `PT0.5S` is three."""
    first = cursor.token
    start = bool(cursor.accept("-"))
    while cursor.token.kind in _PARTS and (not start or cursor.token.offset == cursor.last.end):
        cursor.take()
        start = True
    return first, cursor.since(first) if start else ""


def duration_microseconds(text: str) -> Decimal | None:
    """Return the microseconds that a text says; None if it is no duration."""
    if len(text) > _LONGEST_NUMBER:
        return None
    if found := _XSD.fullmatch(text):
        sign, *parts = found.groups()
        given = zip(("d", "h", "m", "s"), parts, strict=True)
        made = sum((Decimal(part) * _UNITS[unit] for unit, part in given if part is not None), Decimal(0))
        return -made if sign else made
    if found := _SHORT.fullmatch(text):
        return Decimal(found[1] + found[2]) * _UNITS[found[3]]
    return None


_STREAM = re.compile(rf"(?:[A-Za-z][A-Za-z0-9+.-]*:.*/streams/)?({STREAM_NAME.pattern})")

Measure: TypeAlias = Callable[[Cursor, str], int]


def parse_window_declaration(cursor: Cursor, windows: WindowDeclarations) -> None:
    """Parse a window declaration, from the word WINDOW on: `WINDOW <w> ON <stream> [RANGE PT10M STEP PT1M]`."""
    opening = cursor.expect("WINDOW")
    cursor.count("windows", QUERY_WINDOWS, token=opening)
    token = cursor.token
    name = _window_name(cursor)
    if name in windows.declared:
        raise cursor.syntax_error("a window that is declared once", token)
    cursor.expect("ON")
    cursor.accept("STREAM")
    stream = parse_stream_name(cursor)
    cursor.expect("[")
    kind, range_, step = _extent(cursor)
    cursor.expect("]")
    windows.declared[name] = token, WindowClause(name, stream, kind, range_, step)


def parse_window_use(cursor: Cursor, windows: WindowDeclarations) -> str:
    """Parse the name of a window, which must be declared."""
    token = cursor.token
    if token.kind == "variable":
        cursor.refuse(f"WINDOW {token.text}", hint="name the window by its IRI")
        cursor.take()
        return ""
    name = _window_name(cursor)
    if name not in windows.declared:
        raise cursor.syntax_error("a window that `FROM NAMED WINDOW` declares", token)
    windows.used.add(name)
    return name


def parse_stream_name(cursor: Cursor) -> str:
    """Parse the name of a stream: `<home>`, which is not relative to any base, or an IRI that ends in
    `/streams/home`."""
    token = cursor.token
    text = _as_written(cursor) if token.kind == "iri" else _expanded(cursor, "the name of a stream as an IRI")
    found = _STREAM.fullmatch(text)
    if found is None or len(found[1]) > STREAM_NAME_CHARACTERS:
        raise cursor.syntax_error("a stream, as `<home>` or `<http://…/streams/home>`", token)
    return found[1]


def _window_name(cursor: Cursor) -> str:
    """Parse the IRI of a window; a relative one without a base stays as it is written."""
    if cursor.token.kind == "iri" and cursor.base is None:
        return _as_written(cursor)
    return _expanded(cursor, "the name of a window as an IRI")


def _as_written(cursor: Cursor) -> str:
    return cursor.take().text[1:-1]


def _expanded(cursor: Cursor, expected: str) -> str:
    if not at_iri(cursor):
        raise cursor.syntax_error(expected)
    return parse_iri_text(cursor)


def _extent(cursor: Cursor) -> tuple[WindowKind, int, int]:
    """Parse the brackets of a window: its kind, range and step."""
    if cursor.accept("SESSION"):
        gap = parse_duration(cursor, "gap")
        return "session", gap, gap
    ranged = cursor.accept("RANGE")
    if cursor.accept("TRIPLES"):
        return "count", *_range_and_step(cursor, parse_triple_count)
    if not ranged:
        raise cursor.syntax_error("`RANGE`, `TRIPLES` or `SESSION`")
    return "time", *_range_and_step(cursor, parse_duration)


def _range_and_step(cursor: Cursor, measure: Measure) -> tuple[int, int]:
    """Parse a range and a step; without a step, windows tumble."""
    range_ = measure(cursor, "range")
    if cursor.accept("STEP"):
        return range_, measure(cursor, "step")
    cursor.accept("TUMBLING")
    return range_, range_
