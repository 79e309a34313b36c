"""Statements: a document in parts that can each be read by itself.

N-Quads has lines. TriG has statements: a graph in braces, or triples up to their full stop; directives hold for those
that come after. They are told apart by their signs alone, so that a broken part does not take the others along.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pyoxigraph as ox

from triplewire.codec.depths import check_depth
from triplewire.codec.faults import malformed
from triplewire.codec.syntaxes import N_QUADS, Syntax

_LONG_BODY = rb"(?:[^Q\\]|\\.|Q{1,2}(?!Q))*"
_SHORT_BODY = rb"[^Q\\\r\n]*(?:\\.[^Q\\\r\n]*)*"


def _quoted(pattern: bytes) -> bytes:
    """The pattern with each of the two quotes in the place of Q."""
    return b"|".join(pattern.replace(b"Q", quote) for quote in (b'"', b"'"))


_LONG = _quoted(b"QQQ" + _LONG_BODY + b"QQQ")
_SHORT = _quoted(b"Q" + _SHORT_BODY + b"Q")
_CUT = b"(?P<cut>" + _quoted(b"QQQ" + _LONG_BODY + rb"\Z|Q" + _SHORT_BODY + rb"\\?\Z") + rb'|<[^<>"{}\s]*\Z|\.\Z)'
"""A string or an IRI that the end of the text cuts off, or a full stop that may be the point of a number."""
_SIGNS = (
    rb'#[^\r\n]*|\\.|<[^<>"{}\s]*>'
    # A directive without a full stop, as SPARQL writes them.
    rb"|(?P<directive>(?<![^\s.}>])(?:prefix|base|version)(?=\s)|(?<![^\s}>])message(?=[\s#<]))"
    rb"|(?P<open>\{)|(?P<close>\})|(?P<stop>\.(?![0-9A-Za-z_%:\\-]))"
)
"""A full stop inside of a name or a number has one of their characters after it."""

_TOKEN = re.compile(b"|".join([_LONG, _SHORT, _SIGNS]), re.DOTALL | re.IGNORECASE)
"""What may end a statement; strings, comments, escapes and IRIs are stepped over."""
_TOKEN_OR_CUT = re.compile(b"|".join([_LONG, _CUT, _SHORT, _SIGNS]), re.DOTALL | re.IGNORECASE)

_SPACE = re.compile(rb"\s*(?:#[^\r\n]*\s*)*")
_DIRECTIVE = re.compile(rb"@(?:prefix|base|version)\b|(?:prefix|base|version)\s", re.IGNORECASE)
_SPARQL_DIRECTIVE = re.compile(
    rb"(?:prefix\s+[^\s<]*\s*<[^<>\"{}\s]*>|base\s*<[^<>\"{}\s]*>|version\s+(?:\"[^\"\n]*\"|'[^'\n]*')"
    rb"|message(?=[\s#<]))",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Part:
    """Bytes of a document, with the number of its first line, from 1 on. `directive` says that it speaks of what
    follows."""

    body: bytes
    line: int
    directive: bool = False


def ends(text: bytes, *, whole: bool) -> Iterator[int]:
    """Where statements of TriG end in a text that begins between two of them. What comes after the last is a part of
    one, or nothing but space and comments. A text that is not the whole may end anywhere, within a string too."""
    depth, at, tokens = 0, 0, _TOKEN if whole else _TOKEN_OR_CUT
    while found := tokens.search(text, at):
        kind, at = found.lastgroup, found.end()
        if kind == "cut":
            return
        if kind == "directive" and not depth:
            if directive := _SPARQL_DIRECTIVE.match(text, found.start()):
                at = directive.end()
                yield at
        elif kind == "open":
            depth += 1
        elif kind == "close":
            depth = max(depth - 1, 0)
            if not depth:
                yield at
        elif kind == "stop" and not depth:
            yield at


def statements(text: bytes, line: int) -> Iterator[Part]:
    """The statements of a text that ends with one."""
    start = 0
    for end in [*ends(text, whole=True), len(text)]:
        first = begin(text, start)
        line += text.count(b"\n", start, first)
        if body := text[first:end]:
            yield Part(body, line, bool(_DIRECTIVE.match(body)))
        line += body.count(b"\n")
        start = end


def begin(text: bytes, at: int = 0) -> int:
    """Where the next statement begins: after space and comments."""
    found = _SPACE.match(text, at)
    return found.end() if found else at


def lines(text: bytes, line: int) -> Iterator[Part]:
    """The lines of a text."""
    for number, body in enumerate(text.split(b"\n"), line):
        if body.strip():
            yield Part(body + b"\n", number)


def canonical(body: bytes, syntax: Syntax) -> bytes:
    """A body as canonical N-Quads, one quad a line and in its order. Raises MalformedRdf, with the place, and
    InputError for what is nested too deep."""
    check_depth(body, syntax)
    try:
        return ox.serialize(ox.parse(body, format=syntax.format), format=N_QUADS.format) or b""
    except SyntaxError as fault:
        raise malformed(body, syntax, fault, None) from None
