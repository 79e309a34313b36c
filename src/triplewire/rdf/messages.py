"""RDF Messages: documents of Turtle, TriG, N-Triples or N-Quads in which `MESSAGE` ends a message.

A draft of the W3C's community on RDF stream processing, https://w3c-cg.github.io/rsp/spec/messages. A message is a
dataset that is meant as one. Prefixes hold from message to message; labels of blank nodes do not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from triplewire.model.errors import BadRequest, BodyTooLarge
from triplewire.rdf.checks import BODY_BYTES, EXPANDED_BYTES
from triplewire.rdf.splitting import LineGroupSplitter, RawItem, find_ends, skip_space
from triplewire.rdf.syntaxes import N_QUADS, N_TRIPLES, TRIG, TURTLE, Syntax

PROLOGUE_BYTES: Final = 64 * 1024
"""Prefixes and bases that hold for later messages of a document. They are parsed with each: some 500 prefixes."""


MESSAGE_VERSION = "1.2-messages"
"""The version that is written."""
MESSAGE_VERSIONS = (MESSAGE_VERSION, "1.2-basic-messages", "1.1-messages")
"""The versions that are read; the others are subsets of the first."""
MESSAGE_SYNTAXES = (TURTLE, TRIG, N_TRIPLES, N_QUADS)

HEAD = f'VERSION "{MESSAGE_VERSION}"\n'.encode()
END = b"MESSAGE\n"

_GROWTH = 64
"""Bytes of prefixes that may be parsed again for each byte of a body."""
_COMMENT = re.compile(rb"(<[^<>\s]*>)|#[^\r\n]*")
_LABEL = rb"(?:\"([^\"\r\n]*)\"|'([^'\r\n]*)')"
_VERSION = re.compile(rb"@?version\s+" + _LABEL + rb"\s*\.?\s*(?:#.*)?", re.IGNORECASE | re.DOTALL)
_ANNOUNCED = re.compile(rb"(?:\s|#[^\r\n]*[\r\n])*@?version\s+" + _LABEL, re.IGNORECASE)
_LINE_END = re.compile(rb"\s*MESSAGE\s*(?:#.*)?")
_MESSAGE = re.compile(rb"@message\s*\.|message", re.IGNORECASE)
_BROKEN_END = re.compile(rb"(?<=[\s.}>])message\Z", re.IGNORECASE)
_PREFIX = re.compile(rb"@?prefix\s+([^\s:]*):", re.IGNORECASE)
_BASE = re.compile(rb"@?base\s*<", re.IGNORECASE)


def declares_messages(body: bytes) -> bool:
    """Return whether a document declares a version of RDF Messages."""
    found = _ANNOUNCED.match(body) if b"-messages" in body[:_LOOKED_AT] else None
    return found is not None and _label(found) in MESSAGE_VERSIONS


_LOOKED_AT = 1024


def is_message_version(text: str) -> bool:
    """Return whether a version is one of RDF Messages. Raises BadRequest for an unknown one."""
    if text.endswith("-messages") and text not in MESSAGE_VERSIONS:
        raise BadRequest(
            f"the version {text[:60]!r} of RDF Messages is not known; known are {', '.join(MESSAGE_VERSIONS)}"
        )
    return text in MESSAGE_VERSIONS


def message_media_type(syntax: Syntax) -> str:
    return f"{syntax.media_type}; version={MESSAGE_VERSION}"


class LineMessageSplitter(LineGroupSplitter):
    """Splits messages of N-Triples or N-Quads. A malformed line spoils its message alone."""

    item = "a message"

    def _add(self, line: RawItem) -> Iterator[RawItem]:
        text = line.data.lstrip()
        if text.startswith(b"#"):
            return
        if _LINE_END.fullmatch(text):
            yield from self._flush()
        elif found := _VERSION.fullmatch(text):
            _check(_label(found))
        else:
            self._hold(line)


@dataclass
class MessagePrologue:
    """Directives that hold for later messages. They are parsed again with each, so that their size is limited, and
    the total of what is parsed."""

    _directives: list[tuple[bytes | None, bytes]] = field(default_factory=list)
    _spent: int = 0
    _fed: int = 0

    def count(self, size: int) -> None:
        self._fed += size

    def add(self, directive: bytes) -> None:
        """Add a base, or a prefix in place of one with the same name."""
        line = b" ".join(_COMMENT.sub(rb"\1", directive).split())
        found = _PREFIX.match(line)
        name = None if found is None else found[1]
        kept = [each for each in self._directives if each[1] != line and (name is None or each[0] != name)]
        self._directives = [*kept, (name, line)]
        if sum(len(each) + 1 for _, each in self._directives) > PROLOGUE_BYTES:
            raise BodyTooLarge("the prefixes of messages", PROLOGUE_BYTES)

    def prepend(self, body: bytes) -> bytes:
        """Return a message with the directives before it, on its first line."""
        text = b"".join(line + b" " for _, line in self._directives)
        self._spent += len(text)
        if self._spent > EXPANDED_BYTES + _GROWTH * self._fed:
            raise BodyTooLarge("the messages, with their prefixes,", EXPANDED_BYTES)
        return text + body


@dataclass
class StatementMessageSplitter:
    """Splits messages of Turtle or TriG."""

    _prologue: MessagePrologue = field(default_factory=MessagePrologue)
    _rest: bytearray = field(default_factory=bytearray)
    _line: int = 1
    _held: list[bytes] = field(default_factory=list)
    _begun: int = 0
    """The line at which the message begins; 0 before its first byte."""
    _directives: list[bytes] = field(default_factory=list)

    def feed(self, data: bytes) -> Iterator[RawItem]:
        self._prologue.count(len(data))
        seen = len(self._rest)
        self._rest += data
        # Only a delimiter ends a message: before there is one, nothing needs to be parsed.
        if b"message" in self._rest[max(seen - len(END), 0) :].lower():
            yield from self._read(whole=False)
        if len(self._rest) + sum(map(len, self._held)) > BODY_BYTES:
            raise BodyTooLarge("a message", BODY_BYTES)

    def end(self) -> Iterator[RawItem]:
        self._rest += b"\n"
        yield from self._read(whole=True)
        self._add(bytes(self._rest))
        yield from self._flush()

    def _read(self, *, whole: bool) -> Iterator[RawItem]:
        text, start = bytes(self._rest), 0
        for at in find_ends(text, whole=whole):
            piece = text[start:at]
            start = at
            if _MESSAGE.fullmatch(piece, skip_space(piece)):
                self._line += piece.count(b"\n")
                yield from self._flush()
            elif cut := _BROKEN_END.search(piece):
                self._add(piece[: cut.start()])
                yield from self._flush()
            else:
                self._add(piece)
        del self._rest[:start]

    def _add(self, piece: bytes) -> None:
        first = skip_space(piece)
        body = piece[first:]
        if self._begun:
            self._held.append(piece)
        elif body:
            self._begun = self._line + piece.count(b"\n", 0, first)
            self._held.append(body)
        self._line += piece.count(b"\n")
        if found := _VERSION.fullmatch(body):
            _check(_label(found))
        if _PREFIX.match(body) or _BASE.match(body):
            self._directives.append(body)

    def _flush(self) -> Iterator[RawItem]:
        """Yield the message, if it is not empty. Its directives hold for later ones, too."""
        line, held, directives = self._begun, b"".join(self._held), self._directives
        self._begun, self._held, self._directives = 0, [], []
        if held:
            yield RawItem(line, self._prologue.prepend(held))
        for each in directives:
            self._prologue.add(each)


def _label(found: re.Match[bytes]) -> str:
    return (found[1] or found[2] or b"").decode(errors="replace")


def _check(label: str) -> None:
    if label not in MESSAGE_VERSIONS:
        raise BadRequest(f"the document declares version {label[:60]!r}; known are {', '.join(MESSAGE_VERSIONS)}")
