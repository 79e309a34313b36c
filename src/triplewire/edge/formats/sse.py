"""Server-sent events: what browsers read."""

from __future__ import annotations

from functools import cached_property

import orjson

from triplewire.edge.feeds.entries import Pieces
from triplewire.edge.formats.ports import Finding, Flowing, Format, stream_mark
from triplewire.model import format_position


def message(event: bytes, data: bytes, id: str | None = None) -> bytes:
    """One message. `data` is JSON on one line; a client resumes from the id."""
    if id is None:
        return b"event: %b\ndata: %b\n\n" % (event, data)
    return b"id: %b\nevent: %b\ndata: %b\n\n" % (id.encode(), event, data)


class Sse(Flowing):
    """A message has an id, which is its position, a name and JSON on one line."""

    name = "sse"
    media_type = "text/event-stream"
    comment = b":\n\n"

    def __init__(self, *, marks: bool = False) -> None:
        self._marks = marks

    @cached_property
    def marked(self) -> Format:
        return Sse(marks=True)

    def event(self, pieces: Pieces, position: int) -> bytes:
        id = stream_mark(position) if self._marks else format_position(position)
        return message(b"event", b"{%b}" % pieces.members(position), id)

    def finding(self, pieces: Pieces, finding: Finding) -> bytes:
        id = finding.mark if self._marks else format_position(finding.position)
        return message(b"notification", b"{%b}" % finding.members(pieces), id)

    def notice(self, name: str, **fields: object) -> bytes:
        told = message(name.encode(), orjson.dumps(fields))
        if name == "position":
            return b"id: %b\n%b" % (str(fields["position"]).encode(), told)
        # A browser waits so many milliseconds before it comes back.
        return b"retry: %b\n%b" % (str(fields["retry"]).encode(), told) if "retry" in fields else told

    def reached(self, position: int) -> bytes:
        return b"" if self._marks else b"id: %b\n\n" % format_position(position).encode()


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
