"""Server-sent events: what browsers read."""

from __future__ import annotations

import orjson

from triplewire.edge.entries import Pieces
from triplewire.edge.formats.ports import Finding
from triplewire.model import token


def message(event: bytes, data: bytes, position: int | None = None) -> bytes:
    """One message. `data` is JSON on one line; `position` becomes the id from which a client resumes."""
    if position is None:
        return b"event: %b\ndata: %b\n\n" % (event, data)
    return b"id: %b\nevent: %b\ndata: %b\n\n" % (token(position).encode(), event, data)


class Sse:
    """A message has an id, which is its position, a name and JSON on one line."""

    name = "sse"
    media_type = "text/event-stream"
    comment = b":\n\n"

    def event(self, pieces: Pieces, position: int) -> bytes:
        return message(b"event", b"{%b}" % pieces.members(position), position)

    def finding(self, pieces: Pieces, finding: Finding) -> bytes:
        return message(b"notification", b"{%b}" % finding.members(pieces), finding.position)

    def notice(self, name: str, **fields: object) -> bytes:
        told = message(name.encode(), orjson.dumps(fields))
        if name == "position":
            return b"id: %b\n%b" % (str(fields["position"]).encode(), told)
        # A browser waits so many milliseconds before it comes back.
        return b"retry: %b\n%b" % (str(fields["retry"]).encode(), told) if "retry" in fields else told

    def reached(self, position: int) -> bytes:
        return b"id: %b\n\n" % token(position).encode()


class SseByEvent(Sse):
    """The id of a message is that of its event, for listeners who come from another edge: a browser that loses the
    connection goes back there, where a position of this one would mean something else."""

    def event(self, pieces: Pieces, position: int) -> bytes:
        data = b"{%b}" % pieces.members(position)
        return b"id: %b\nevent: event\ndata: %b\n\n" % (pieces.id(position).encode(), data)

    def reached(self, position: int) -> bytes:
        return b""


SSE = Sse()
SSE_BY_EVENT = SseByEvent()
