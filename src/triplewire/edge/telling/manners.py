"""Manners: everything about how a client is told. Those of one manner get the same bytes."""

from __future__ import annotations

from dataclasses import dataclass

from aiohttp import web

from triplewire.edge.formats import MESSAGES, SSE, Format, format_of
from triplewire.edge.formats.sse import SSE_BY_EVENT
from triplewire.edge.telling.compressions import ENCODINGS, IDENTITY, Encoding
from triplewire.edge.telling.windows import seconds_of
from triplewire.model.errors import BadRequest
from triplewire.rdf.syntaxes import parse_qualities

RELAY = "Relay-Id"
"""The header by which a relay says who it is."""
MOVED = "moved"
"""A parameter: the listener comes from another edge."""


@dataclass(frozen=True)
class Manner:
    """A format, how it is packed and framed, for how many seconds it may wait, and whether it goes before others."""

    format: Format = SSE
    encoding: Encoding = IDENTITY
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


def manner_of(request: web.Request, window: float) -> Manner:
    """What a request asks for; `window` is what its stream may wait if it does not say. Raises NotAcceptable or
    BadRequest."""
    format = format_of(request.headers.get("Accept"), request.query.get("format"))
    if not format.endless and request.query.get("mode") != "poll":
        raise BadRequest(f"{format.name} has an end, so that it comes by polls: ask with ?mode=poll")
    encoding = _encoding(request.headers.get("Accept-Encoding"))
    if MOVED in request.query and format is SSE:
        format = SSE_BY_EVENT
    return _manner(request, format, encoding, window)


def conversational(request: web.Request, window: float) -> Manner:
    """The same over a WebSocket, which has a format of its own."""
    return _manner(request, MESSAGES, IDENTITY, window)


def _manner(request: web.Request, format: Format, encoding: Encoding, window: float) -> Manner:
    asked = request.query.get("buffer")
    wait = window if asked is None else seconds_of(asked)
    # What a relay waits for, all behind it wait for, and its edge has a window of its own.
    relay = RELAY in request.headers
    return Manner(format, encoding, window=0.0 if relay else wait, priority=relay)


def _encoding(accept: str | None) -> Encoding:
    liked = parse_qualities(accept)
    known = [(liked.get(each.name, 0.0), -place, each) for place, each in enumerate(ENCODINGS)]
    quality, _, best = max(known, key=lambda each: each[:2])
    return best if quality > 0 and quality >= liked.get("identity", 0.0) else IDENTITY
