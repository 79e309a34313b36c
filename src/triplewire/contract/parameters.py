"""Parameters that several operations have."""

from __future__ import annotations

from triplewire.config import limits
from triplewire.contract.operations import HEADER, PATH, Parameter
from triplewire.contract.schemas.forms import Schema, one_of, ref
from triplewire.contract.schemas.shared import POSITION

_TEXT: Schema = {"type": "string", "minLength": 1, "maxLength": limits.HEADER_CHARACTERS}
_FLAG = one_of(("0", "1"))


def path(name: str, description: str, schema: Schema | None = None) -> Parameter:
    """A part of the address."""
    return Parameter(name, description, PATH, schema or {"type": "string", "minLength": 1}, required=True)


def header(name: str, description: str, schema: Schema | None = None) -> Parameter:
    return Parameter(name, description, HEADER, schema or _TEXT)


def several(items: Schema, most: int) -> Schema:
    """A parameter that is given once for each value."""
    return {"type": "array", "items": items, "maxItems": most}


STREAM = path("stream", "The name of the stream", ref("StreamName"))
ID = path("id", "The id of the subscription")
QUERY_ID = path("id", "The id of the query")
NAME = path("name", "The name", ref("StreamName"))

AFTER = Parameter(
    "after",
    "Where to begin: a position, `earliest`, `now`, a time, or the IRI of an event",
    schema={"type": "string", "examples": ["earliest", "now", "2026-11-15T08:30:00Z"]},
)
LAST_EVENT_ID = header("Last-Event-ID", "The same, as browsers say it when they come back; it goes before `after`")
FORMAT = Parameter("format", "The format, in place of `Accept`", schema={"type": "string"})
BUFFER = Parameter(
    "buffer",
    "For how many seconds messages may wait for others, under load",
    schema={"type": "number", "minimum": 0, "maximum": limits.WINDOW_SECONDS_MOST},
)
MODE = Parameter(
    "mode", "`poll` for one answer that ends, and not one without an end", schema=one_of(("stream", "poll"))
)
WAIT = Parameter(
    "wait",
    "How many seconds a poll waits for something to tell",
    schema={"type": "number", "minimum": 0, "maximum": limits.POLL_SECONDS_MOST},
)
LIMIT = Parameter(
    "limit",
    "How many messages a poll tells at most",
    schema={"type": "integer", "minimum": 1, "maximum": limits.HISTORY_EVENTS},
)
ACK = Parameter("ack", "`1` where the client acknowledges what it was told, over a WebSocket", schema=_FLAG)
WINDOW = Parameter(
    "window",
    "How many messages may be unacknowledged, over a WebSocket",
    schema={"type": "integer", "minimum": 1, "maximum": limits.ACK_MESSAGES},
)
MOVED = Parameter("moved", "Said by who comes from another edge: ids are those of events", schema={"type": "string"})
RELAY = header("Relay-Id", "Said by a relay: who it is")

LISTENING = (AFTER, LAST_EVENT_ID, FORMAT, BUFFER, MODE, WAIT, LIMIT, ACK, WINDOW, RELAY)
"""How to be told, of whatever it is."""

SOURCE_ID = header("Source-Id", "Who says so; it holds for all events of the body")
APPLICATION_ID = header("Application-Id", "By which application")
TIMESTAMP = header("Timestamp", "When it happened", {"type": "string", "format": "date-time"})
EVENT_ID = header("Event-Id", "The id of the only event: an absolute IRI, or a UUID")
IDEMPOTENCY_KEY = header("Idempotency-Key", "By which the same publication is known when it comes again")
CONTENT_ENCODING = header("Content-Encoding", "How the body is packed", one_of(("gzip", "deflate", "zstd", "identity")))

PAGE_SIZE = Parameter("limit", "How many at most", schema={"type": "integer", "minimum": 1, "maximum": limits.PAGE})
CURSOR = Parameter("cursor", "The `next` of the page before", schema={"anyOf": [ref(POSITION), {"const": "earliest"}]})
