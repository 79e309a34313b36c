"""Operations: the route, verbs, parameters, body, responses and problems of a handler, declared once.

An operation is a value; a handler names the one that it serves, and `routes_of` makes the route:

    @serves(PUBLISH)
    async def publish(self, request): …

    def routes(self):
        return routes_of(self.publish)

The authentication middleware reads the verbs that a caller needs from it, and the OpenAPI and AsyncAPI documents are
generated from it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from itertools import pairwise
from typing import Any, Final, TypeVar

from aiohttp import web

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
JSON = "application/json"

_PATTERN = re.compile(r":[^{}]*(?:\{[^{}]*\}[^{}]*)*\}")
"""The regular expression of a path segment, which the documents leave out."""


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

    route: str
    """Method and path, such as `GET /streams/{stream}`; the path as the web framework has it."""
    id: str
    summary: str
    verbs: tuple[Verb, ...] = ()
    _: KW_ONLY
    description: str = ""
    takes: tuple[Parameter, ...] = ()
    """Parameters besides those in the path."""
    body: BodyContent | None = None
    answers: Mapping[int, BodyContent] = field(default_factory=dict)
    problems: tuple[int, ...] = ()
    """Statuses of problem documents, besides those of authentication and of any request."""
    sends: tuple[str, ...] = ()
    """Schemas of the messages that the edge sends, if the response is a channel."""
    receives: tuple[str, ...] = ()
    """Schemas of the messages that clients may send over the channel."""
    head: bool = True
    """Whether HEAD is answered where GET is. Channels never do."""

    @property
    def method(self) -> str:
        return self.route.partition(" ")[0]

    @property
    def path(self) -> str:
        """The path without regular expressions."""
        return _PATTERN.sub("}", self.route.partition(" ")[2])

    @property
    def stream(self) -> str | None:
        """The path parameter with the stream for which the verb is needed; administrators need it for all streams."""
        return "stream" if "{stream}" in self.route and Verb.ADMIN not in self.verbs else None

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        parts = (f"{before}/{part}" for before, part in pairwise(self.path.split("/")) if part.startswith("{"))
        return (*(_PATH_PARAMETERS[each] for each in parts), *self.takes)

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


def routes_of(*handlers: Callable[..., Any]) -> list[web.RouteDef]:
    """The routes of handlers. Each must serve an operation."""
    return [_route(each) for each in handlers]


def _route(handler: Callable[..., Any]) -> web.RouteDef:
    operation = operation_of(handler)
    assert operation is not None, f"{handler} serves no operation"
    method, _, path = operation.route.partition(" ")
    with_head = operation.head and not operation.is_channel
    return web.RouteDef(method, path, handler, {"allow_head": with_head} if method == "GET" else {})


def served_operations(routes: Iterable[web.RouteDef]) -> list[Operation]:
    """The operations that routes serve, in order of path and method."""
    found = (operation_of(each.handler) for each in routes)
    return sorted((each for each in found if each is not None), key=lambda each: (each.path, each.method))


def json_body(schema: str, description: str = "", headers: tuple[str, ...] = ()) -> BodyContent:
    return BodyContent({JSON: schema}, description, headers)


def ok(schema: str) -> dict[int, BodyContent]:
    """A response with a JSON object."""
    return {200: json_body(schema)}


TEXT: Schema = {"type": "string", "minLength": 1, "maxLength": HEADER_CHARACTERS}
FLAG = enum_schema(("0", "1"))


def header_parameter(name: str, description: str, schema: Schema | None = None) -> Parameter:
    return Parameter(name, description, HEADER, schema or TEXT)


def repeated(items: Schema, most: int) -> Schema:
    """The schema of a parameter that may be repeated."""
    return {"type": "array", "items": items, "maxItems": most}


def _in_path(name: str, description: str, schema: Schema | None = None) -> Parameter:
    return Parameter(name, description, PATH, schema or {"type": "string", "minLength": 1}, required=True)


_NAME = _in_path("name", "The name", ref("StreamName"))
_NUMBER = {"type": "integer", "minimum": 0}
_PATH_PARAMETERS = {
    "streams/{stream}": _in_path("stream", "The name of the stream", ref("StreamName")),
    "ldes/{level}": _in_path("level", "The level above the pages", {**_NUMBER, "maximum": 99}),
    "{level}/{number}": _in_path("number", "The number of the node, from 0", {**_NUMBER, "maximum": 10**15 - 1}),
    "subscriptions/{id}": _in_path("id", "The id of the subscription"),
    "queries/{id}": _in_path("id", "The id of the query"),
    "templates/{name}": _NAME,
    "ontologies/{name}": _NAME,
    "tokens/{id}": _in_path(
        "id", "The id of the token, which is not secret", {"type": "string", "pattern": "^[a-z0-9]{10}$"}
    ),
    "repeaters/{id}": _in_path("id", "The id of the relay", {"type": "string", "pattern": "^[A-Za-z0-9-]{1,64}$"}),
    "events/{id}": _in_path("id", "The id of the event, percent-encoded", {"type": "string", "format": "iri"}),
    "erasures/{id}": _in_path("id", "The id of the receipt"),
}
"""Parameters in paths, by the segments that they follow."""

FORMAT = Parameter("format", "The format, in place of `Accept`", schema={"type": "string"})
PAGE_SIZE = Parameter(
    "limit", "Entries of the page, at most", schema={"type": "integer", "minimum": 1, "maximum": PAGE_ENTRIES}
)
CURSOR = Parameter("cursor", "The `next` of the page before", schema={"anyOf": [ref(POSITION), {"const": "earliest"}]})
