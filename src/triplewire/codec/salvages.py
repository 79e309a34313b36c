"""Salvages: of a body that does not parse, the events that can be told apart, so that one can be refused alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pyoxigraph as ox

from triplewire.codec.cuts import Cut, graph_of
from triplewire.codec.statements import lines, statements
from triplewire.codec.syntaxes import N_QUADS, TRIG, Syntax
from triplewire.config import limits

_LABEL = re.compile(rb"(?:GRAPH\s+)?(<[^<>\s]*>|[^\s{}<>\"']+)\s*\{", re.IGNORECASE)
_ANY = b" { <urn:any> <urn:any> <urn:any> }"


@dataclass(frozen=True)
class _Piece:
    """Some of a body that is of one graph; None where that cannot be told."""

    graph: str | None
    line: int
    text: bytes


def salvaged(body: bytes, syntax: Syntax) -> list[Cut]:
    """The body event by event, each as a document of its own, in order of first appearance. Empty where there are not
    several, or where something cannot be told to be a part of one of them."""
    read = _READERS.get(syntax)
    found: dict[str, list[_Piece]] = {}
    for piece in read(body) if read else ():
        if piece.graph is None:
            return []
        found.setdefault(piece.graph, []).append(piece)
    if len(found) < 2:
        return []
    return [Cut(pieces[0].line, b"".join(piece.text for piece in pieces)) for pieces in found.values()]


def _of_lines(body: bytes) -> Iterator[_Piece]:
    for part in lines(body, 1):
        if not part.body.lstrip().startswith(b"#"):
            graph = graph_of(part.body.rstrip(b"\r\n"))
            yield _Piece(None if graph is None else _graph(graph), part.line, part.body)


def _of_statements(body: bytes) -> Iterator[_Piece]:
    prologue, read = b"", 0
    for part in statements(body, 1):
        if part.directive:
            prologue += part.body + b"\n"
            continue
        read += len(prologue)
        label = _LABEL.match(part.body)
        if read > limits.EXPANDED_BYTES or label is None:
            yield _Piece(None, part.line, b"")
            return
        yield _Piece(_resolved(prologue + label[1] + _ANY), part.line, prologue + part.body + b"\n")


def _resolved(document: bytes) -> str | None:
    """The graph that a document names."""
    try:
        (quad,) = ox.parse(document, format=TRIG.format)
    except (SyntaxError, ValueError):
        return None
    return _graph(str(quad.graph_name).encode())


def _graph(term: bytes) -> str | None:
    """A graph by its name. One that a blank node names may be spoken of by the others: it cannot go alone."""
    return None if term.startswith(b"_:") else term.decode(errors="replace")


_READERS = {N_QUADS: _of_lines, TRIG: _of_statements}
