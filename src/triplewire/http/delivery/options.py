"""Delivery options: the message format, content coding and linger time that a client asks for or gets by default.

Clients with equal options get the same bytes. One compression context serves many connections: newcomers get pieces
compressed alone until the context is replaced by a new one. Linger is how long messages may wait for others; how
long
they do wait follows the load of the event loop.
"""

from __future__ import annotations

import asyncio
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

import zstandard
from aiohttp import web

from triplewire.http.formats.cloudevents import CLOUD_BATCH, CLOUD_EVENTS, ZTREAMY
from triplewire.http.formats.messages import MessageFormat
from triplewire.http.formats.rdf import JELLY, MESSAGE_LOGS, NQUADS_FORMAT, TRIG_FORMAT
from triplewire.http.formats.sse import NDJSON, SSE, SSE_BY_EVENT, WEBSOCKET
from triplewire.http.openapi.operations import LINGER_SECONDS_MOST
from triplewire.model.errors import BadRequest, NotAcceptable
from triplewire.rdf.syntaxes import choose_offer, parse_qualities
from triplewire.storage.registry.streams import check_stream_name

WINDOW_SECONDS: Final = 0.5
"""How long messages of a stream may wait for others, unless it is set. They wait so long only under full load."""


# Compression once for all: one context packs what many connections are sent.
#
# A packed stream refers to what it has said before, so nobody can begin to read in its middle. Two things make it one
# for all nevertheless: what newcomers are sent until then is packed *alone*, without reference to anything; and a
# context is given up for a new one from time to time. Where a context begins, everybody who has read whole pieces can
# go on.
#
# ```
# shared context   ── a ── b ──┤ new: c ── d ── e ──▶   members
# alone            ── a' ─ b' ─┘                        newcomers, who are members from c on
# ```

_LEVEL = 6
_RAW = -15
"""Deflate without a head and an end: its blocks go on after those of another context."""


_ZSTD_SHARED = zstandard.ZstdCompressionParameters.from_level(6, source_size=16 * 1024, write_checksum=False)
"""It looks 16 kB back, where the last messages are: a context takes 0.2 MB instead of 1.3, a reader needs no 2 MB, and
messages that are alike become a tenth shorter than with what is usual for long files."""


class CompressionContext(Protocol):
    """Packs one piece after the other, each of which can be read when it has come whole."""

    def pack(self, data: bytes) -> bytes: ...


class ContentCoding(Protocol):
    """A way to pack. There is one of each, so that they are told apart by identity."""

    @property
    def name(self) -> str:
        """What Content-Encoding calls it; empty for what is not packed."""

    @property
    def head(self) -> bytes:
        """The first bytes of every connection."""

    @property
    def parting(self) -> bytes:
        """What a reader in the middle of a context is sent before anything that is not of it."""

    def alone(self, data: bytes) -> bytes:
        """A piece that can be read wherever no context is open."""

    def context(self) -> CompressionContext: ...


class IdentityCoding:
    """Nothing is packed."""

    name, head, parting = "", b"", b""

    def alone(self, data: bytes) -> bytes:
        return data

    def context(self) -> CompressionContext:
        return self

    def pack(self, data: bytes) -> bytes:
        return data


class GzipCoding:
    """Deflate, of which every piece ends at a whole byte. The stream has no end, and so no checksum."""

    name, parting = "gzip", b""
    head = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"

    def alone(self, data: bytes) -> bytes:
        return _DeflateContext().pack(data)

    def context(self) -> CompressionContext:
        return _DeflateContext()


class _DeflateContext:
    def __init__(self) -> None:
        self._packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _RAW)

    def pack(self, data: bytes) -> bytes:
        return self._packer.compress(data) + self._packer.flush(zlib.Z_SYNC_FLUSH)


