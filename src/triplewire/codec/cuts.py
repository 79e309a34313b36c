"""Cuts: a body that comes in pieces, taken apart into items that can each be read by themselves."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

from triplewire.config import limits
from triplewire.model.errors import BodyTooLarge


@dataclass(frozen=True)
class Cut:
    """The bytes of one item, and the number of the line at which they begin, from 1 on."""

    line: int
    data: bytes


class Cutter(Protocol):
    """Takes bytes as they come and gives items, each as soon as it is whole."""

    def feed(self, data: bytes) -> Iterator[Cut]:
        """The items that are whole now; to be used up before the next call. Raises InputError where the end of an item
        cannot be told; then nothing after it can be told either."""

    def end(self) -> Iterator[Cut]:
        """The last of them. Raises InputError if it is not whole."""


@dataclass
class LineCutter:
    """An item a line; empty lines are none."""

    _line: int = 1
    _rest: list[bytes] = field(default_factory=list)
    _size: int = 0

    def feed(self, data: bytes) -> Iterator[Cut]:
        *lines, rest = data.split(b"\n")
        for line in lines:
            yield from self._cut(b"".join((*self._rest, line)))
            self._rest, self._size = [], 0
        self._rest.append(rest)
        self._size += len(rest)
        if self._size > limits.BODY_BYTES:
            raise BodyTooLarge("a line", limits.BODY_BYTES)

    def end(self) -> Iterator[Cut]:
        yield from self._cut(b"".join(self._rest))
        self._rest = []

    def _cut(self, text: bytes) -> Iterator[Cut]:
        self._line += 1
        if text.strip():
            yield Cut(self._line - 1, text)


_QUAD = re.compile(
    rb'\s*\S+\s+\S+\s+(?:"[^"\\]*(?:\\.[^"\\]*)*"(?:@[A-Za-z0-9-]+|\^\^<[^<>]*>)?|<<\(.*\)>>|<[^<>]*>|_:\S+)'
    rb"(?:\s*(<[^<>]*>|_:[^\s.]+))?\s*\.\s*(?:#.*)?"
)
_GRAPH = re.compile(rb"(<[^<>\s]*>)\s*\.\s*\Z")


def graph_of(line: bytes) -> bytes | None:
    """The graph of a line of N-Quads, b"" for the default graph. None for a line that is broken so that it cannot be
    told, or for a comment."""
    if found := _QUAD.fullmatch(line):
        return found[1] or b""
    return found[1] if (found := _GRAPH.search(line)) else None


@dataclass
class QuadCutter:
    """Lines of N-Quads one after the other that are of one graph, up to a line of another or to an empty one. A broken
    line that does not tell its graph spoils what stands on both its sides."""

    _lines: LineCutter = field(default_factory=LineCutter)
    _next: int = 1
    _held: list[Cut] = field(default_factory=list)
    _size: int = 0
    _graph: bytes | None = None
    _untold: Cut | None = None
    """A broken line with nothing after it of which it could be a part."""

    def feed(self, data: bytes) -> Iterator[Cut]:
        for cut in self._lines.feed(data):
            yield from self._add(cut)

    def end(self) -> Iterator[Cut]:
        for cut in self._lines.end():
            yield from self._add(cut)
        yield from self._whole()

    def _add(self, cut: Cut) -> Iterator[Cut]:
        if cut.line > self._next:  # there were empty lines before it
            yield from self._whole()
            self._untold = None
        self._next = cut.line + 1
        if cut.data.lstrip().startswith(b"#"):
            return
        graph = graph_of(cut.data)
        if graph is not None:
            yield from self._turn(graph)
        self._untold = cut if graph is None else None
        self._hold(cut)

    def _turn(self, graph: bytes) -> Iterator[Cut]:
        if self._held and self._graph not in (None, graph):
            yield from self._whole()
            if self._untold is not None:
                self._hold(self._untold)
        self._graph = graph

    def _hold(self, cut: Cut) -> None:
        self._held.append(cut)
        self._size += len(cut.data) + 1
        if self._size > limits.BODY_BYTES:
            raise BodyTooLarge("the quads of one event", limits.BODY_BYTES)

    def _whole(self) -> Iterator[Cut]:
        if self._held:
            yield Cut(self._held[0].line, b"\n".join(cut.data for cut in self._held))
        self._held, self._size, self._graph = [], 0, None
