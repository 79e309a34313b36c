"""Publish requests: headers, validated once, and bodies, decompressed piece by piece (gzip, deflate, zstd), so that
a decompression bomb is refused at the size limit.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

import zstandard
from aiohttp import hdrs, web
from aiohttp.typedefs import Handler

from triplewire.http.rate_limits import pace_upload
from triplewire.model import EventHeaders
from triplewire.model.errors import BadRequest, BodyTooLarge, UnknownMediaType
from triplewire.rdf import N_QUADS, Syntax, find_syntax
from triplewire.rdf.checks import BODY_BYTES
from triplewire.rdf.cloudevents import PREFIX
from triplewire.rdf.envelopes import CLOUD_EVENT, CLOUD_EVENTS, ENVELOPES, Envelope, find_envelope
from triplewire.rdf.headers import check_header, parse_time
from triplewire.rdf.ztreamy import parse_event_id
from triplewire.storage.registry.streams import check_stream_name

IDEMPOTENCY_KEY = "Idempotency-Key"


@dataclass(frozen=True)
class PublishRequest:
    """The headers of a publish request."""

    stream: str
    syntax: Syntax
    event_id: str | None
    headers: EventHeaders
    key: str | None
    """The idempotency key, by which a repeated publication is recognized."""
    wrapping: Envelope | None = None
    """The envelope of a body with items; `syntax` then has no meaning."""
    cloud: Mapping[str, str] | None = None
    """The headers of a CloudEvent in binary mode; then the body is its data, of the type that they state."""


_CLOUDEVENT_HEADER = "ce-specversion"
"""The header by which CloudEvents in binary mode are recognized."""
_EVENT_HEADERS = ("Event-Id", "Source-Id", "Application-Id", "Timestamp")


def parse_publish_request(request: web.Request) -> PublishRequest:
    """Raises BadRequest, UnknownMediaType or BodyTooLarge; what it returns may be stored and sent on."""
    _check_length(request)
    wrapping, cloud = find_envelope(request.headers.get("Content-Type")), None
    if _CLOUDEVENT_HEADER in request.headers and wrapping not in (CLOUD_EVENT, CLOUD_EVENTS):
        wrapping, cloud = None, _cloudevent_headers(request)
    syntax = N_QUADS if wrapping or cloud else _syntax(request)
    given_id = _single_header(request, "Event-Id")
    event_id = None if given_id is None else parse_event_id(given_id)
    if (wrapping or cloud) and event_id:
        where = "the id of a CloudEvent is ce-id" if wrapping is None else f"in {wrapping.name} each event has its own"
        raise BadRequest(f"the header Event-Id needs a body with one event; {where}")
    stream = check_stream_name(request.match_info["stream"])
    return PublishRequest(
        stream,
        syntax,
        event_id,
        parse_event_headers(request),
        _single_header(request, IDEMPOTENCY_KEY),
        wrapping,
        cloud,
    )


def _cloudevent_headers(request: web.Request) -> dict[str, str]:
    names = [name.lower() for name in request.headers if name.lower().startswith(PREFIX)]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise BadRequest(f"the header {twice} is given twice; give it once")
    return {name: request.headers[name] for name in [*names, hdrs.CONTENT_TYPE] if name in request.headers}


def parse_event_headers(request: web.Request) -> EventHeaders:
    """Headers that apply to all events of a request. Raises BadRequest."""
    timestamp = _single_header(request, "Timestamp")
    return EventHeaders(
        source=_single_header(request, "Source-Id"),
        application=_single_header(request, "Application-Id"),
        time=None if timestamp is None else parse_time("the header Timestamp", timestamp),
    )


def _syntax(request: web.Request) -> Syntax:
    try:
        return find_syntax(request.headers.get("Content-Type"))
    except UnknownMediaType as error:
        raise UnknownMediaType(error.given, (*error.known, *(each.media_type for each in ENVELOPES))) from None


def parse_addressed_request(request: web.Request) -> tuple[Syntax, str | None]:
    """The syntax and the idempotency key of a request whose events state their streams themselves. Raises BadRequest,
    also for a header that would apply to all events, UnknownMediaType or BodyTooLarge."""
    _check_length(request)
    syntax = find_syntax(request.headers.get("Content-Type"))
    if not syntax.graphs:
        raise BadRequest(f"{syntax.name} has no graphs to separate events; use TriG, N-Quads or JSON-LD")
    if given := next((name for name in _EVENT_HEADERS if name in request.headers), None):
        raise BadRequest(f"each event states {given} in the body here; leave the header out")
    return syntax, _single_header(request, IDEMPOTENCY_KEY)


def _check_length(request: web.Request) -> None:
    if (request.content_length or 0) > BODY_BYTES:
        raise BodyTooLarge("the body", BODY_BYTES)


def _single_header(request: web.Request, name: str) -> str | None:
    values = request.headers.getall(name, [])
    if len(values) > 1:
        raise BadRequest(f"the header {name} is given {len(values)} times; give it once")
    return check_header(f"the header {name}", values[0]) if values else None


_PIECE_BYTES = 256 * 1024
"""Output of one step: a few bytes may expand to many."""
_ZSTD_SLICE_BYTES = 256
"""Input of one step of zstd: at worst blocks of four bytes, each of which expands to 128 KiB."""


class Decompressor(Protocol):
    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the decompressed bytes in pieces. Raises BadRequest for data of another compression."""

    def end(self) -> None:
        """Raises BadRequest if something is missing."""


