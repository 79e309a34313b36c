"""Lines: files of N-Quads and TriG, plain or compressed, read part by part."""

from __future__ import annotations

import gzip
import re
import zlib
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, cast

from triplewire.codec import N_QUADS, TRIG
from triplewire.codec.statements import Part, canonical, ends, lines, statements
from triplewire.config import limits
from triplewire.model.errors import InputError
from triplewire.transfer.events import Block, Spot
from triplewire.transfer.faults import Fault, fault_of, moved
from triplewire.transfer.runs import Run, runs

_UNREADABLE = (EOFError, gzip.BadGzipFile, zlib.error)
_DIRECTIVES = re.compile(rb"(?i)prefix|base|version")


class TextReader:
    """A file of text. Offsets are bytes of the text, and not of the file where that is compressed."""

    def __init__(self, path: Path, *, zipped: bool, trig: bool) -> None:
        self._path, self._zipped = path, zipped
        self._syntax = TRIG if trig else N_QUADS
        self._parts: Callable[[bytes, int], Iterator[Part]] = statements if trig else lines
        self._taken = _statements if trig else _lines

    def size(self) -> int | None:
        return None if self._zipped else self._path.stat().st_size

    def blocks(self, spot: Spot) -> Iterator[Block]:
        with self._open() as file:
            try:
                file.seek(spot.offset)
                text, rest = self._taken(file, b"")
                while text:
                    yield self._block(text, spot)
                    spot = self._after(text, spot)
                    text, rest = self._taken(file, rest)
            except _UNREADABLE as error:
                yield Block(spot, [], [Fault(spot.line, f"from here on the file cannot be unpacked: {error}")])

    def _open(self) -> BinaryIO:
        return cast(BinaryIO, gzip.open(self._path) if self._zipped else self._path.open("rb"))

    def _block(self, text: bytes, spot: Spot) -> Block:
        text = text if spot.offset else text.removeprefix(BOM_UTF8)
        try:
            found = self._runs(Part(text, spot.line), spot.prologue.encode())
        except InputError:
            return self._one_by_one(text, spot)
        placed = list(_placed(found, text, spot.line))
        return Block(spot, placed) if len(placed) == len(found) else self._one_by_one(text, spot)

    def _one_by_one(self, text: bytes, spot: Spot) -> Block:
        """What is wrong is found by looking at each part by itself; the others are taken."""
        block, prologue = Block(spot, []), spot.prologue.encode()
        for part in self._parts(text, spot.line):
            try:
                block.runs.extend(self._runs(part, prologue))
                prologue = _joined(prologue, [part])
            except InputError as error:
                fault = moved(fault_of(error, part.line, part.body), prologue.count(b"\n") if error.place else 0)
                block.faults.append(fault)
        return block

    def _runs(self, part: Part, prologue: bytes) -> list[Run]:
        return list(runs(canonical(prologue + part.body, self._syntax).decode(), part.line))

    def _after(self, text: bytes, spot: Spot) -> Spot:
        prologue = spot.prologue.encode()
        if self._syntax is TRIG and _DIRECTIVES.search(text):
            prologue = _joined(prologue, list(self._parts(text, spot.line)))
        return Spot(spot.offset + len(text), spot.line + text.count(b"\n"), prologue.decode())


def _joined(prologue: bytes, parts: list[Part]) -> bytes:
    """The directives that hold after some parts; one that comes again is not kept twice."""
    for part in parts:
        body = part.body.strip() + b"\n"
        if part.directive and not prologue.endswith(body):
            prologue = prologue.replace(body, b"") + body
    return prologue


def _placed(found: Iterable[Run], text: bytes, line: int) -> Iterator[Run]:
    """Each with the line at which its event is named, up to the first that is named in other words, by a prefix."""
    at = 0
    for run in found:
        here = text.find(f"<{run.id}>".encode(), at)
        if here < 0:
            return
        line, at = line + text.count(b"\n", at, here), here
        yield replace(run, line=line)


def _lines(file: BinaryIO, rest: bytes) -> tuple[bytes, bytes]:
    """The next lines, whole ones unless one is longer than any event."""
    return file.read(limits.IMPORT_BYTES) + file.readline(limits.BODY_BYTES), rest


def _statements(file: BinaryIO, rest: bytes) -> tuple[bytes, bytes]:
    """The next statements, whole ones unless one is longer than any event, and what was read of those after them; at
    the end of the file all that is left. It depends on nothing but where they begin."""
    text, wanted = rest, 0
    while True:
        wanted += limits.IMPORT_BYTES
        text += file.read(max(0, wanted - len(text)))
        if len(text) < wanted:
            return text, b""
        if last := max(ends(text, whole=False), default=0):
            return text[:last], text[last:]
        if wanted > limits.BODY_BYTES:
            return text, b""
