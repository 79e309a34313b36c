"""Delivery options: the message format, content coding and linger time that a client asks for or gets by default.

Clients with equal options get the same bytes. A compressed stream refers to what it contained before, so no client can
begin to read in its middle. Two things let one compression context serve many connections nevertheless: newcomers get
messages compressed *alone*, without reference to others; and the context is replaced by a new one from time to time,
where everyone who has read whole messages can continue.

    shared context   ── a ── b ──┤ new: c ── d ── e ──▶   members
    alone            ── a' ─ b' ─┘                        newcomers, who are members from c on

Linger is how long messages may wait for others; how long they do wait follows the load of the event loop: not at all
below a load of 20 %, the whole time above 80 %.
"""

from __future__ import annotations

import asyncio
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import zstandard
from aiohttp import web

from triplewire.http.formats import rdf
from triplewire.http.formats.messages import MessageFormat
from triplewire.http.formats.sse import NDJSON, SSE, SSE_BY_EVENT, WEBSOCKET
from triplewire.http.openapi.operations import LINGER_SECONDS_MOST
from triplewire.model.errors import BadRequest, NotAcceptable
from triplewire.rdf.syntaxes import choose_offer, parse_qualities
from triplewire.storage.registry.streams import check_stream_name

LINGER_SECONDS: Final = 0.5
"""How long messages of a stream may wait for others, unless it is set. They wait so long only under full load."""

LOW_LOAD, HIGH_LOAD = 0.2, 0.8
"""Shares of the event loop's time: below the first no message waits, above the second for the whole linger time."""

_SMOOTHING_SECONDS = 1.0
"""Time over which the load is smoothed."""
_MEASURE_SECONDS = 0.02
"""Least time between two readings of the clocks."""

_DEFLATE_LEVEL = 6
_RAW_DEFLATE = -15
"""Deflate without header and trailer: its blocks can follow those of another context."""
_ZSTD_SHARED = zstandard.ZstdCompressionParameters.from_level(6, source_size=16 * 1024, write_checksum=False)
"""A window of 16 kB, where the last messages are: a context takes 0.2 MB instead of 1.3, a reader needs no 2 MB, and
messages that are alike become a tenth shorter than with the parameters for long files."""

RELAY = "Relay-Id"
"""Request header with the id of a relay."""
MOVED = "moved"
"""Parameter of a client that another edge has sent here."""


Compress = Callable[[bytes], bytes]
"""Compresses one piece after the other; each can be read when it has arrived whole."""


@dataclass(frozen=True, eq=False)
class ContentCoding:
    """A content coding. There is one object of each, so that they are compared by identity."""

    name: str
    """Value of Content-Encoding; empty for no compression."""
    alone: Compress
    """Compresses a piece that can be read wherever no context is open."""
    context: Callable[[], Compress]
    """Begins a compression context."""
    head: bytes = b""
    """First bytes of every connection."""
    parting: bytes = b""
    """Bytes that a reader in the middle of a context needs before anything outside of it."""


def _deflate_context() -> Compress:
    """Deflate with pieces that end at a whole byte. The stream has no end, and so no checksum."""
    packer = zlib.compressobj(_DEFLATE_LEVEL, zlib.DEFLATED, _RAW_DEFLATE)
    return lambda data: packer.compress(data) + packer.flush(zlib.Z_SYNC_FLUSH)


def _zstd_context() -> Compress:
    """Zstandard: a context is a frame, and frames follow each other."""
    packer = zstandard.ZstdCompressor(compression_params=_ZSTD_SHARED).compressobj()
    return lambda data: packer.compress(data) + packer.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)


def _zstd_alone(data: bytes) -> bytes:
    return zstandard.ZstdCompressor(level=3, write_checksum=False).compress(data)


IDENTITY = ContentCoding("", bytes, lambda: bytes)
GZIP = ContentCoding(
    "gzip", lambda data: _deflate_context()(data), _deflate_context, b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
)
# An empty block, marked as the last of its frame, parts from a context.
ZSTD = ContentCoding("zstd", _zstd_alone, _zstd_context, parting=b"\x01\x00\x00")

CONTENT_CODINGS: tuple[ContentCoding, ...] = (ZSTD, GZIP)
"""In order of preference."""

Seconds = Callable[[], float]


@dataclass(frozen=True)
class LingerTimes:
    """How long messages may wait for others: a default of streams, times of single streams, and of notifications.

    By default notifications do not wait: few clients have the same, so that little would be saved.
    """

    default: float = LINGER_SECONDS
    by_stream: Mapping[str, float] = field(default_factory=dict)
    notifications: float = 0.0

    def get(self, stream: str | None) -> float:
        """Return the time of a stream; None stands for notifications."""
        return self.notifications if stream is None else self.by_stream.get(stream, self.default)

    @classmethod
    def parsed(cls, texts: Sequence[str]) -> LingerTimes:
        """Parse `0.5` for all streams and notifications, and `home=0` for one stream. Raises BadRequest."""
        pairs = dict(_parse_stream_linger(text) for text in texts)
        given = pairs.pop(None, None)
        by_stream = {stream: seconds for stream, seconds in pairs.items() if stream is not None}
        return cls(LINGER_SECONDS if given is None else given, by_stream, given or 0.0)


def parse_linger(text: str) -> float:
    """Parse a linger time. Raises BadRequest."""
    try:
        seconds = float(text.removesuffix("s"))
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= LINGER_SECONDS_MOST:
        raise BadRequest(f"linger must be a number of seconds from 0 to {LINGER_SECONDS_MOST:g}, not {text!r}")
    return seconds


