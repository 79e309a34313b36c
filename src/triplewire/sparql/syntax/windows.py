"""Windows: where a continuous query declares them and where it uses them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

from triplewire.config import limits
from triplewire.model.events import STREAM_NAME
from triplewire.sparql.syntax.cursor import Cursor, Windows
from triplewire.sparql.syntax.durations import count, duration
from triplewire.sparql.syntax.terms import address, at_iri
from triplewire.sparql.windows import Kind, WindowClause

_STREAM = re.compile(rf"(?:[A-Za-z][A-Za-z0-9+.-]*:.*/streams/)?({STREAM_NAME.pattern})")

Measure: TypeAlias = Callable[[Cursor, str], int]


def declare(cursor: Cursor, windows: Windows) -> None:
    """A window, from the word WINDOW on: `WINDOW <w> ON <stream> [RANGE PT10M STEP PT1M]`."""
    opening = cursor.expect("WINDOW")
    cursor.count("windows", limits.QUERY_WINDOWS, token=opening)
    token = cursor.token
    name = _name(cursor)
    if name in windows.declared:
        raise cursor.wrong("a window that is declared once", token)
    cursor.expect("ON")
    cursor.accept("STREAM")
    stream = stream_name(cursor)
    cursor.expect("[")
    kind, range_, step = _extent(cursor)
    cursor.expect("]")
    windows.declared[name] = token, WindowClause(name, stream, kind, range_, step)


def used(cursor: Cursor, windows: Windows) -> str:
    """The name of the window that comes next, which must be declared."""
    token = cursor.token
    if token.kind == "variable":
        cursor.refuse(f"WINDOW {token.text}", hint="name the window by its IRI")
        cursor.take()
        return ""
    name = _name(cursor)
    if name not in windows.declared:
        raise cursor.wrong("a window that `FROM NAMED WINDOW` declares", token)
    windows.used.add(name)
    return name


def stream_name(cursor: Cursor) -> str:
    """The name of a stream: `<home>`, which is not relative to any base, or an address that ends in `/streams/home`."""
    token = cursor.token
    text = _as_written(cursor) if token.kind == "iri" else _expanded(cursor, "the name of a stream as an IRI")
    found = _STREAM.fullmatch(text)
    if found is None or len(found[1]) > limits.STREAM_NAME_CHARACTERS:
        raise cursor.wrong("a stream, as `<home>` or `<http://…/streams/home>`", token)
    return found[1]


def _name(cursor: Cursor) -> str:
    """The IRI of a window; what is relative to nothing stays as it is written."""
    if cursor.token.kind == "iri" and cursor.base is None:
        return _as_written(cursor)
    return _expanded(cursor, "the name of a window as an IRI")


def _as_written(cursor: Cursor) -> str:
    return cursor.take().text[1:-1]


def _expanded(cursor: Cursor, expected: str) -> str:
    if not at_iri(cursor):
        raise cursor.wrong(expected)
    return address(cursor)


def _extent(cursor: Cursor) -> tuple[Kind, int, int]:
    """What stands in brackets: the kind, the range and the step of a window."""
    if cursor.accept("SESSION"):
        gap = duration(cursor, "gap")
        return "session", gap, gap
    ranged = cursor.accept("RANGE")
    if cursor.accept("TRIPLES"):
        return "count", *_stepped(cursor, count)
    if not ranged:
        raise cursor.wrong("`RANGE`, `TRIPLES` or `SESSION`")
    return "time", *_stepped(cursor, duration)


def _stepped(cursor: Cursor, measure: Measure) -> tuple[int, int]:
    """A range and a step; without one, windows tumble."""
    range_ = measure(cursor, "range")
    if cursor.accept("STEP"):
        return range_, measure(cursor, "step")
    cursor.accept("TUMBLING")
    return range_, range_
