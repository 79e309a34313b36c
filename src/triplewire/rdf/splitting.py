"""Splitters: a body that arrives in pieces is taken apart into items that can each be parsed alone.

N-Quads is split by lines, TriG by statements: a graph in braces, or triples up to their full stop. Statements are told
apart by punctuation alone, so that a broken one does not spoil the others; directives hold for all that follow. A body
that does not parse is split into its events, so that one of them can be refused alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import ClassVar, Protocol

import pyoxigraph as ox

from triplewire.model.errors import BodyTooLarge
from triplewire.rdf.checks import BODY_BYTES, EXPANDED_BYTES, check_depth, describe_syntax_error
from triplewire.rdf.syntaxes import N_QUADS, TRIG, Syntax


@dataclass(frozen=True)
class RawItem:
    """The bytes of one item, and the number of the line at which they begin, from 1 on."""

    line: int
    data: bytes


class Splitter(Protocol):
    """Takes bytes as they arrive and yields items, each as soon as it is complete."""

    def feed(self, data: bytes) -> Iterator[RawItem]:
        """Yield the items that are complete now; to be exhausted before the next call.

        Raises InputError if the end of an item cannot be found; then nothing after it can be parsed either.
        """

    def end(self) -> Iterator[RawItem]:
        """Yield the last item. Raises InputError if it is incomplete."""


@dataclass
class LineSplitter:
    """Splits lines; empty ones are skipped."""

    _line: int = 1
    _rest: list[bytes] = field(default_factory=list)
    _size: int = 0

    def feed(self, data: bytes) -> Iterator[RawItem]:
        *lines, rest = data.split(b"\n")
        for line in lines:
            yield from self._cut(b"".join((*self._rest, line)))
            self._rest, self._size = [], 0
        self._rest.append(rest)
        self._size += len(rest)
        if self._size > BODY_BYTES:
            raise BodyTooLarge("a line", BODY_BYTES)

    def end(self) -> Iterator[RawItem]:
        yield from self._cut(b"".join(self._rest))
        self._rest = []

    def _cut(self, text: bytes) -> Iterator[RawItem]:
        self._line += 1
        if text.strip():
            yield RawItem(self._line - 1, text)


_QUAD = re.compile(
    rb'\s*\S+\s+\S+\s+(?:"[^"\\]*(?:\\.[^"\\]*)*"(?:@[A-Za-z0-9-]+|\^\^<[^<>]*>)?|<<\(.*\)>>|<[^<>]*>|_:\S+)'
    rb"(?:\s*(<[^<>]*>|_:[^\s.]+))?\s*\.\s*(?:#.*)?"
)
_GRAPH = re.compile(rb"(<[^<>\s]*>)\s*\.\s*\Z")


def find_graph(line: bytes) -> bytes | None:
    """Return the graph of a line of N-Quads, b"" for the default graph; None for a comment and for a line that is too
    malformed to find it."""
    if found := _QUAD.fullmatch(line):
        return found[1] or b""
    return found[1] if (found := _GRAPH.search(line)) else None


@dataclass
class LineGroupSplitter:
    """Splits lines into groups that are one item each; `_add` says where a group ends."""

    _lines: LineSplitter = field(default_factory=LineSplitter)
    _held: list[RawItem] = field(default_factory=list)
    _size: int = 0
    item: ClassVar[str] = "a group of lines"

    def feed(self, data: bytes) -> Iterator[RawItem]:
        for line in self._lines.feed(data):
            yield from self._add(line)

    def end(self) -> Iterator[RawItem]:
        for line in self._lines.end():
            yield from self._add(line)
        yield from self._flush()

    def _add(self, line: RawItem) -> Iterator[RawItem]:
        raise NotImplementedError

    def _hold(self, line: RawItem) -> None:
        self._held.append(line)
        self._size += len(line.data) + 1
        if self._size > BODY_BYTES:
            raise BodyTooLarge(self.item, BODY_BYTES)

    def _flush(self) -> Iterator[RawItem]:
        """Yield the group with as many line ends between lines as there were, so that line numbers stay right."""
        if self._held:
            ends = [b"\n" * (line.line - before.line) + line.data for before, line in pairwise(self._held)]
            yield RawItem(self._held[0].line, self._held[0].data + b"".join(ends))
        self._held, self._size = [], 0


@dataclass
class QuadSplitter(LineGroupSplitter):
    """Splits N-Quads into runs of lines of one graph, up to a line of another graph or an empty line.

    A malformed line of unknown graph spoils the runs on both its sides.
    """

    _next: int = 1
    _graph: bytes | None = None
    _orphan: RawItem | None = None
    """A malformed line of unknown graph at the end of the run."""
    item = "the quads of one event"

    def _add(self, line: RawItem) -> Iterator[RawItem]:
        if line.line > self._next:  # there were empty lines before it
            yield from self._flush_run()
            self._orphan = None
        self._next = line.line + 1
        if line.data.lstrip().startswith(b"#"):
            return
        graph = find_graph(line.data)
        if graph is not None:
            yield from self._switch_graph(graph)
        self._orphan = line if graph is None else None
        self._hold(line)

    def _switch_graph(self, graph: bytes) -> Iterator[RawItem]:
        if self._held and self._graph not in (None, graph):
            yield from self._flush_run()
            if self._orphan is not None:
                self._hold(self._orphan)
        self._graph = graph

    def _flush_run(self) -> Iterator[RawItem]:
        self._graph = None
        return self._flush()


_LONG_BODY = rb"(?:[^Q\\]|\\.|Q{1,2}(?!Q))*"
_SHORT_BODY = rb"[^Q\\\r\n]*(?:\\.[^Q\\\r\n]*)*"


def _quoted(pattern: bytes) -> bytes:
    """Return the pattern with each of the two quotes in place of Q."""
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
"""Punctuation. A full stop inside a name or a number has one of their characters after it."""

_TOKEN = re.compile(b"|".join([_LONG, _SHORT, _SIGNS]), re.DOTALL | re.IGNORECASE)
"""Tokens that may end a statement; strings, comments, escapes and IRIs are skipped."""
_TOKEN_OR_CUT = re.compile(b"|".join([_LONG, _CUT, _SHORT, _SIGNS]), re.DOTALL | re.IGNORECASE)

_SPACE = re.compile(rb"\s*(?:#[^\r\n]*\s*)*")
_DIRECTIVE = re.compile(rb"@(?:prefix|base|version)\b|(?:prefix|base|version)\s", re.IGNORECASE)
_SPARQL_DIRECTIVE = re.compile(
    rb"(?:prefix\s+[^\s<]*\s*<[^<>\"{}\s]*>|base\s*<[^<>\"{}\s]*>|version\s+(?:\"[^\"\n]*\"|'[^'\n]*')"
    rb"|message(?=[\s#<]))",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class DocumentPart:
    """Bytes of a document with the number of their first line, from 1 on. A `directive` holds for all that follows."""

    body: bytes
    line: int
    directive: bool = False


def find_ends(text: bytes, *, whole: bool) -> Iterator[int]:
    """Yield the ends of TriG statements in a text that begins between two of them.

    After the last end come part of a statement, or space and comments. If the text is not `whole` it may end anywhere,
    within a string too.
    """
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


def split_statements(text: bytes, line: int) -> Iterator[DocumentPart]:
    """Yield the statements of a text that ends with one."""
    start = 0
    for end in [*find_ends(text, whole=True), len(text)]:
        first = skip_space(text, start)
        line += text.count(b"\n", start, first)
        if body := text[first:end]:
            yield DocumentPart(body, line, bool(_DIRECTIVE.match(body)))
        line += body.count(b"\n")
        start = end


def skip_space(text: bytes, at: int = 0) -> int:
    """Return the start of the next statement, after space and comments."""
    found = _SPACE.match(text, at)
    return found.end() if found else at


def split_lines(text: bytes, line: int) -> Iterator[DocumentPart]:
    for number, body in enumerate(text.split(b"\n"), line):
        if body.strip():
            yield DocumentPart(body + b"\n", number)


def canonicalize(body: bytes, syntax: Syntax) -> bytes:
    """Return a body as canonical N-Quads, one quad a line, in its order.

    Raises MalformedRdf, with the position, and InputError if it is nested too deeply.
    """
    check_depth(body, syntax)
    try:
        return ox.serialize(ox.parse(body, format=syntax.format), format=N_QUADS.format) or b""
    except SyntaxError as fault:
        raise describe_syntax_error(body, syntax, fault, None) from None


_LABEL = re.compile(rb"(?:GRAPH\s+)?(<[^<>\s]*>|[^\s{}<>\"']+)\s*\{", re.IGNORECASE)
_ANY = b" { <urn:any> <urn:any> <urn:any> }"


@dataclass(frozen=True)
class _Piece:
    """Part of a body in one graph; None if the graph is unknown."""

    graph: str | None
    line: int
    text: bytes


def split_events(body: bytes, syntax: Syntax) -> list[RawItem]:
    """Split a body that does not parse into its events, so that one of them can be refused alone.

    Each becomes a document of its own, in order of first appearance. Empty if there are not several, or if some part
    belongs to none of them for certain.
    """
    read = _SPLITTERS.get(syntax)
    found: dict[str, list[_Piece]] = {}
    for piece in read(body) if read else ():
        if piece.graph is None:
            return []
        found.setdefault(piece.graph, []).append(piece)
    if len(found) < 2:
        return []
    return [RawItem(pieces[0].line, b"".join(piece.text for piece in pieces)) for pieces in found.values()]


def _split_nquads(body: bytes) -> Iterator[_Piece]:
    for part in split_lines(body, 1):
        if not part.body.lstrip().startswith(b"#"):
            graph = find_graph(part.body.rstrip(b"\r\n"))
            yield _Piece(None if graph is None else _graph(graph), part.line, part.body)


def _split_trig(body: bytes) -> Iterator[_Piece]:
    prologue, read = b"", 0
    for part in split_statements(body, 1):
        if part.directive:
            prologue += part.body + b"\n"
            continue
        read += len(prologue)
        label = _LABEL.match(part.body)
        if read > EXPANDED_BYTES or label is None:
            yield _Piece(None, part.line, b"")
            return
        yield _Piece(_resolve_graph(prologue + label[1] + _ANY), part.line, prologue + part.body + b"\n")


def _resolve_graph(document: bytes) -> str | None:
    try:
        (quad,) = ox.parse(document, format=TRIG.format)
    except (SyntaxError, ValueError):
        return None
    return _graph(str(quad.graph_name).encode())


def _graph(term: bytes) -> str | None:
    """Return the name of a graph; None for a blank node, which other graphs may refer to."""
    return None if term.startswith(b"_:") else term.decode(errors="replace")


_SPLITTERS = {N_QUADS: _split_nquads, TRIG: _split_trig}
