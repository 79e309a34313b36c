"""Lines of JSON."""

from __future__ import annotations

import orjson

from triplewire.edge.entries import Pieces
from triplewire.edge.formats.ports import Finding
from triplewire.model import token


class Lines:
    """A JSON object for each message; its `type` says what it is. An empty line says nothing."""

    name = "ndjson"
    media_type = "application/x-ndjson"
    comment = b"\n"

    def event(self, pieces: Pieces, position: int) -> bytes:
        return self.line(b"event", pieces.members(position))

    def finding(self, pieces: Pieces, finding: Finding) -> bytes:
        return self.line(b"notification", finding.members(pieces))

    def notice(self, name: str, **fields: object) -> bytes:
        return self.line(name.encode(), orjson.dumps(fields)[1:-1])

    def reached(self, position: int) -> bytes:
        return self.notice("position", position=token(position))

    def line(self, type: bytes, rest: bytes) -> bytes:
        return b'{"type":"%b",%b}\n' % (type, rest)


NDJSON = Lines()
