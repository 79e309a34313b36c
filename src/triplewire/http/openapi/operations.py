"""Operations: the verb, parameters, body, answers and problems of a route, said once.

An operation is a value; a handler names the one that it serves:

    @serves(PUBLISH)
    async def publish(self, request): …

The authentication middleware reads the verbs that a caller needs from it, and the OpenAPI and AsyncAPI documents are
generated from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from triplewire.http.openapi.schemas import POSITION, Schema, enum_schema, ref
from triplewire.rdf.terms import HEADER_CHARACTERS
from triplewire.security import Verb
from triplewire.storage.registry.ports import PAGE_ENTRIES

HISTORY_EVENTS: Final = 1_000
"""Events in one step of a replay, and in one pass over the live listeners: about 10 ms, 1 MB for events of 1 kB."""

POLL_SECONDS_MOST: Final = 300.0
"""How long it may wait."""

ACK_MESSAGES: Final = 256
"""Messages that a client over a WebSocket may leave unacknowledged, where it acknowledges at all."""

LINGER_SECONDS_MOST: Final = 60.0
"""What a window may be set to."""


# An operation is a value, written down in `contract/catalogue`; a handler says which one it serves:
#
#     @serves(publishing.PUBLISH)
#     async def publish(self, request): …
#
# The door looks there for the verb that a caller needs; the documents for machines are written from it.

Handler = TypeVar("Handler", bound=Callable[..., Any])

PATH = "path"
QUERY = "query"
HEADER = "header"


@dataclass(frozen=True)
class Parameter:
    """Something that a request can say outside of its body."""

    name: str
    description: str
    where: str = QUERY
    schema: Mapping[str, Any] = field(default_factory=lambda: {"type": "string"})
    required: bool = False


@dataclass(frozen=True)
class BodyContent:
    """A body, of a request or an answer: in one of some media types, each with the name of a schema or none."""

    types: Mapping[str, str | None] = field(default_factory=dict)
    description: str = ""
    headers: tuple[str, ...] = ()
    """Those of an answer that say more than how it is written."""


@dataclass(frozen=True)
class Operation:
    """What a route does. Somebody with any of the verbs may ask for it; without verbs everyone may."""

    id: str
    summary: str
    verbs: tuple[Verb, ...] = ()
    stream: str | None = None
    """The part of the path that names the stream for which the verb is needed."""
    description: str = ""
    parameters: tuple[Parameter, ...] = ()
    body: BodyContent | None = None
    answers: Mapping[int, BodyContent] = field(default_factory=dict)
    problems: tuple[int, ...] = ()
    """The statuses of problem documents that it answers with, besides those of the door."""
    tells: tuple[str, ...] = ()
    """The messages, by their schemas, that clients are told where the answer is a channel and does not end."""
    hears: tuple[str, ...] = ()
    """The messages that clients may say meanwhile."""

    @property
    def lasts(self) -> bool:
        """Whether the answer is a channel, which does not end."""
        return bool(self.tells or self.hears)


def serves(operation: Operation) -> Callable[[Handler], Handler]:
    """Marks the handler of an operation."""

    def mark(handler: Handler) -> Handler:
        handler.operation = operation  # type: ignore[attr-defined]
        return handler

    return mark


def operation_of(handler: object) -> Operation | None:
    """What a handler serves; None for one that says nothing, such as the framework's own for unknown addresses."""
    found = getattr(handler, "operation", None)
    return found if isinstance(found, Operation) else None


# Parameters that several operations have.

_TEXT: Schema = {"type": "string", "minLength": 1, "maxLength": HEADER_CHARACTERS}
_FLAG = enum_schema(("0", "1"))


def path_parameter(name: str, description: str, schema: Schema | None = None) -> Parameter:
    """A part of the address."""
    return Parameter(name, description, PATH, schema or {"type": "string", "minLength": 1}, required=True)


def header_parameter(name: str, description: str, schema: Schema | None = None) -> Parameter:
    return Parameter(name, description, HEADER, schema or _TEXT)


def repeated(items: Schema, most: int) -> Schema:
    """A parameter that is given once for each value."""
    return {"type": "array", "items": items, "maxItems": most}


STREAM = path_parameter("stream", "The name of the stream", ref("StreamName"))
ID = path_parameter("id", "The id of the subscription")
QUERY_ID = path_parameter("id", "The id of the query")
NAME = path_parameter("name", "The name", ref("StreamName"))

AFTER = Parameter(
    "after",
    "Where to begin: a position, `earliest`, `now`, a time, or the IRI of an event",
    schema={"type": "string", "examples": ["earliest", "now", "2026-11-15T08:30:00Z"]},
)
LAST_EVENT_ID = header_parameter(
    "Last-Event-ID", "The same, as browsers say it when they come back; it goes before `after`"
)
FORMAT = Parameter("format", "The format, in place of `Accept`", schema={"type": "string"})
BUFFER = Parameter(
    "buffer",
    "For how many seconds messages may wait for others, under load",
    schema={"type": "number", "minimum": 0, "maximum": LINGER_SECONDS_MOST},
)
MODE = Parameter(
    "mode", "`poll` for one answer that ends, and not one without an end", schema=enum_schema(("stream", "poll"))
)
WAIT = Parameter(
    "wait",
    "How many seconds a poll waits for something to tell",
    schema={"type": "number", "minimum": 0, "maximum": POLL_SECONDS_MOST},
)
LIMIT = Parameter(
    "limit",
    "How many messages a poll tells at most",
    schema={"type": "integer", "minimum": 1, "maximum": HISTORY_EVENTS},
)
ACK = Parameter("ack", "`1` where the client acknowledges what it was told, over a WebSocket", schema=_FLAG)
WINDOW = Parameter(
    "window",
    "How many messages may be unacknowledged, over a WebSocket",
    schema={"type": "integer", "minimum": 1, "maximum": ACK_MESSAGES},
)
MOVED = Parameter("moved", "Said by who comes from another edge: ids are those of events", schema={"type": "string"})
RELAY = header_parameter("Relay-Id", "Said by a relay: who it is")

LISTENING = (AFTER, LAST_EVENT_ID, FORMAT, BUFFER, MODE, WAIT, LIMIT, ACK, WINDOW, RELAY)
"""How to be told, of whatever it is."""

SOURCE_ID = header_parameter("Source-Id", "Who says so; it holds for all events of the body")
APPLICATION_ID = header_parameter("Application-Id", "By which application")
TIMESTAMP = header_parameter("Timestamp", "When it happened", {"type": "string", "format": "date-time"})
EVENT_ID = header_parameter("Event-Id", "The id of the only event: an absolute IRI, or a UUID")
IDEMPOTENCY_KEY = header_parameter("Idempotency-Key", "By which the same publication is known when it comes again")
CONTENT_ENCODING = header_parameter(
    "Content-Encoding", "How the body is packed", enum_schema(("gzip", "deflate", "zstd", "identity"))
)

PAGE_SIZE = Parameter("limit", "How many at most", schema={"type": "integer", "minimum": 1, "maximum": PAGE_ENTRIES})
CURSOR = Parameter("cursor", "The `next` of the page before", schema={"anyOf": [ref(POSITION), {"const": "earliest"}]})
