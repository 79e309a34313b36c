"""JSON messages as server-sent events, as lines (NDJSON) and as WebSocket text frames.

Frames from a server are not masked, so that every client gets the same bytes.
"""

from __future__ import annotations

from functools import cached_property

import orjson

from triplewire.http.formats.messages import ConcatenatedFormat, EntryPieces, MessageFormat, Notification, stream_token
from triplewire.model import format_position


def render_sse(event: bytes, data: bytes, id: str | None = None) -> bytes:
    """One message. `data` is JSON on one line; a client resumes from the id."""
    if id is None:
        return b"event: %b\ndata: %b\n\n" % (event, data)
    return b"id: %b\nevent: %b\ndata: %b\n\n" % (id.encode(), event, data)


class SseFormat(ConcatenatedFormat):
    """A message has an id, which is its position, a name and JSON on one line."""

    name = "sse"
    media_type = "text/event-stream"
    comment = b":\n\n"

    def __init__(self, *, marks: bool = False) -> None:
        self._marks = marks

    @cached_property
    def marked(self) -> MessageFormat:
        return SseFormat(marks=True)

    def event(self, pieces: EntryPieces, position: int) -> bytes:
        id = stream_token(position) if self._marks else format_position(position)
        return render_sse(b"event", b"{%b}" % pieces.members(position), id)

    def finding(self, pieces: EntryPieces, finding: Notification) -> bytes:
        id = finding.mark if self._marks else format_position(finding.position)
        return render_sse(b"notification", b"{%b}" % finding.members(pieces), id)

    def notice(self, name: str, **fields: object) -> bytes:
        told = render_sse(name.encode(), orjson.dumps(fields))
        if name == "position":
            return b"id: %b\n%b" % (str(fields["position"]).encode(), told)
        # A browser waits so many milliseconds before it comes back.
        return b"retry: %b\n%b" % (str(fields["retry"]).encode(), told) if "retry" in fields else told

    def reached(self, position: int) -> bytes:
        return b"" if self._marks else b"id: %b\n\n" % format_position(position).encode()


class SseByEventFormat(SseFormat):
    """The id of a message is that of its event, for listeners who come from another edge: a browser that loses the
    connection goes back there, where a position of this one would mean something else."""

    def event(self, pieces: EntryPieces, position: int) -> bytes:
        data = b"{%b}" % pieces.members(position)
        return b"id: %b\nevent: event\ndata: %b\n\n" % (pieces.id(position).encode(), data)

    def reached(self, position: int) -> bytes:
        return b""


SSE = SseFormat()
SSE_BY_EVENT = SseByEventFormat()


# Lines of JSON.


class JsonLinesFormat(ConcatenatedFormat):
    """A JSON object for each message; its `type` says what it is. An empty line says nothing."""

    name = "ndjson"
    media_type = "application/x-ndjson"
    comment = b"\n"

    def __init__(self, *, marks: bool = False) -> None:
        self._marks = marks

    @cached_property
    def marked(self) -> MessageFormat:
        return type(self)(marks=True)

    def event(self, pieces: EntryPieces, position: int) -> bytes:
        return self.line(b"event", self._id(stream_token(position)) + pieces.members(position))

    def finding(self, pieces: EntryPieces, finding: Notification) -> bytes:
        return self.line(b"notification", self._id(finding.mark) + finding.members(pieces))

    def notice(self, name: str, **fields: object) -> bytes:
        return self.line(name.encode(), orjson.dumps(fields)[1:-1])

    def reached(self, position: int) -> bytes:
        return b"" if self._marks else self.notice("position", position=format_position(position))

    def line(self, type: bytes, rest: bytes) -> bytes:
        return b'{"type":"%b",%b}\n' % (type, rest)

    def _id(self, mark: str) -> bytes:
        return b'"id":"%b",' % mark.encode() if self._marks else b""


NDJSON = JsonLinesFormat()


# Messages of a WebSocket: JSON as in lines, one message in one frame.

_TEXT = 0x81
"""The only, and last, frame of a text."""
_PING = b"\x89\x00"


class WebSocketFormat(JsonLinesFormat):
    """Frames from a server are not masked, so everybody gets the same bytes."""

    name = "websocket"
    media_type = "application/json"
    comment = _PING

    def line(self, type: bytes, rest: bytes) -> bytes:
        return frame_text(b'{"type":"%b",%b}' % (type, rest))


def frame_text(payload: bytes) -> bytes:
    """A text message as RFC 6455 frames it."""
    size = len(payload)
    if size < 126:
        return bytes((_TEXT, size)) + payload
    if size < 1 << 16:
        return bytes((_TEXT, 126)) + size.to_bytes(2, "big") + payload
    return bytes((_TEXT, 127)) + size.to_bytes(8, "big") + payload


WEBSOCKET = WebSocketFormat()
