"""Decompression of request bodies (gzip, deflate, zstd), piece by piece, so that a decompression bomb is refused at
the size limit.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Protocol

import zstandard
from aiohttp import hdrs, web
from aiohttp.typedefs import Handler

from triplewire.http.rate_limits import pace_upload
from triplewire.model.errors import BadRequest, BodyTooLarge, UnknownMediaType
from triplewire.rdf.checks import BODY_BYTES

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


def decompressor_for(request: web.Request) -> Decompressor:
    """Raises UnknownMediaType for an unknown Content-Encoding."""
    name = request.headers.get(hdrs.CONTENT_ENCODING, "").strip().lower()
    if name not in _DECOMPRESSORS:
        raise UnknownMediaType(f"the Content-Encoding {name}", ENCODINGS)
    return _DECOMPRESSORS[name]()


async def read_pieces(request: web.Request) -> AsyncIterator[bytes]:
    """Yield the decompressed body as it arrives. Raises BadRequest or UnknownMediaType."""
    decompressor = decompressor_for(request)
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
