"""Jelly frames: RDF in protocol buffers, where terms are numbers in lookup tables.

Frames that are written can each be read without those before: each begins its tables anew, so that all subscribers get
the same bytes, whenever they joined. Frames that are read refer to earlier ones: they are
decoded in order, and the first that fails is the last. Where the stream says that frames are graphs or datasets each
is a message; else all of them are one document. Frames become N-Quads text, so that one parser judges the terms.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from triplewire.model.errors import BadRequest, BodyTooLarge
from triplewire.model.terms import XSD_STRING, parse_literal
from triplewire.rdf.checks import EXPANDED_BYTES
from triplewire.rdf.parser import split_terms
from triplewire.rdf.splitting import RawItem

if TYPE_CHECKING:
    from triplewire.rdf.jelly.decoder import JellyDecoder

JELLY_FRAME_BYTES: Final = 4 * 1024 * 1024
"""One frame of Jelly: at worst two million empty rows, which take some 150 MB for a moment."""


MEDIA_TYPE = "application/x-jelly-rdf"

_NAMES, _PREFIXES, _DATATYPES = 4_000, 150, 32
"""Sizes of the tables: the defaults of readers."""

_ROW, _METADATA = 0x0A, 0x7A
_OPTIONS, _QUAD, _NAME, _PREFIX, _DATATYPE = 0x0A, 0x1A, 0x4A, 0x52, 0x5A
_SUBJECT, _PREDICATE, _OBJECT, _GRAPH = 1, 5, 9, 13
"""The first field of each role in a statement; after an IRI come a blank node, a literal and a triple term."""
_DEFAULT_GRAPH = b"\x7a\x00"
_PART = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"[^ ]*|<<\(|\)>>|[^ ]+')


def encode_frame(text: str, metadata: Mapping[str, bytes] | None = None) -> bytes:
    """Encode lines of canonical N-Quads as one frame, with its length before it."""
    writer = _Frame()
    for subject, predicate, obj, graph in split_terms(text):
        writer.quad(subject, predicate, obj, graph)
    for key, value in (metadata or {}).items():
        writer.out += _block(_METADATA, _block(0x0A, key.encode()) + _block(0x12, value))
    return _varint(len(writer.out)) + bytes(writer.out)


@dataclass
class _Table:
    """A lookup table of one frame; the oldest entry is replaced when it is full."""

    tag: int
    size: int
    numbers: dict[str, int] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)
    next: int = 0

    def number(self, text: str, out: bytearray) -> int:
        """Return the number of a text; a new one is written to `out` as a row."""
        known = self.numbers.get(text)
        if known is not None:
            return known
        if len(self.texts) < self.size:
            self.texts.append(text)
        else:
            del self.numbers[self.texts[self.next]]
            self.texts[self.next] = text
        self.numbers[text] = number = self.next + 1
        self.next = number % self.size
        out += _block(_ROW, _block(self.tag, b"\x08" + _varint(number) + _block(0x12, text.encode())))
        return number


class _Frame:
    def __init__(self) -> None:
        self.out = bytearray(_block(_ROW, _block(_OPTIONS, _STREAM)))
        self._names = _Table(_NAME, _NAMES)
        self._prefixes = _Table(_PREFIX, _PREFIXES)
        self._datatypes = _Table(_DATATYPE, _DATATYPES)
        self._last: dict[int, str] = {}

    def quad(self, subject: str, predicate: str, obj: str, graph: str) -> None:
        """Write a quad without the terms that it shares with the one before."""
        row = b""
        for role, term in ((_SUBJECT, subject), (_PREDICATE, predicate), (_OBJECT, obj)):
            if self._last.get(role) != term:
                row += self._term(role, term)
                self._last[role] = term
        if self._last.get(_GRAPH) != graph:
            row += self._term(_GRAPH, graph) if graph else _DEFAULT_GRAPH
            self._last[_GRAPH] = graph
        self.out += _block(_ROW, _block(_QUAD, row))

    def _term(self, role: int, term: str) -> bytes:
        if term.startswith("<<"):
            return _block(_tag(role + 3), self._triple(_PART.findall(term)))
        if term.startswith("<"):
            return _block(_tag(role), self._iri(term[1:-1]))
        if term.startswith('"'):
            return _block(_tag(role + 2), self._literal(term))
        return _block(_tag(role + 1), term[2:].encode())

    def _iri(self, address: str) -> bytes:
        prefix, name = _split(address)
        number = self._prefixes.number(prefix, self.out)
        return b"\x08" + _varint(number) + b"\x10" + _varint(self._names.number(name, self.out))

    def _literal(self, term: str) -> bytes:
        found = parse_literal(term)
        lexical = _block(0x0A, found.lexical.encode())
        if found.language:
            return lexical + _block(0x12, found.language.encode())
        if found.datatype == XSD_STRING:
            return lexical
        return lexical + b"\x18" + _varint(self._datatypes.number(found.datatype, self.out))

    def _triple(self, parts: list[str]) -> bytes:
        """Encode a triple term from its tokens, the first of which opens it."""
        opened = list[tuple[bytes, int]]()
        written, role = b"", _SUBJECT
        for part in parts[1:]:
            if part == "<<(":
                opened.append((written, role))
                written, role = b"", _SUBJECT
                continue
            if part != ")>>":
                written += self._term(role, part)
            elif opened:
                inner = written
                written, role = opened.pop()
                written += _block(_tag(role + 3), inner)
            role += 4
        return written


@lru_cache(4096)
def _split(address: str) -> tuple[str, str]:
    """Split an IRI into prefix and name."""
    for sign in "#/:":
        prefix, found, name = address.rpartition(sign)
        if found:
            return prefix + found, name
    return "", address


def _tag(number: int) -> int:
    return number << 3 | 2


def _block(tag: int, content: bytes) -> bytes:
    """Encode a length-delimited field."""
    return (bytes((tag,)) if tag < 0x80 else _varint(tag)) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    if number < 0x80:
        return bytes((number,))
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)


_STREAM = (
    b"\x10\x02"  # quads
    + b"\x20\x01"  # with triple terms
    + b"\x48"
    + _varint(_NAMES)
    + b"\x50"
    + _varint(_PREFIXES)
    + b"\x58"
    + _varint(_DATATYPES)
    + b"\x70\x04"  # each frame is a dataset
    + b"\x78\x01"  # version 1
)


_LENGTH_BYTES = 5


@dataclass
class JellySplitter:
    """Splits frames with their lengths before them; a body may also be one frame alone."""

    _rest: bytearray = field(default_factory=bytearray)
    _delimited: bool | None = None
    _decoder: JellyDecoder | None = None
    _flat: list[str] = field(default_factory=list)
    """The text of a stream whose frames are not messages."""
    _size: int = 0

    def feed(self, data: bytes) -> Iterator[RawItem]:
        self._rest += data
        if self._delimited is None and len(self._rest) >= _HINT:
            self._delimited = _is_delimited(bytes(self._rest[:_HINT]))
        if self._delimited:
            while (frame := self._next()) is not None:
                yield from self._read(frame)
        elif len(self._rest) > JELLY_FRAME_BYTES:
            raise BodyTooLarge("a frame of Jelly", JELLY_FRAME_BYTES)

    def end(self) -> Iterator[RawItem]:
        if self._rest and self._delimited:
            raise BadRequest(f"the frame of Jelly ends in the middle: after {len(self._rest)} bytes")
        if self._rest:
            yield from self._read(bytes(self._rest))
        if self._flat:
            yield RawItem(0, "".join(self._flat).encode())

    def _next(self) -> bytes | None:
        """Return the next complete frame."""
        size = start = 0
        for start, byte in enumerate(self._rest[:_LENGTH_BYTES], 1):
            size |= (byte & 0x7F) << 7 * (start - 1)
            if byte < 0x80:
                break
        else:
            if len(self._rest) >= _LENGTH_BYTES:
                raise BadRequest("this is not valid Jelly: the length of a frame has more than 5 bytes")
            return None
        if size > JELLY_FRAME_BYTES:
            raise BodyTooLarge("a frame of Jelly", JELLY_FRAME_BYTES)
        if len(self._rest) < start + size:
            return None
        frame = bytes(self._rest[start : start + size])
        del self._rest[: start + size]
        return frame

    def _read(self, frame: bytes) -> Iterator[RawItem]:
        if not frame:
            return
        if self._decoder is None:
            self._decoder = _make_decoder()
        text = self._decoder.decode(frame)
        if self._decoder.grouped:
            yield RawItem(0, text.encode())
            return
        self._flat.append(text)
        self._size += len(text)
        if self._size > EXPANDED_BYTES:
            raise BodyTooLarge("the frames of Jelly, expanded,", EXPANDED_BYTES)


def _make_decoder() -> JellyDecoder:
    # The library is slow to import and rarely needed.
    from triplewire.rdf.jelly.decoder import JellyDecoder

    return JellyDecoder()


_HINT = 3
"""Bytes that distinguish the two forms, as the specification says."""


def _is_delimited(head: bytes) -> bool:
    return head[0] != 0x0A or (head[1] == 0x0A and head[2] != 0x0A)
