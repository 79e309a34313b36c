"""Faults: what the parser says about a document, told to the one who wrote it."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pyoxigraph as ox

from triplewire.codec.syntaxes import Syntax
from triplewire.errors import MalformedRdf, Place

_PREFIX = re.compile(r"^Parser error (?:at|between) line .*?: |\(line \d+\)$")
_SHOWN = 72


def malformed(body: bytes, syntax: Syntax, fault: SyntaxError) -> MalformedRdf:
    """The error for a body that the parser refused, with its place and the text there."""
    place = Place(fault.lineno, fault.offset or 1) if fault.lineno else _reached(body, syntax)
    return fault_at(body, syntax, _PREFIX.sub("", fault.msg), place)


def fault_at(body: bytes, syntax: Syntax, reason: str, place: Place | None) -> MalformedRdf:
    if place is None:
        return MalformedRdf(f"this is not {syntax.name}: {reason}")
    return MalformedRdf(f"this is not {syntax.name}: {reason}, at {place}: {shown(body, place)}", place=place)


def shown(body: bytes, place: Place) -> str:
    """The line at a place, cut to what stands around the column."""
    lines = body.split(b"\n", place.line)
    line = lines[place.line - 1].decode(errors="replace") if len(lines) >= place.line else ""
    start = max(0, min(place.column - 1 - _SHOWN // 2, len(line) - _SHOWN))
    cut = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in line[start : start + _SHOWN].strip())
    return f"{'…' if start else ''}{cut}{'…' if start + _SHOWN < len(line) else ''}" or "(end of input)"


class _Lines:
    """The body as a file that is handed out a line at a time, so that it is known how far the parser came."""

    def __init__(self, body: bytes) -> None:
        self._lines: Iterator[bytes] = iter(body.splitlines(keepends=True))
        self.count = 0

    def read(self, _size: int = -1) -> bytes:
        line = next(self._lines, b"")
        self.count += bool(line)
        return line


def _reached(body: bytes, syntax: Syntax) -> Place | None:
    """The line at which the parser gave up, for the parsers that do not say."""
    lines = _Lines(body)
    try:
        for _ in ox.parse(lines, format=syntax.format):  # type: ignore[arg-type]
            pass
    except SyntaxError:
        return Place(max(1, lines.count), 1)
    return None
