"""Messages to clients: the base of all message formats, log entries as the pieces of messages, frames of rendered
messages, notices about the connection, and resume tokens.

A piece is rendered once, and only if a message needs it. A resume token orders the messages of several subscriptions
and streams over one connection: by position, then by where the subscription was made; an event comes before what it
matched. The order depends on events and registry alone, so a token means the same to every edge.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, Final, NamedTuple

import orjson
import pyarrow as pa

from triplewire.model import END, START, format_position, parse_position
from triplewire.model.clock import format_timestamp
from triplewire.model.errors import BadRequest
from triplewire.rdf import to_nquads
from triplewire.security import Visibility

RETRY_MILLISECONDS: Final = 500
"""After how long clients of an edge that stops are told to reconnect: as a rule another edge is there at once."""

_N_QUADS = "application/n-quads"
_TOKEN_SEPARATOR = "~"


class MessageFormat(ABC):
    """A way to render messages. There is one object of each, so that formats are compared by identity."""

    name: str
    """Value of `?format=`."""
    media_type: str
    comment: bytes
    """Bytes that keep a connection open and carry no message."""
    head: bytes = b""
    """Bytes before the first message of an endless response."""
    endless: bool = True
    """Whether there are endless responses; other formats are for long polls only."""

    def __init__(self, *, tokens: bool = False) -> None:
        """With `tokens` the ids of messages are resume tokens, for several subscriptions over one connection."""
        self._tokens = tokens

    @cached_property
    def with_tokens(self) -> MessageFormat:
        """The same format with resume tokens as ids."""
        return type(self)(tokens=True)

    @abstractmethod
    def event(self, pieces: EntryPieces, position: int) -> bytes:
        """Render an event of a stream."""

    @abstractmethod
    def notification(self, pieces: EntryPieces, notification: Notification) -> bytes:
        """Render a message of a subscription or continuous query."""

    @abstractmethod
    def notice(self, name: str, **fields: object) -> bytes:
        """Render a message about the connection. Only the notice `position` moves the position of a client."""

    def position(self, position: int) -> bytes:
        """Render the position to resume from, where no message has it. It is empty with resume tokens, since more
        messages of the same position may follow."""
        return b"" if self._tokens else self.notice("position", position=format_position(position))

    def document(self, messages: Sequence[bytes]) -> bytes:
        """Join messages, at least one, to a response that has an end."""
        return self.head + b"".join(messages)

    def _event_id(self, position: int) -> str:
        return stream_token(position) if self._tokens else format_position(position)

    def _notification_id(self, notification: Notification) -> str:
        return str(notification.token) if self._tokens else format_position(notification.position)


@dataclass(frozen=True)
class Frames:
    """Rendered messages in order of position, at most one for each position."""

    positions: Sequence[int]
    parts: Sequence[bytes]

    @cached_property
    def joined(self) -> bytes:
        return self.parts[0] if len(self.parts) == 1 else b"".join(self.parts)

    def after(self, cursor: int) -> Frames:
        """Return the messages above the cursor; in the usual case these are all, without a copy."""
        if not self.positions or self.positions[0] > cursor:
            return self
        first = bisect_right(self.positions, cursor)
        return Frames(self.positions[first:], self.parts[first:])

    def up_to(self, position: int) -> Frames:
        if not self.positions or self.positions[-1] <= position:
            return self
        last = bisect_right(self.positions, position)
        return Frames(self.positions[:last], self.parts[:last])

    def with_position(self, position: int, format: MessageFormat) -> Frames:
        """Append a position, unless the last message has it."""
        if self.positions and self.positions[-1] >= position:
            return self
        return Frames([*self.positions, position], [*self.parts, format.position(position)])

    def with_prefix(self, notice: bytes) -> Frames:
        """Put a notice before the first message, of which there must be one."""
        return Frames(self.positions, [notice + self.parts[0], *self.parts[1:]]) if notice else self


NO_FRAMES = Frames((), ())


def join_frames(frames: Sequence[Frames]) -> Frames:
    """Join frames that follow each other."""
    if len(frames) == 1:
        return frames[0]
    positions = [position for each in frames for position in each.positions]
    return Frames(positions, [part for each in frames for part in each.parts])


def render_members(values: Mapping[str, Any]) -> bytes:
    """Render the members of a JSON object without its braces, to be joined with others."""
    return orjson.dumps(values)[1:-1]


def format_time(microseconds: int) -> str:
    """Do the same as `format_timestamp`, at a tenth of the cost where many times fall into the same seconds."""
    seconds, rest = divmod(microseconds, 1_000_000)
    return f"{_format_second(seconds)}.{rest:06}Z" if rest else f"{_format_second(seconds)}Z"


@lru_cache(4096)
def _format_second(seconds: int) -> str:
    return format_timestamp(seconds * 1_000_000).removesuffix("Z")


class EntryPieces:
    """Log entries by position, as the pieces of JSON that messages are put together from; with a visibility, only what
    it lets through."""

    def __init__(self, table: pa.Table, visibility: Visibility | None = None) -> None:
        self._table = table
        self._visibility = visibility
        self._visible: dict[int, str | None] = {}
        self._columns: dict[str, list[Any]] = {}
        self._summaries: dict[int, bytes] = {}
        self._bodies: dict[int, bytes] = {}
        self._members: dict[int, bytes] = {}

    @cached_property
    def rows(self) -> dict[int, int]:
        """Row of each position, in order. A position that is missing was trimmed from the log."""
        return {position: row for row, position in enumerate(self._column("position"))}

    def is_visible(self, position: int) -> bool:
        """Return whether the entry is in the table and any of it is visible."""
        return position in self.rows and (self._visibility is None or self._visible_text(position) is not None)

    def summary(self, position: int) -> bytes:
        """Render `"position", "stream", "event", "time"`."""
        known = self._summaries.get(position)
        if known is None:
            known = self._summaries[position] = render_members(
                {
                    "position": format_position(position),
                    "stream": self._text("stream", position),
                    "event": self._text("event", position),
                    "time": self.time(position),
                }
            )
        return known

    def time(self, position: int) -> str:
        """Return the time of the event."""
        return format_time(self._column("time")[self.rows[position]])

    def id(self, position: int) -> str:
        """Return the id of the event."""
        return self._text("event", position)

    def body(self, position: int) -> bytes:
        """Render `"format", "body"`."""
        known = self._bodies.get(position)
        if known is None:
            known = self._bodies[position] = render_members({"format": _N_QUADS, "body": self.nquads(position)})
        return known

    def nquads(self, position: int) -> str:
        return to_nquads(self._text("event", position), self.text(position))

    def text(self, position: int) -> str:
        """Return the visible statements of an entry that is visible."""
        if self._visibility is None:
            return self._text("text", position)
        visible = self._visible_text(position)
        assert visible is not None, "entries that are not visible are not rendered"
        return visible

    def extensions(self) -> list[str | None]:
        """Return the extension headers of each event as JSON; None for an event without any."""
        return self._column("extensions") if "extensions" in self._table.column_names else []

    def members(self, position: int) -> bytes:
        """Render summary, origin and body as members of a JSON object."""
        known = self._members.get(position)
        if known is None:
            parts = (self.summary(position), self._origin(position), self.body(position))
            known = self._members[position] = b",".join(parts)
        return known

    def entry(self, position: int) -> Mapping[str, Any]:
        """Return the entry as a row, its text as far as it is visible."""
        return _EntryRow(self, position)

    def value(self, name: str, position: int) -> Any:  # noqa: ANN401
        """Return one field of an entry, its text as far as it is visible."""
        return self.text(position) if name == "text" else self._column(name)[self.rows[position]]

    def names(self) -> list[str]:
        """Return the names of the fields."""
        return list(self._table.column_names)

    def _origin(self, position: int) -> bytes:
        """Render `"source", "application"`, and `"headers"` for an event that has others."""
        row = self.rows[position]
        origin = render_members({name: self._column(name)[row] for name in ("source", "application")})
        extensions = self._column("extensions")[row]
        return origin + b',"headers":' + extensions.encode() if extensions else origin

    def _visible_text(self, position: int) -> str | None:
        assert self._visibility is not None
        if position not in self._visible:
            fields = (self._text(name, position) for name in ("stream", "event", "text"))
            self._visible[position] = self._visibility.redacted(*fields)
        return self._visible[position]

    def _text(self, name: str, position: int) -> str:
        value: str = self._column(name)[self.rows[position]]
        return value

    def _column(self, name: str) -> list[Any]:
        if name not in self._columns:
            self._columns[name] = self._table.column(name).to_pylist()
        return self._columns[name]


class _EntryRow(Mapping[str, Any]):
    """An entry as a row. Few fields of it are read, so that none is copied."""

    __slots__ = ("_pieces", "_position")

    def __init__(self, pieces: EntryPieces, position: int) -> None:
        self._pieces = pieces
        self._position = position

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401
        return self._pieces.value(name, self._position)

    def __iter__(self) -> Iterator[str]:
        return iter(self._pieces.names())

    def __len__(self) -> int:
        return len(self._pieces.names())


@dataclass(frozen=True, order=True)
class ResumeToken:
    """A point in the merged order: all messages up to a position were sent, but at that position itself only those of
    streams and of subscriptions made at positions up to `made`."""

    position: int
    made: int = END

    def __str__(self) -> str:
        """Return the text from which a client resumes: the position alone where all messages at it were sent."""
        position = format_position(self.position)
        return position if self.made == END else f"{position}{_TOKEN_SEPARATOR}{format_position(self.made)}"

    @property
    def cursor(self) -> int:
        """Position up to which all messages were sent."""
        return self.position if self.made == END else max(START, self.position - 1)

    @classmethod
    def parse(cls, text: str) -> ResumeToken:
        """Raises BadRequest for a text that is no token."""
        position, separator, made = text.partition(_TOKEN_SEPARATOR)
        if not separator:
            return cls(parse_position(position))
        if "earliest" in (position, made):
            raise BadRequest(f"{text!r} is not an id; use `earliest` alone, or the `id` of a message that you received")
        return cls(parse_position(position), parse_position(made))


def stream_token(position: int) -> str:
    """Return the id of an event of a stream among messages of subscriptions."""
    return str(ResumeToken(position, START))


PATHS = {"subscription": "/subscriptions/", "query": "/queries/"}
"""Paths of the resources that have notifications."""


class Notification(NamedTuple):
    """A match of a subscription, or an answer of a continuous query, at the position of an event."""

    id: str
    kind: str
    position: int
    content: Mapping[str, Any]
    """Solutions (`results`), the graph of a CONSTRUCT (`format`, `graph`), or the limit that was reached (`limit`)."""
    whole: bool = False
    """The event itself is delivered."""
    made: int = START
    """Position at which the subscription or query was made."""
    noun: str = "subscription"
    """A key of `PATHS`."""

    @property
    def path(self) -> str:
        return PATHS[self.noun] + self.id

    @property
    def token(self) -> ResumeToken:
        return ResumeToken(self.position, self.made)

    def members(self, pieces: EntryPieces) -> bytes:
        """Render it as the members of a JSON object."""
        opening = _render_opening(self.noun, self.id, self.kind)
        rest = pieces.body(self.position) if self.whole else render_members(self.content)
        members = b"%b,%b" % (opening, pieces.summary(self.position))
        return b"%b,%b" % (members, rest) if rest else members


@lru_cache(20_000)
def _render_opening(noun: str, id: str, kind: str) -> bytes:
    """Render the members that are the same in all notifications of a subscription."""
    return render_members({noun: id, "kind": kind})


def gap_notice(format: MessageFormat, asked: int, earliest: int) -> bytes:
    """Render that events after a requested position are kept no more, up to the earliest that is."""
    fields = {"asked": format_position(asked), "earliest": format_position(earliest)}
    if earliest > asked + 1:
        fields |= {"first": format_position(asked + 1), "last": format_position(earliest - 1)}
    return format.notice("gap", **fields, detail="the events in between are not kept any more")


def undecided_notice(format: MessageFormat, position: int) -> bytes:
    """Render that the query of a stream filter took too long on the event at a position."""
    detail = "the query took too long on the event at this position, so it is not delivered; it can be read by itself"
    return format.notice("undecided", position=format_position(position), detail=detail)


@dataclass(frozen=True)
class ClosingMessage:
    """The last message to a client: a notice, with the position to resume from."""

    name: str
    fields: Mapping[str, object] = field(default_factory=dict)
    has_position: bool = True

    def render(self, format: MessageFormat, position: int) -> bytes:
        """Render it for a client that has everything up to a position."""
        if not self.name:
            return b""
        resume = {"position": format_position(position)} if self.has_position else {}
        return format.notice(self.name, **{**resume, **self.fields})


NO_MESSAGE = ClosingMessage("")
"""For a client that is gone, or whose response failed: it reconnects to where it was."""


def closing_message(detail: str, retry: int = RETRY_MILLISECONDS) -> ClosingMessage:
    """Tell a client to reconnect after so many milliseconds, and why."""
    return ClosingMessage("closing", {"retry": retry, "detail": f"{detail}; reconnect and resume from the position"})


EDGE_STOPS = closing_message("this edge stops")
POLICY_CHANGED = closing_message("the policy has changed")
LANE_CHANGED = closing_message("notifications come another way from here on", retry=0)


def slow_message(limit: float, advice: str = "read faster") -> ClosingMessage:
    """Tell a client that it fell behind by more than a limit: bytes, or seconds."""
    return ClosingMessage("slow", {"limit": limit, "detail": f"{advice}, or reconnect and resume from the position"})


def move_message(location: str, retry: int) -> ClosingMessage:
    """Tell a client to continue at another edge after so many milliseconds."""
    detail = "this edge is busy; continue at the location, or reconnect and resume from the position"
    return ClosingMessage("move", {"location": location, "retry": retry, "detail": detail})


def failed_message(detail: str) -> ClosingMessage:
    """Tell a client that its stream filter does not work: reconnecting would not help."""
    return ClosingMessage("failed", {"detail": detail})


def end_message(id: str, noun: str = "subscription", reason: str = "ended") -> ClosingMessage:
    """Tell a client that its subscription or query has ended."""
    detail = f"the {noun} was {reason}; nothing more will come"
    return ClosingMessage("end", {noun: id, "detail": detail}, has_position=False)
