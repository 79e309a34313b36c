"""Posts: messages as bodies of requests, each by itself."""

from __future__ import annotations

from triplewire.edge.feeds.entries import Pieces
from triplewire.edge.formats import N_QUADS, NDJSON, TRIG, Format
from triplewire.edge.formats.lines import Lines
from triplewire.edge.formats.ports import Finding


class Posts(Lines):
    """A JSON object with `type`, `timestamp` and `data`, as Standard Webhooks has it; `data` is what lines of JSON say.
    What only says how far it is, is not sent."""

    name = "json"
    media_type = "application/json"
    comment = b""

    def event(self, pieces: Pieces, position: int) -> bytes:
        return self._told(b"event", pieces.time(position), pieces.members(position))

    def finding(self, pieces: Pieces, finding: Finding) -> bytes:
        return self._told(b"notification", pieces.time(finding.position), finding.members(pieces))

    def reached(self, position: int) -> bytes:
        return b""

    def line(self, type: bytes, rest: bytes) -> bytes:
        return b'{"type":"%b","data":{%b}}\n' % (type, rest)

    def _told(self, type: bytes, time: str, members: bytes) -> bytes:
        return b'{"type":"%b","timestamp":"%b","data":{%b}}\n' % (type, time.encode(), members)


POSTS = Posts()

TOPICS: dict[str, Format] = {each.name: each for each in (N_QUADS, TRIG, NDJSON)}
"""Formats of streams that are sent piece by piece, each of which is a document."""

FORMATS: dict[str, Format] = {POSTS.name: POSTS} | {name: each.marked for name, each in TOPICS.items()}
"""By the names under which hooks have them; those of streams in the form in which nothing says only how far it is."""