def _parse_stream_linger(text: str) -> tuple[str | None, float]:
    stream, equals, seconds = text.rpartition("=")
    return (check_stream_name(stream) if equals else None), parse_linger(seconds)


class LoopLoad:
    """The share of recent time in which the thread of the event loop worked, or was writing, if that is more: on a
    machine whose cores are all busy a thread waits for one while it writes."""

    def __init__(self, worked: Seconds = time.thread_time, passed: Seconds = time.monotonic) -> None:
        self.share = 0.0
        self._worked = worked
        self._passed = passed
        self._written = 0.0
        self._last: tuple[float, float, float] | None = None

    def measure(self) -> float:
        """Return the share as of now."""
        worked, written, passed = self._worked(), self._written, self._passed()
        if self._last is None:
            self._last = worked, written, passed
        elif (span := passed - self._last[2]) >= _MEASURE_SECONDS:
            busy = max(worked - self._last[0], written - self._last[1]) / span
            self.share += min(1.0, span / _SMOOTHING_SECONDS) * (min(1.0, busy) - self.share)
            self._last = worked, written, passed
        return self.share

    def begin_writing(self) -> None:
        """Count the time from now until the loop has written its buffers, at the end of this iteration."""
        asyncio.get_running_loop().call_soon(self.end_writing, self._passed())

    def end_writing(self, began: float) -> None:
        self._written += self._passed() - began

    def wait(self, linger: float) -> float:
        """Return how long messages with a linger time wait now."""
        if not linger:
            return 0.0
        return linger * min(1.0, max(0.0, (self.measure() - LOW_LOAD) / (HIGH_LOAD - LOW_LOAD)))


FORMATS: Sequence[MessageFormat] = (
    SSE,
    NDJSON,
    rdf.NQUADS_FORMAT,
    rdf.TRIG_FORMAT,
    rdf.ZTREAMY,
    rdf.CLOUD_EVENTS,
    rdf.CLOUD_BATCH,
    rdf.JELLY,
    *rdf.MESSAGE_LOGS,
)
"""The first is the default."""


def choose_format(accept: str | None, name: str | None = None) -> MessageFormat:
    """Return the format with a name, or the one that an Accept header prefers. Raises NotAcceptable, or BadRequest for
    an unknown name."""
    if name is not None:
        named = next((each for each in FORMATS if each.name == name), None)
        if named is None:
            raise BadRequest(f"there is no format {name!r}; there are {', '.join(each.name for each in FORMATS)}")
        return named
    preferred = choose_offer(accept, [(each.media_type,) for each in FORMATS])
    if preferred is None:
        raise NotAcceptable(accept or "", tuple(each.media_type for each in FORMATS))
    return FORMATS[preferred]


@dataclass(frozen=True)
class DeliveryOptions:
    """Format, content coding, framing and linger time of a client, and whether it is served before others."""

    format: MessageFormat = SSE
    encoding: ContentCoding = IDENTITY
    chunked: bool = False
    """Each piece is an HTTP chunk."""
    linger: float = 0.0
    priority: bool = False

    def frame(self, data: bytes) -> bytes:
        """Frame a piece that is compressed already."""
        return b"%x\r\n%b\r\n" % (len(data), data) if self.chunked and data else data

    def encode_alone(self, data: bytes) -> bytes:
        """Compress and frame a piece for a client that is in no compression context."""
        return self.frame(self.encoding.alone(data)) if data else b""

    @property
    def end(self) -> bytes:
        """Last bytes of the response."""
        return b"0\r\n\r\n" if self.chunked else b""


def parse_options(request: web.Request, linger: float) -> DeliveryOptions:
    """Return the options that a request asks for; `linger` is the default of its stream. Raises NotAcceptable or
    BadRequest."""
    format = choose_format(request.headers.get("Accept"), request.query.get("format"))
    if not format.endless and request.query.get("mode") != "poll":
        raise BadRequest(f"{format.name} responses have an end, so they are for long polls: add ?mode=poll")
    encoding = _choose_coding(request.headers.get("Accept-Encoding"))
    if MOVED in request.query and format is SSE:
        format = SSE_BY_EVENT
    return _make_options(request, format, encoding, linger)


def parse_websocket_options(request: web.Request, linger: float) -> DeliveryOptions:
    """Return the options of a WebSocket, which has a format of its own."""
    return _make_options(request, WEBSOCKET, IDENTITY, linger)


def _make_options(
    request: web.Request, format: MessageFormat, encoding: ContentCoding, linger: float
) -> DeliveryOptions:
    if "buffer" in request.query:
        raise BadRequest("the parameter buffer is called linger now")
    given = request.query.get("linger")
    linger = linger if given is None else parse_linger(given)
    # All clients behind a relay would wait with it, and its edge lingers by itself.
    relay = RELAY in request.headers
    return DeliveryOptions(format, encoding, linger=0.0 if relay else linger, priority=relay)


def _choose_coding(accept: str | None) -> ContentCoding:
    qualities = parse_qualities(accept)
    known = [(qualities.get(each.name, 0.0), -rank, each) for rank, each in enumerate(CONTENT_CODINGS)]
    quality, _, best = max(known, key=lambda each: each[:2])
    return best if quality > 0 and quality >= qualities.get("identity", 0.0) else IDENTITY
