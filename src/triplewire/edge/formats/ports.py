"""What a format is, and what it writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from triplewire.edge.feeds.entries import Pieces
from triplewire.edge.telling.frames import members
from triplewire.edge.telling.marks import Mark
from triplewire.model import START, format_position

PATHS = {"subscription": "/subscriptions/", "query": "/queries/"}
"""Where those are that are told of something."""


@dataclass(frozen=True)
class Finding:
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
        return str(Mark(self.position, self.made))

    def members(self, pieces: Pieces) -> bytes:
        """All of it, as the members of a JSON object."""
        opening = members({self.of: self.id, "kind": self.kind})
        rest = pieces.body(self.position) if self.whole else members(self.said)
        told = b"%b,%b" % (opening, pieces.brief(self.position))
        return b"%b,%b" % (told, rest) if rest else told


class Flowing:
    """A format in which messages follow each other, whether there is an end or not."""

    head = b""
    endless = True

    def document(self, messages: Sequence[bytes]) -> bytes:
        return self.head + b"".join(messages)


class Format(Protocol):
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
    def marked(self) -> Format:
        """The same for several subscriptions and streams over one connection: the ids of messages are marks."""

    def event(self, pieces: Pieces, position: int) -> bytes:
        """A message of a stream."""

    def finding(self, pieces: Pieces, finding: Finding) -> bytes:
        """A message of a subscription."""

    def notice(self, name: str, **fields: object) -> bytes:
        """A message about the connection itself. Only `position` moves a client."""

    def reached(self, position: int) -> bytes:
        """From where to resume, where there is no message to tell it. Nothing where ids are marks: others may have to
        be told more of the same position."""


def stream_mark(position: int) -> str:
    """The id of an event of a stream among messages of subscriptions."""
    return str(Mark(position, START))


def gap(format: Format, asked: int, earliest: int) -> bytes:
    """What was asked for is gone."""
    told = {"asked": format_position(asked), "earliest": format_position(earliest)}
    if earliest > asked + 1:
        told |= {"first": format_position(asked + 1), "last": format_position(earliest - 1)}
    return format.notice("gap", **told, detail="what lay between is kept no more")


def slow(format: Format, position: int, limit: int) -> bytes:
    """The last message of a listener that read too slowly."""
    detail = "read faster, or come back and resume from the position"
    return format.notice("slow", position=format_position(position), limit=limit, detail=detail)


def end(format: Format, id: str, of: str = "subscription", why: str = "ended") -> bytes:
    """The last message of a subscription or a query that was ended."""
    return format.notice("end", **{of: id}, detail=f"the {of} was {why}; nothing more will come")


def undecided(format: Format, position: int) -> bytes:
    """In the place of an event on which the query of a sieve took too long."""
    detail = "the query took too long on the event at this position, so that it is not told; it can be read by itself"
    return format.notice("undecided", position=format_position(position), detail=detail)


def failed(format: Format, position: int, detail: str) -> bytes:
    """The last message of those who listen through a sieve that does not work: coming back would not help."""
    return format.notice("failed", position=format_position(position), detail=detail)


def closing(format: Format, position: int, retry: int) -> bytes:
    """The last message of an edge that stops. `retry` are milliseconds."""
    detail = "this edge stops; come back and resume from the position"
    return format.notice("closing", position=format_position(position), retry=retry, detail=detail)


def renewed(format: Format, position: int, retry: int) -> bytes:
    """The last message of a listener who sees something else from now on. `retry` are milliseconds."""
    detail = "the policy has changed; come back and resume from the position"
    return format.notice("closing", position=format_position(position), retry=retry, detail=detail)


def move(format: Format, position: int, location: str, retry: int) -> bytes:
    """The last message of a listener that is to go on elsewhere. `retry` are milliseconds."""
    detail = "this edge is busy; go on at the location, or come back and resume from the position"
    return format.notice("move", position=format_position(position), location=location, retry=retry, detail=detail)


def moved(format: Format, position: int) -> bytes:
    """The last message of a subscription whose matches come by another lane from now on."""
    detail = "notifications come another way from here on; come back and resume from the position"
    return format.notice("closing", position=format_position(position), retry=0, detail=detail)
