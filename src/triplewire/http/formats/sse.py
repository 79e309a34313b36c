"""JSON messages as server-sent events, as lines (NDJSON) and as WebSocket text frames."""

from __future__ import annotations

from functools import cached_property

import orjson

from triplewire.http.formats.messages import EntryPieces, MessageFormat, Notification, stream_token
from triplewire.model import format_position

_TEXT_FRAME = 0x81
"""First byte of a WebSocket text message in a single frame."""
_PING = b"\x89\x00"


def render_sse(event: bytes, data: bytes, id: str | None = None) -> bytes:
    """Render one message. `data` is JSON on one line; a client resumes from the id."""
    if id is None:
        return b"event: %b\ndata: %b\n\n" % (event, data)
    return b"id: %b\nevent: %b\ndata: %b\n\n" % (id.encode(), event, data)


class SseFormat(MessageFormat):
    """Server-sent events: the id is the position, the data JSON."""

    name = "sse"
    media_type = "text/event-stream"
    comment = b":\n\n"

    def event(self, pieces: EntryPieces, position: int) -> bytes:
        return render_sse(b"event", b"{%b}" % pieces.members(position), self._event_id(position))

    def notification(self, pieces: EntryPieces, notification: Notification) -> bytes:
        data = b"{%b}" % notification.members(pieces)
        return render_sse(b"notification", data, self._notification_id(notification))

    def notice(self, name: str, **fields: object) -> bytes:
        message = render_sse(name.encode(), orjson.dumps(fields))
        if name == "position":
            return b"id: %b\n%b" % (str(fields["position"]).encode(), message)
        # A browser waits so many milliseconds before it reconnects.
        return b"retry: %b\n%b" % (str(fields["retry"]).encode(), message) if "retry" in fields else message

    def position(self, position: int) -> bytes:
        return b"" if self._tokens else b"id: %b\n\n" % format_position(position).encode()


class SseByEventFormat(SseFormat):
    """Server-sent events whose ids are those of the events, for clients that another edge has redirected: a browser
    that loses the connection goes back there, where a position of this edge would mean something else."""

    @cached_property
    def with_tokens(self) -> MessageFormat:
        return SSE.with_tokens

    def event(self, pieces: EntryPieces, position: int) -> bytes:
        return render_sse(b"event", b"{%b}" % pieces.members(position), pieces.id(position))

    def position(self, position: int) -> bytes:
        return b""


class JsonLinesFormat(MessageFormat):
    """A line of JSON for each message; its `type` says what it is. An empty line keeps the connection open."""

    name = "ndjson"
    media_type = "application/x-ndjson"
    comment = b"\n"

    def event(self, pieces: EntryPieces, position: int) -> bytes:
        return self.line(b"event", self._id(stream_token(position)) + pieces.members(position))

    def notification(self, pieces: EntryPieces, notification: Notification) -> bytes:
        return self.line(b"notification", self._id(str(notification.token)) + notification.members(pieces))

    def notice(self, name: str, **fields: object) -> bytes:
        return self.line(name.encode(), orjson.dumps(fields)[1:-1])

    def line(self, type: bytes, rest: bytes) -> bytes:
        """Render a message from its type and the other members of its object."""
        return b'{"type":"%b",%b}\n' % (type, rest)

    def _id(self, token: str) -> bytes:
        return b'"id":"%b",' % token.encode() if self._tokens else b""


class WebSocketFormat(JsonLinesFormat):
    """The same JSON, one message in one frame. A server does not mask frames, so all clients get the same bytes."""

    name = "websocket"
    media_type = "application/json"
    comment = _PING

    def line(self, type: bytes, rest: bytes) -> bytes:
        return frame_text(b'{"type":"%b",%b}' % (type, rest))


def frame_text(payload: bytes) -> bytes:
    """Frame a text message (RFC 6455)."""
    size = len(payload)
    if size < 126:
        return bytes((_TEXT_FRAME, size)) + payload
    if size < 1 << 16:
        return bytes((_TEXT_FRAME, 126)) + size.to_bytes(2, "big") + payload
    return bytes((_TEXT_FRAME, 127)) + size.to_bytes(8, "big") + payload


SSE = SseFormat()
SSE_BY_EVENT = SseByEventFormat()
NDJSON = JsonLinesFormat()
WEBSOCKET = WebSocketFormat()
