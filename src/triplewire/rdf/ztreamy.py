"""Ztreamy items: headers and a body, one after the other, as figure 2 of the paper shows them.

`Event-Id`, `Source-Id`, `Syntax`, `Application-Id`, `Timestamp` and `Body-Length`, then headers of the publisher's
own; an empty line; as many bytes as `Body-Length` says.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from triplewire.model import EventHeaders
from triplewire.model.clock import format_timestamp
from triplewire.model.errors import BadRequest, BodyTooLarge
from triplewire.model.events import BODY, parse_payload
from triplewire.rdf.checks import BODY_BYTES
from triplewire.rdf.headers import EXTENSIONS, HEADER_NAME, RESERVED_HEADERS, check_extension, check_header, parse_time
from triplewire.rdf.serializer import to_ntriples
from triplewire.rdf.splitting import RawItem
from triplewire.rdf.syntaxes import TURTLE
from triplewire.rdf.terms import HEADER_CHARACTERS, check_id

ITEM_HEAD_BYTES: Final = 64 * 1024
"""The headers of one Ztreamy item: the most and longest that are allowed."""


MEDIA_TYPES = ("application/ztreamy-stream", "application/ztreamy-event", "application/x-ztreamy-event")
MEDIA_TYPE = MEDIA_TYPES[0]

_NUMBER = re.compile(r"[0-9]{1,12}")
_BLANK = re.compile(rb"(?:\r?\n)*\r?")
_END = re.compile(rb"\r?\n\r?\n")
_MEDIA_TYPE = re.compile(
    r"[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+(?: *; *[A-Za-z0-9!#$&^_.+-]+=[A-Za-z0-9!#$&^_.+:-]+)*"
)


@dataclass(frozen=True)
class ZtreamyItem:
    """An item with checked headers, which may be stored and sent on. `event_id` is None if it has none."""

    event_id: str | None
    headers: EventHeaders
    body: bytes


def encode_item(event_id: str, headers: EventHeaders, body: bytes) -> bytes:
    """Encode an item. `headers.syntax` is the syntax of the body."""
    own = {
        "Event-Id": event_id,
        "Source-Id": headers.source,
        "Syntax": headers.syntax,
        "Application-Id": headers.application,
        "Timestamp": None if headers.time is None else format_timestamp(headers.time),
        **headers.extensions,
        "Body-Length": str(len(body)),
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in own.items() if value is not None)
    return b"%b\r\n%b" % (lines.encode(), body)


def encode_event_item(event_id: str, text: str, headers: EventHeaders) -> bytes:
    """Encode an event as an item: its quads as Turtle, which readers of Ztreamy know, or its opaque payload."""
    payload = parse_payload(event_id, text) if BODY in text else None
    syntax, body = (
        (TURTLE.media_type, to_ntriples(text).encode()) if payload is None else (payload.media_type, payload.body)
    )
    own = EventHeaders(headers.source, headers.application, headers.time, syntax, headers.extensions)
    return encode_item(event_id, own, body)


def parse_item(data: bytes) -> ZtreamyItem:
    """Parse the bytes of one complete item. Raises BadRequest for malformed headers."""
    found = _END.search(data)
    if found is None:
        raise BadRequest("an item has headers, an empty line, and a body; this one has no empty line")
    given = _parse_head(data[: found.start()])
    headers = EventHeaders(
        source=_checked_header(given, "Source-Id"),
        application=_checked_header(given, "Application-Id"),
        time=_time(given),
        syntax=_syntax(given),
        extensions=_extensions(given),
    )
    return ZtreamyItem(_event_id(given), headers, data[found.end() :])


def parse_event_id(text: str) -> str:
    """Return the IRI of an event id, which may be a bare UUID. Raises BadRequest."""
    try:
        return f"urn:uuid:{UUID(text)}" if ":" not in text else check_id(text)
    except ValueError:
        return check_id(text)


@dataclass
class ZtreamySplitter:
    """Splits items that follow one another, with or without empty lines between them."""

    _rest: bytearray = field(default_factory=bytearray)
    _line: int = 1
    _need: int = 0
    """Bytes without which the item is incomplete: nothing is parsed again before they have arrived."""

    def feed(self, data: bytes) -> Iterator[RawItem]:
        self._rest += data
        while len(self._rest) > self._need and (item := self._next()):
            yield RawItem(self._line, item)
            self._line += item.count(b"\n")

    def end(self) -> Iterator[RawItem]:
        if self._rest.strip():
            raise BadRequest(f"the item ends in the middle: after {len(self._rest)} bytes")
        yield from ()

    def _next(self) -> bytes:
        rest = self._rest
        if blank := _leading(rest):
            self._line += rest.count(b"\n", 0, blank)
            del rest[:blank]
        found = _END.search(rest)
        if found is None or found.start() > ITEM_HEAD_BYTES:
            if len(rest) > ITEM_HEAD_BYTES:
                raise BodyTooLarge("the head of an item", ITEM_HEAD_BYTES)
            return b""
        end = found.end() + _length(bytes(rest[: found.start()]))
        if len(rest) < end:
            self._need = end - 1
            return b""
        item, self._need = bytes(rest[:end]), 0
        del rest[:end]
        return item


def _leading(rest: bytearray) -> int:
    found = _BLANK.match(rest)
    return found.end() if found else 0


def _length(head: bytes) -> int:
    """Return `Body-Length`. A second one would let two readers disagree on where the next item begins."""
    values = [line.partition(b":")[2] for line in head.split(b"\n") if line.lower().startswith(b"body-length:")]
    text = values[0].decode(errors="replace").strip() if len(values) == 1 else ""
    if not _NUMBER.fullmatch(text):
        actual = f"not {text[:60]!r}" if len(values) == 1 else f"it has {len(values)}"
        raise BadRequest(f"an item has one header Body-Length, a number of bytes; {actual}")
    if int(text) > BODY_BYTES:
        raise BodyTooLarge("the body of an item", BODY_BYTES)
    return int(text)


def _parse_head(head: bytes) -> Mapping[str, tuple[str, str]]:
    """Return name and value of each header, by its name in lower case. Raises BadRequest."""
    try:
        lines = head.decode().replace("\r\n", "\n").split("\n")
    except UnicodeDecodeError:
        raise BadRequest("the headers of an item are UTF-8") from None
    found: dict[str, tuple[str, str]] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not HEADER_NAME.fullmatch(name):
            raise BadRequest(f"{line[:60]!r} is not a header; write a name, a colon and a value")
        if name.lower() in found:
            raise BadRequest(f"the header {name} is given twice; give it once")
        found[name.lower()] = name, value.strip()
    return found


def _checked_header(given: Mapping[str, tuple[str, str]], name: str) -> str | None:
    found = given.get(name.lower())
    return check_header(f"the header {name}", found[1]) if found else None


def _event_id(given: Mapping[str, tuple[str, str]]) -> str | None:
    text = _checked_header(given, "Event-Id")
    return None if text is None else parse_event_id(text)


def _time(given: Mapping[str, tuple[str, str]]) -> int | None:
    text = _checked_header(given, "Timestamp")
    return None if text is None else parse_time("the header Timestamp", text)


def _syntax(given: Mapping[str, tuple[str, str]]) -> str:
    return check_media_type(given["syntax"][1] if "syntax" in given else "")


def check_media_type(text: str) -> str:
    """Return a media type that may be stored and sent on. Raises BadRequest."""
    if not _MEDIA_TYPE.fullmatch(text) or len(text) > HEADER_CHARACTERS:
        raise BadRequest(f"the syntax is the media type of the body, such as text/turtle, not {text[:60]!r}")
    return text


def _extensions(given: Mapping[str, tuple[str, str]]) -> dict[str, str]:
    others = [each for name, each in given.items() if name not in RESERVED_HEADERS]
    if len(others) > EXTENSIONS:
        raise BadRequest(f"an item has {len(others)} extension headers; the limit is {EXTENSIONS}")
    return dict(check_extension(*each) for each in others)