class IdentityDecompressor:
    """A body without compression."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        yield data

    def end(self) -> None:
        return


class DeflateDecompressor:
    """gzip, one member after the other, or deflate, with a header (RFC 1950) or, as some clients send it, without."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._inflate: zlib._Decompress | None = None
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[bytes]:
        data, self._rest = self._rest + data, b""
        if self._inflate is None and len(data) == 1:
            self._rest, data = data, b""  # the header has two bytes
        full = False
        while data or full:
            inflate = self._inflate = self._inflate or self._begun(data)
            piece = self._step(inflate, data)
            yield piece
            # Output over the piece size stays in the decompressor, even when all input is consumed.
            full = len(piece) == _PIECE_BYTES and not inflate.eof
            data = inflate.unconsumed_tail or inflate.unused_data
            if inflate.eof:
                self._inflate = None

    def _step(self, inflate: zlib._Decompress, data: bytes) -> bytes:
        try:
            return inflate.decompress(data, _PIECE_BYTES)
        except zlib.error as error:
            raise _broken(self._name, error) from None

    def end(self) -> None:
        if self._inflate is not None or self._rest:
            raise _broken(self._name, "it is truncated")

    def _begun(self, data: bytes) -> zlib._Decompress:
        if self._name == "gzip":
            return zlib.decompressobj(31)
        headed = data[0] & 0x0F == zlib.DEFLATED and int.from_bytes(data[:2]) % 31 == 0
        return zlib.decompressobj(15 if headed else -15)


class ZstdDecompressor:
    """zstd, one frame after the other."""

    def __init__(self) -> None:
        self._inflate: zstandard.ZstdDecompressionObj | None = None

    def feed(self, data: bytes) -> Iterator[bytes]:
        for start in range(0, len(data), _ZSTD_SLICE_BYTES):
            yield from self._some(data[start : start + _ZSTD_SLICE_BYTES])

    def _some(self, data: bytes) -> Iterator[bytes]:
        while data:
            if self._inflate is None:
                self._inflate = zstandard.ZstdDecompressor(max_window_size=BODY_BYTES).decompressobj()
            try:
                yield self._inflate.decompress(data)
            except zstandard.ZstdError as error:
                raise _broken("zstd", error) from None
            data = self._inflate.unused_data
            if self._inflate.eof:
                self._inflate = None

    def end(self) -> None:
        if self._inflate is not None:
            raise _broken("zstd", "it is truncated")


_DECOMPRESSORS: dict[str, Callable[[], Decompressor]] = {
    "gzip": lambda: DeflateDecompressor("gzip"),
    "x-gzip": lambda: DeflateDecompressor("gzip"),
    "deflate": lambda: DeflateDecompressor("deflate"),
    "zstd": ZstdDecompressor,
    "identity": IdentityDecompressor,
    "": IdentityDecompressor,
}
_PUBLISHING = re.compile(r"/events|/streams/[^/]+")
ENCODINGS = ("gzip", "deflate", "zstd")


@web.middleware
async def refuse_compressed(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuse compressed bodies, except of events: no other route decompresses."""
    encoding = request.headers.get(hdrs.CONTENT_ENCODING, "").strip().lower()
    if encoding not in ("", "identity") and not _PUBLISHING.fullmatch(request.path):
        raise UnknownMediaType(f"the Content-Encoding {encoding}", ("identity",))
    return await handler(request)


async def read_pieces(request: web.Request) -> AsyncIterator[bytes]:
    """Yield the decompressed body as it arrives. Raises BadRequest or UnknownMediaType."""
    name = request.headers.get(hdrs.CONTENT_ENCODING, "").strip().lower()
    if name not in _DECOMPRESSORS:
        raise UnknownMediaType(f"the Content-Encoding {name}", ENCODINGS)
    decompressor = _DECOMPRESSORS[name]()
    async for data in request.content.iter_any():
        await pace_upload(request, len(data))
        for piece in decompressor.feed(data):
            yield piece
    decompressor.end()


async def read_body(request: web.Request) -> bytes:
    """The whole decompressed body. Raises BodyTooLarge as soon as it is over the limit, BadRequest or
    UnknownMediaType."""
    pieces, size = list[bytes](), 0
    async for piece in read_pieces(request):
        pieces.append(piece)
        size += len(piece)
        if size > BODY_BYTES:
            raise BodyTooLarge("the body", BODY_BYTES)
    return b"".join(pieces)


def _broken(name: str, why: object) -> BadRequest:
    return BadRequest(f"the body is not {name}, as its Content-Encoding says: {why}")
