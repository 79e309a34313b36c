"""Messages to clients: the port of a message format, log entries as the pieces that messages are put together from,
frames of rendered messages, notices about the connection, and resume tokens.

A piece is rendered once, and only if a message needs it. A resume token orders what several subscriptions and streams
are told over one connection: by position, then by where the subscription was made. It depends on events and registry
alone, so it means the same to every edge.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Protocol

import orjson
import pyarrow as pa

from triplewire.model import END, START, format_position, parse_position
from triplewire.model.clock import format_timestamp
from triplewire.model.errors import BadRequest
from triplewire.rdf import to_nquads
from triplewire.security import Visibility

# Frames: messages as bytes in one format, made once and written to many.


@dataclass(frozen=True)
class Frames:
    """Messages in order of position, at most one for each position."""

    positions: Sequence[int]
    parts: Sequence[bytes]

    @cached_property
    def joined(self) -> bytes:
        return self.parts[0] if len(self.parts) == 1 else b"".join(self.parts)

    def after(self, cursor: int) -> Frames:
        """Those at positions above the cursor: all of them, in the usual case, without a copy."""
        if not self.positions or self.positions[0] > cursor:
            return self
        first = bisect_right(self.positions, cursor)
        return Frames(self.positions[first:], self.parts[first:])

    def upto(self, position: int) -> Frames:
        """Those at positions up to one."""
        if not self.positions or self.positions[-1] <= position:
            return self
        last = bisect_right(self.positions, position)
        return Frames(self.positions[:last], self.parts[:last])


NO_FRAMES = Frames((), ())


def join_frames(frames: Sequence[Frames]) -> Frames:
    """Frames that follow each other as one."""
    if len(frames) == 1:
        return frames[0]
    positions = [position for each in frames for position in each.positions]
    return Frames(positions, [part for each in frames for part in each.parts])


def render_members(values: Mapping[str, Any]) -> bytes:
    """The members of a JSON object without its braces, to be joined with others."""
    return orjson.dumps(values)[1:-1]


# Entries of the log as the pieces of JSON that messages are put together from, each made once and only if needed.

_FORMAT = "application/n-quads"


def format_time(microseconds: int) -> str:
    """`timestamp`, at a tenth of the price where many fall into the same seconds."""
    seconds, rest = divmod(microseconds, 1_000_000)
    return f"{_format_second(seconds)}.{rest:06}Z" if rest else f"{_format_second(seconds)}Z"


@lru_cache(4096)
def _format_second(seconds: int) -> str:
    return format_timestamp(seconds * 1_000_000).removesuffix("Z")


class EntryPieces:
    """The entries of one table, by position, or what is in sight of them."""

    def __init__(self, table: pa.Table, sight: Visibility | None = None) -> None:
        self._table = table
        self._sight = sight
        self._seen: dict[int, str | None] = {}
        self._columns: dict[str, list[Any]] = {}
        self._briefs: dict[int, bytes] = {}
        self._bodies: dict[int, bytes] = {}
        self._whole: dict[int, bytes] = {}

    @cached_property
    def rows(self) -> dict[int, int]:
        """The row of each position, in order; a position that is not in it was trimmed away."""
        return {position: row for row, position in enumerate(self._column("position"))}

    def shows(self, position: int) -> bool:
        """Whether anything of it is in sight; of one that is not in the table nothing is."""
        return position in self.rows and (self._sight is None or self._text_in_sight(position) is not None)

    def brief(self, position: int) -> bytes:
        """Where and when it happened: `"position", "stream", "event", "time"`."""
        found = self._briefs.get(position)
        if found is None:
            found = self._briefs[position] = render_members(
                {
                    "position": format_position(position),
                    "stream": self._text("stream", position),
                    "event": self._text("event", position),
                    "time": self.time(position),
                }
            )
        return found

    def time(self, position: int) -> str:
        """When it happened."""
        return format_time(self._column("time")[self.rows[position]])

    def id(self, position: int) -> str:
        """Of the event."""
        return self._text("event", position)

    def body(self, position: int) -> bytes:
        """What happened: `"format", "body"`."""
        found = self._bodies.get(position)
        if found is None:
            found = self._bodies[position] = render_members({"format": _FORMAT, "body": self.nquads(position)})
        return found

    def nquads(self, position: int) -> str:
        return to_nquads(self._text("event", position), self.text(position))

    def text(self, position: int) -> str:
        """What of it is in sight."""
        if self._sight is None:
            return self._text("text", position)
        found = self._text_in_sight(position)
        assert found is not None, "nobody tells of what is out of sight"
        return found

    def _text_in_sight(self, position: int) -> str | None:
        assert self._sight is not None
        if position not in self._seen:
            told = (self._text(name, position) for name in ("stream", "event", "text"))
            self._seen[position] = self._sight.redacted(*told)
        return self._seen[position]

    def origin(self, position: int) -> bytes:
        """Who said so: `"source", "application"`, and `"headers"` where there are others."""
        row = self.rows[position]
        told = render_members({name: self._column(name)[row] for name in ("source", "application")})
        others = self._column("extensions")[row]
        return told + b',"headers":' + others.encode() if others else told

    def headers(self) -> list[str | None]:
        """What publishers said of each event beside that, as JSON; None where they said nothing."""
        return self._column("extensions") if "extensions" in self._table.column_names else []

    def members(self, position: int) -> bytes:
        """All of that, as the members of a JSON object."""
        found = self._whole.get(position)
        if found is None:
            parts = (self.brief(position), self.origin(position), self.body(position))
            found = self._whole[position] = b",".join(parts)
        return found

    def entry(self, position: int) -> dict[str, Any]:
        """The entry as a row."""
        told = {name: self._column(name)[self.rows[position]] for name in self._table.column_names}
        return told if self._sight is None else {**told, "text": self.text(position)}

    def _text(self, name: str, position: int) -> str:
        found: str = self._column(name)[self.rows[position]]
        return found

    def _column(self, name: str) -> list[Any]:
        if name not in self._columns:
            self._columns[name] = self._table.column(name).to_pylist()
        return self._columns[name]


# Marks: places in what several subscriptions, and streams, are told over one connection.
#
# The order is that of positions, and at one position that in which the subscriptions were made; an event of a stream
# comes before what it matched. It depends on nothing but the events and the registry, so a mark means the same to
# every edge, and also when others are listened to beside it than before.

_BETWEEN = "~"


@dataclass(frozen=True, order=True)
class ResumeToken:
    """Everything was told up to a position, there included, but of those at that position only what concerns
    subscriptions that were made up to `made`: all, unless it says otherwise."""

    position: int
    made: int = END

    def __str__(self) -> str:
        """The text from which a client resumes; where all was told it is that of the position alone."""
        return (
            format_position(self.position)
            if self.made == END
            else f"{format_position(self.position)}{_BETWEEN}{format_position(self.made)}"
        )

    @property
    def cursor(self) -> int:
        """The position up to which all was told."""
        return self.position if self.made == END else max(START, self.position - 1)

    @classmethod
    def parse(cls, text: str) -> ResumeToken:
        """Raises BadRequest for what is no mark."""
        position, between, made = text.partition(_BETWEEN)
        if not between:
            return cls(parse_position(position))
        if "earliest" in (position, made):
            raise BadRequest(f"{text!r} is not an id; use `earliest` alone, or the `id` of something you received")
        return cls(parse_position(position), parse_position(made))


PATHS = {"subscription": "/subscriptions/", "query": "/queries/"}
"""Where those are that are told of something."""


@dataclass(frozen=True)
class Notification:
    """What a subscription, or a continuous query, is told of the event at a position."""

    id: str
    kind: str
    position: int
    said: Mapping[str, Any]
    """Solutions (`results`), what a CONSTRUCT builds (`format`, `graph`), or which limit was reached (`limit`)."""
    whole: bool = False
    """The event itself is told."""
    made: int = START
    """Where the subscription was made."""
    of: str = "subscription"
    """Of what it is: one of `PATHS`."""

    @property
    def path(self) -> str:
        """Where that is which is told."""
        return PATHS[self.of] + self.id

    @property
    def mark(self) -> str:
        """The id of the message among those of other subscriptions."""
        return str(ResumeToken(self.position, self.made))

    def members(self, pieces: EntryPieces) -> bytes:
        """All of it, as the members of a JSON object."""
        opening = render_members({self.of: self.id, "kind": self.kind})
        rest = pieces.body(self.position) if self.whole else render_members(self.said)
        told = b"%b,%b" % (opening, pieces.brief(self.position))
        return b"%b,%b" % (told, rest) if rest else told


class ConcatenatedFormat:
    """A format in which messages follow each other, whether there is an end or not."""

    head = b""
    endless = True

    def document(self, messages: Sequence[bytes]) -> bytes:
        return self.head + b"".join(messages)


class MessageFormat(Protocol):
    """A way to write messages. There is one of each, so that they are told apart by identity."""

    @property
    def name(self) -> str:
        """What `?format=` calls it."""

    @property
    def media_type(self) -> str: ...

    @property
    def comment(self) -> bytes:
        """What keeps a connection open and says nothing."""

    @property
    def head(self) -> bytes:
        """What stands before the first message of an answer without an end."""

    @property
    def endless(self) -> bool:
        """Whether there may be an answer without an end; others are had by polls."""

    def document(self, messages: Sequence[bytes]) -> bytes:
        """Messages as an answer that has an end. There is at least one."""

    @property
    def marked(self) -> MessageFormat:
        """The same for several subscriptions and streams over one connection: the ids of messages are marks."""

    def event(self, pieces: EntryPieces, position: int) -> bytes:
        """A message of a stream."""

    def finding(self, pieces: EntryPieces, finding: Notification) -> bytes:
        """A message of a subscription."""

    def notice(self, name: str, **fields: object) -> bytes:
        """A message about the connection itself. Only `position` moves a client."""

    def reached(self, position: int) -> bytes:
        """From where to resume, where there is no message to tell it. Nothing where ids are marks: others may have to
        be told more of the same position."""


def stream_token(position: int) -> str:
    """The id of an event of a stream among messages of subscriptions."""
    return str(ResumeToken(position, START))


def gap_notice(format: MessageFormat, asked: int, earliest: int) -> bytes:
    """What was asked for is gone."""
    told = {"asked": format_position(asked), "earliest": format_position(earliest)}
    if earliest > asked + 1:
        told |= {"first": format_position(asked + 1), "last": format_position(earliest - 1)}
    return format.notice("gap", **told, detail="what lay between is kept no more")


def slow_notice(format: MessageFormat, position: int, limit: int) -> bytes:
    """The last message of a listener that read too slowly."""
    detail = "read faster, or come back and resume from the position"
    return format.notice("slow", position=format_position(position), limit=limit, detail=detail)


def end_notice(format: MessageFormat, id: str, of: str = "subscription", why: str = "ended") -> bytes:
    """The last message of a subscription or a query that was ended."""
    return format.notice("end", **{of: id}, detail=f"the {of} was {why}; nothing more will come")


def undecided_notice(format: MessageFormat, position: int) -> bytes:
    """In the place of an event on which the query of a sieve took too long."""
    detail = "the query took too long on the event at this position, so that it is not told; it can be read by itself"
    return format.notice("undecided", position=format_position(position), detail=detail)


def failed_notice(format: MessageFormat, position: int, detail: str) -> bytes:
    """The last message of those who listen through a sieve that does not work: coming back would not help."""
    return format.notice("failed", position=format_position(position), detail=detail)


def closing_notice(format: MessageFormat, position: int, retry: int) -> bytes:
    """The last message of an edge that stops. `retry` are milliseconds."""
    detail = "this edge stops; come back and resume from the position"
    return format.notice("closing", position=format_position(position), retry=retry, detail=detail)


def policy_changed_notice(format: MessageFormat, position: int, retry: int) -> bytes:
    """The last message of a listener who sees something else from now on. `retry` are milliseconds."""
    detail = "the policy has changed; come back and resume from the position"
    return format.notice("closing", position=format_position(position), retry=retry, detail=detail)


def move_notice(format: MessageFormat, position: int, location: str, retry: int) -> bytes:
    """The last message of a listener that is to go on elsewhere. `retry` are milliseconds."""
    detail = "this edge is busy; go on at the location, or come back and resume from the position"
    return format.notice("move", position=format_position(position), location=location, retry=retry, detail=detail)


def lane_changed_notice(format: MessageFormat, position: int) -> bytes:
    """The last message of a subscription whose matches come by another lane from now on."""
    detail = "notifications come another way from here on; come back and resume from the position"
    return format.notice("closing", position=format_position(position), retry=0, detail=detail)