class ZstdCoding:
    """A context is a frame; frames follow each other."""

    name, head = "zstd", b""
    parting = b"\x01\x00\x00"
    """An empty block that says that it is the last of its frame."""

    def alone(self, data: bytes) -> bytes:
        return zstandard.ZstdCompressor(level=3, write_checksum=False).compress(data)

    def context(self) -> CompressionContext:
        return _ZstdContext()


class _ZstdContext:
    def __init__(self) -> None:
        self._packer = zstandard.ZstdCompressor(compression_params=_ZSTD_SHARED).compressobj()

    def pack(self, data: bytes) -> bytes:
        return self._packer.compress(data) + self._packer.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)


IDENTITY, GZIP, ZSTD = IdentityCoding(), GzipCoding(), ZstdCoding()

CONTENT_CODINGS: tuple[ContentCoding, ...] = (ZSTD, GZIP)
"""The better comes first."""


# Buffer windows: how long messages wait for others, so that they go out together.
#
# The window of a stream says how long they may wait at most. How long they do wait follows the load of the event loop:
# nothing while there is room, the whole window when there is none.
#
# ```
# wait   window ┤            ┌─────────
#               │          ╱
#             0 ┼────────╱
#               0      20 %  80 %  load
# ```

LOW_LOAD, HIGH_LOAD = 0.2, 0.8
"""Shares of the loop's time: below the first nothing waits, above the second all that may."""

_SMOOTH = 1.0
"""Seconds over which the load is smoothed."""
_LEAST = 0.02
"""Seconds between two looks at the clocks."""

Seconds = Callable[[], float]


@dataclass(frozen=True)
class LingerTimes:
    """How long messages may wait: of a stream that is named here its own time, of all others the usual one."""

    usual: float = WINDOW_SECONDS
    of_streams: Mapping[str, float] = field(default_factory=dict)

    def of(self, stream: str | None) -> float:
        return self.of_streams.get(stream or "", self.usual)

    @classmethod
    def parsed(cls, texts: Sequence[str]) -> LingerTimes:
        """From `0.5` for all streams and `home=0` for one. Raises BadRequest."""
        pairs = dict(_parse_stream_linger(text) for text in texts)
        usual = pairs.pop(None, WINDOW_SECONDS)
        return cls(usual, {stream: seconds for stream, seconds in pairs.items() if stream is not None})


def parse_linger(text: str) -> float:
    """A window as it is written. Raises BadRequest."""
    try:
        seconds = float(text.removesuffix("s"))
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= LINGER_SECONDS_MOST:
        raise BadRequest(f"a buffer window must be seconds from 0 to {LINGER_SECONDS_MOST:g}, not {text!r}")
    return seconds


def _parse_stream_linger(text: str) -> tuple[str | None, float]:
    stream, equals, seconds = text.rpartition("=")
    return (check_stream_name(stream) if equals else None), parse_linger(seconds)


class LoopLoad:
    """The share of time in which this thread worked, of late, or was writing, if that is more: on a machine whose cores
    are all busy a thread waits for one while it writes."""

    def __init__(self, worked: Seconds = time.thread_time, passed: Seconds = time.monotonic) -> None:
        self.share = 0.0
        self._worked = worked
        self._passed = passed
        self._written = 0.0
        self._last: tuple[float, float, float] | None = None

    def look(self) -> float:
        """The share as of now."""
        worked, written, passed = self._worked(), self._written, self._passed()
        if self._last is None:
            self._last = worked, written, passed
        elif (span := passed - self._last[2]) >= _LEAST:
            busy = max(worked - self._last[0], written - self._last[1]) / span
            self.share += min(1.0, span / _SMOOTH) * (min(1.0, busy) - self.share)
            self._last = worked, written, passed
        return self.share

    def writing(self) -> None:
        """Much is being written: until the loop has done so. It does it at the end of its turn."""
        asyncio.get_running_loop().call_soon(self.wrote, self._passed())

    def wrote(self, began: float) -> None:
        """It was written since then."""
        self._written += self._passed() - began

    def wait(self, window: float) -> float:
        """How long messages wait now where they may wait for a window."""
        if not window:
            return 0.0
        return window * min(1.0, max(0.0, (self.look() - LOW_LOAD) / (HIGH_LOAD - LOW_LOAD)))


