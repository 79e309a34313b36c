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
"""The longest wait of a poll."""

ACK_MESSAGES: Final = 256
"""Unacknowledged messages of a WebSocket whose client acknowledges."""

LINGER_SECONDS_MOST: Final = 60.0
"""The longest linger time that a client may request."""


Handler = TypeVar("Handler", bound=Callable[..., Any])

PATH = "path"
QUERY = "query"
HEADER = "header"


@dataclass(frozen=True)
class Parameter:
    """A parameter in the path, the query or a header."""

    name: str
    description: str
    where: str = QUERY
    schema: Mapping[str, Any] = field(default_factory=lambda: {"type": "string"})
    required: bool = False


@dataclass(frozen=True)
class BodyContent:
    """A body of a request or response, by media type, each with the name of a schema or none."""

    types: Mapping[str, str | None] = field(default_factory=dict)
    description: str = ""
    headers: tuple[str, ...] = ()
    """Headers of a response."""


@dataclass(frozen=True)
class Operation:
    """An operation of the API. A principal needs one of the verbs; without verbs everyone may use it."""

    id: str
    summary: str
    verbs: tuple[Verb, ...] = ()
    stream: str | None = None
    """The path parameter with the stream for which the verb is needed."""
    description: str = ""
    parameters: tuple[Parameter, ...] = ()
    body: BodyContent | None = None
    answers: Mapping[int, BodyContent] = field(default_factory=dict)
    problems: tuple[int, ...] = ()
    """Statuses of problem documents, besides those of authentication and of any request."""
    sends: tuple[str, ...] = ()
    """Schemas of the messages that the edge sends, if the response is a channel."""
    receives: tuple[str, ...] = ()
    """Schemas of the messages that clients may send over the channel."""

    @property
    def is_channel(self) -> bool:
        """Whether the response does not end."""
        return bool(self.sends or self.receives)


def serves(operation: Operation) -> Callable[[Handler], Handler]:
    """Declare the operation of a handler."""

    def mark(handler: Handler) -> Handler:
        handler.operation = operation  # type: ignore[attr-defined]
        return handler

    return mark


def operation_of(handler: object) -> Operation | None:
    """The operation of a handler; None for handlers of the framework."""
    found = getattr(handler, "operation", None)
    return found if isinstance(found, Operation) else None


_TEXT: Schema = {"type": "string", "minLength": 1, "maxLength": HEADER_CHARACTERS}
_FLAG = enum_schema(("0", "1"))


def path_parameter(name: str, description: str, schema: Schema | None = None) -> Parameter:
    return Parameter(name, description, PATH, schema or {"type": "string", "minLength": 1}, required=True)


def header_parameter(name: str, description: str, schema: Schema | None = None) -> Parameter:
    return Parameter(name, description, HEADER, schema or _TEXT)


def repeated(items: Schema, most: int) -> Schema:
    """The schema of a parameter that may be repeated."""
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
    "Last-Event-ID", "The same, as browsers send it when they reconnect; it takes precedence over `after`"
)
FORMAT = Parameter("format", "The format, in place of `Accept`", schema={"type": "string"})
LINGER = Parameter(
    "linger",
    "Seconds that messages may wait to be sent together, under load",
    schema={"type": "number", "minimum": 0, "maximum": LINGER_SECONDS_MOST},
)
MODE = Parameter("mode", "`poll` for a response that ends", schema=enum_schema(("stream", "poll")))
WAIT = Parameter(
    "wait",
    "Seconds that a poll waits for messages",
    schema={"type": "number", "minimum": 0, "maximum": POLL_SECONDS_MOST},
)
LIMIT = Parameter(
    "limit",
    "Messages of one poll, at most",
    schema={"type": "integer", "minimum": 1, "maximum": HISTORY_EVENTS},
)
ACK = Parameter("ack", "`1` if the client acknowledges messages, over a WebSocket", schema=_FLAG)
WINDOW = Parameter(
    "window",
    "How many messages may be unacknowledged, over a WebSocket",
    schema={"type": "integer", "minimum": 1, "maximum": ACK_MESSAGES},
)
MOVED = Parameter(
    "moved", "Set by clients that come from another edge: ids are those of events", schema={"type": "string"}
)
RELAY = header_parameter("Relay-Id", "The id of a relay")

LISTENING = (AFTER, LAST_EVENT_ID, FORMAT, LINGER, MODE, WAIT, LIMIT, ACK, WINDOW, RELAY)
"""Parameters of every subscription to messages."""

SOURCE_ID = header_parameter("Source-Id", "The source of all events of the body")
APPLICATION_ID = header_parameter("Application-Id", "The application of all events of the body")
TIMESTAMP = header_parameter(
    "Timestamp", "The time of all events of the body", {"type": "string", "format": "date-time"}
)
EVENT_ID = header_parameter("Event-Id", "The id of the only event: an absolute IRI, or a UUID")
IDEMPOTENCY_KEY = header_parameter("Idempotency-Key", "The key by which a repeated publication is recognized")
CONTENT_ENCODING = header_parameter(
    "Content-Encoding", "The compression of the body", enum_schema(("gzip", "deflate", "zstd", "identity"))
)

PAGE_SIZE = Parameter(
    "limit", "Entries of the page, at most", schema={"type": "integer", "minimum": 1, "maximum": PAGE_ENTRIES}
)
CURSOR = Parameter("cursor", "The `next` of the page before", schema={"anyOf": [ref(POSITION), {"const": "earliest"}]})
