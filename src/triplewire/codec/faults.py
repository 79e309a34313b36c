"""Faults: what the parser says about a document, told to the one who wrote it."""

from __future__ import annotations

import re
from io import BytesIO

import pyoxigraph as ox

from triplewire.codec.syntaxes import Syntax
from triplewire.model.errors import MalformedRdf, TextPosition

_PREFIX = re.compile(r"^Parser error (?:at|between) line .*?: ")
_SHOWN = 72

_IN_OUR_WORDS = {
    "No LoadDocumentCallback has been set to load remote contexts": "a remote @context is not fetched; write it out",
    "No scheme found in an absolute IRI": "a relative IRI, without a base to resolve it",
}


def malformed(body: bytes, syntax: Syntax, fault: SyntaxError, base_iri: str | None) -> MalformedRdf:
    """The error for a body that the parser refused, with its place and the text there."""
    place = TextPosition(fault.lineno, fault.offset or 1) if fault.lineno else _reached(body, syntax, base_iri)
    reason = _PREFIX.sub("", fault.msg)
    return fault_at(body, syntax, _IN_OUR_WORDS.get(reason, reason), place)


def fault_at(body: bytes, syntax: Syntax, reason: str, place: TextPosition | None) -> MalformedRdf:
    """The error for a reason and a place that are known."""
    if place is None:
        return MalformedRdf(f"this is not {syntax.name}: {reason}")
    return MalformedRdf(f"this is not {syntax.name}: {reason}, at {place}: {shown(body, place)}", place=place)


def shown(body: bytes, place: TextPosition) -> str:
    """The line at a place, cut to what stands around the column."""
    lines = body.split(b"\n", place.line)
    line = lines[place.line - 1].decode(errors="replace") if len(lines) >= place.line else ""
    start = max(0, min(place.column - 1 - _SHOWN // 2, len(line) - _SHOWN))
    cut = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in line[start : start + _SHOWN].strip())
    return f"{'…' if start else ''}{cut}{'…' if start + _SHOWN < len(line) else ''}" or "(end of input)"


class _Lines(BytesIO):
    """The body as a file that is handed out a line at a time, so that it is known how far the parser came."""

    def read(self, size: int | None = -1, /) -> bytes:
        return self.readline(size)


def _reached(body: bytes, syntax: Syntax, base_iri: str | None) -> TextPosition | None:
    """The line at which the parser gave up, for the parsers that do not say."""
    lines = _Lines(body)
    try:
        for _ in ox.parse(lines, format=syntax.format, base_iri=base_iri):
            pass
    except SyntaxError:
        return TextPosition(body.count(b"\n", 0, max(0, lines.tell() - 1)) + 1, 1)
    return None