# Which format a client gets.

FORMATS: Sequence[MessageFormat] = (
    SSE,
    NDJSON,
    NQUADS_FORMAT,
    TRIG_FORMAT,
    ZTREAMY,
    CLOUD_EVENTS,
    CLOUD_BATCH,
    JELLY,
    *MESSAGE_LOGS,
)
"""The first is for those who do not care."""


def choose_format(accept: str | None, name: str | None = None) -> MessageFormat:
    """The format that is called so, or the one that an Accept header likes best. Raises NotAcceptable, or BadRequest
    for a name that there is not."""
    if name is not None:
        found = next((each for each in FORMATS if each.name == name), None)
        if found is None:
            raise BadRequest(f"there is no format {name!r}; there are {', '.join(each.name for each in FORMATS)}")
        return found
    liked = choose_offer(accept, [(each.media_type,) for each in FORMATS])
    if liked is None:
        raise NotAcceptable(accept or "", tuple(each.media_type for each in FORMATS))
    return FORMATS[liked]


RELAY = "Relay-Id"
"""The header by which a relay says who it is."""
MOVED = "moved"
"""A parameter: the listener comes from another edge."""


@dataclass(frozen=True)
class DeliveryOptions:
    """A format, how it is packed and framed, for how many seconds it may wait, and whether it goes before others."""

    format: MessageFormat = SSE
    encoding: ContentCoding = IDENTITY
    chunked: bool = False
    """Each piece is a chunk of HTTP's."""
    window: float = 0.0
    priority: bool = False

    def framed(self, data: bytes) -> bytes:
        """A piece as it goes over the wire."""
        return b"%x\r\n%b\r\n" % (len(data), data) if self.chunked and data else data

    def alone(self, data: bytes) -> bytes:
        """A piece for one reader who is in no context."""
        return self.framed(self.encoding.alone(data)) if data else b""

    @property
    def end(self) -> bytes:
        """After which nothing comes."""
        return b"0\r\n\r\n" if self.chunked else b""


def parse_options(request: web.Request, window: float) -> DeliveryOptions:
    """What a request asks for; `window` is what its stream may wait if it does not say. Raises NotAcceptable or
    BadRequest."""
    format = choose_format(request.headers.get("Accept"), request.query.get("format"))
    if not format.endless and request.query.get("mode") != "poll":
        raise BadRequest(f"{format.name} has an end, so that it comes by polls: ask with ?mode=poll")
    encoding = _choose_coding(request.headers.get("Accept-Encoding"))
    if MOVED in request.query and format is SSE:
        format = SSE_BY_EVENT
    return _make_options(request, format, encoding, window)


def parse_websocket_options(request: web.Request, window: float) -> DeliveryOptions:
    """The same over a WebSocket, which has a format of its own."""
    return _make_options(request, WEBSOCKET, IDENTITY, window)


def _make_options(
    request: web.Request, format: MessageFormat, encoding: ContentCoding, window: float
) -> DeliveryOptions:
    asked = request.query.get("buffer")
    wait = window if asked is None else parse_linger(asked)
    # What a relay waits for, all behind it wait for, and its edge has a window of its own.
    relay = RELAY in request.headers
    return DeliveryOptions(format, encoding, window=0.0 if relay else wait, priority=relay)


def _choose_coding(accept: str | None) -> ContentCoding:
    liked = parse_qualities(accept)
    known = [(liked.get(each.name, 0.0), -place, each) for place, each in enumerate(CONTENT_CODINGS)]
    quality, _, best = max(known, key=lambda each: each[:2])
    return best if quality > 0 and quality >= liked.get("identity", 0.0) else IDENTITY
