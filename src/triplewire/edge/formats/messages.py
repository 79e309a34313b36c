"""Messages of a WebSocket: JSON as in lines, one message in one frame."""

from __future__ import annotations

from triplewire.edge.formats.lines import Lines

_TEXT = 0x81
"""The only, and last, frame of a text."""
_PING = b"\x89\x00"


class Messages(Lines):
    """Frames from a server are not masked, so everybody gets the same bytes."""

    name = "websocket"
    media_type = "application/json"
    comment = _PING

    def line(self, type: bytes, rest: bytes) -> bytes:
        return frame(b'{"type":"%b",%b}' % (type, rest))


def frame(payload: bytes) -> bytes:
    """A text message as RFC 6455 frames it."""
    size = len(payload)
    if size < 126:
        return bytes((_TEXT, size)) + payload
    if size < 1 << 16:
        return bytes((_TEXT, 126)) + size.to_bytes(2, "big") + payload
    return bytes((_TEXT, 127)) + size.to_bytes(8, "big") + payload


MESSAGES = Messages()
