"""Lines of JSON."""

from __future__ import annotations

from functools import cached_property

import orjson

from triplewire.edge.feeds.entries import Pieces
from triplewire.edge.formats.ports import Finding, Flowing, Format, stream_mark
from triplewire.model import format_position


class Lines(Flowing):
    """A JSON object for each message; its `type` says what it is. An empty line says nothing."""

    name = "ndjson"
    media_type = "application/x-ndjson"
    comment = b"\n"

    def __init__(self, *, marks: bool = False) -> None:
        self._marks = marks

    @cached_property
    def marked(self) -> Format:
        return type(self)(marks=True)

    def event(self, pieces: Pieces, position: int) -> bytes:
        return self.line(b"event", self._id(stream_mark(position)) + pieces.members(position))

    def finding(self, pieces: Pieces, finding: Finding) -> bytes:
        return self.line(b"notification", self._id(finding.mark) + finding.members(pieces))

    def notice(self, name: str, **fields: object) -> bytes:
        return self.line(name.encode(), orjson.dumps(fields)[1:-1])

    def reached(self, position: int) -> bytes:
        return b"" if self._marks else self.notice("position", position=format_position(position))

    def line(self, type: bytes, rest: bytes) -> bytes:
        return b'{"type":"%b",%b}\n' % (type, rest)

    def _id(self, mark: str) -> bytes:
        return b'"id":"%b",' % mark.encode() if self._marks else b""


NDJSON = Lines()
