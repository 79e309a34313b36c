"""Operations on streams and notifications: publish, subscribe, read history, discover; with their dialects Mercure,
LDES and WebSub.
"""

from __future__ import annotations

from typing import Final

from triplewire.http.openapi import operations
from triplewire.http.openapi.operations import BodyContent, Operation, Parameter, header_parameter, json_body, repeated
from triplewire.http.openapi.schemas import CLIENT_MESSAGE_SCHEMAS, POSITION, enum_schema, ref
from triplewire.rdf import SYNTAXES
from triplewire.rdf.envelopes import ENVELOPES
from triplewire.rdf.messages import MESSAGE_SYNTAXES, message_media_type
from triplewire.security import Verb

STREAM_FILTER_VALUES: Final = 64
"""Sources, applications, vocabularies or queries in the filter of one subscriber. Each is a comparison with every
event."""

CONNECTION_SOURCES: Final = 256
"""Subscriptions, queries and streams of one connection. Each may hold a step of its history while it waits for
others."""


STREAM_FORMATS: dict[str, str | None] = {
    "text/event-stream": None,
    "application/x-ndjson": None,
    "application/n-quads": None,
    "application/trig": None,
    "application/ztreamy-stream": None,
    "application/cloudevents+json": None,
    "application/cloudevents-batch+json": None,
    "application/x-jelly-rdf": None,
    **{message_media_type(each): None for each in MESSAGE_SYNTAXES},
}
"""Media types of messages."""

_JSON = operations.JSON
_TEXT = operations.TEXT
_CONSUME = (Verb.CONSUME,)
_PUBLISH = (Verb.PUBLISH,)
_SUBSCRIBE = (Verb.SUBSCRIBE,)
_RESUMABLE = ("Position", "Link")
_STREAM_ANSWERS = {
    200: BodyContent(STREAM_FORMATS, "Messages without end, or those of a poll", _RESUMABLE),
    204: BodyContent(description="A poll without messages", headers=_RESUMABLE),
    101: BodyContent(description="A WebSocket; each message is a JSON object"),
}
_NOTICES = ("PositionMessage", "GapMessage", "SlowMessage", "ClosingMessage", "ProblemMessage")
_LISTENING = (
    Parameter(
        "after",
        "Where to begin: a position, `earliest`, `now`, a time, or the IRI of an event",
        schema={"type": "string", "examples": ["earliest", "now", "2026-11-15T08:30:00Z"]},
    ),
    header_parameter(
        "Last-Event-ID", "The same, as browsers send it when they reconnect; it takes precedence over `after`"
    ),
    operations.FORMAT,
    Parameter(
        "linger",
        "Seconds that messages may wait to be sent together, under load",
        schema={"type": "number", "minimum": 0, "maximum": operations.LINGER_SECONDS_MOST},
    ),
    Parameter("mode", "`poll` for a response that ends", schema=enum_schema(("stream", "poll"))),
    Parameter(
        "wait",
        "Seconds that a poll waits for messages",
        schema={"type": "number", "minimum": 0, "maximum": operations.POLL_SECONDS_MOST},
    ),
    Parameter(
        "limit",
        "Messages of one poll, at most",
        schema={"type": "integer", "minimum": 1, "maximum": operations.HISTORY_EVENTS},
    ),
    Parameter("ack", "`1` if the client acknowledges messages, over a WebSocket", schema=operations.FLAG),
    Parameter(
        "window",
        "How many messages may be unacknowledged, over a WebSocket",
        schema={"type": "integer", "minimum": 1, "maximum": operations.ACK_MESSAGES},
    ),
    header_parameter("Relay-Id", "The id of a relay"),
)
"""Parameters of every subscription to messages."""
_SELECTED = repeated(_TEXT, STREAM_FILTER_VALUES)
_FILTERS = (
    Parameter("source", "Only events of these sources", schema=_SELECTED),
    Parameter("application", "Only events of these applications", schema=_SELECTED),
    Parameter("vocabulary", "Only events with a predicate or class whose IRI has this prefix", schema=_SELECTED),
    Parameter(
        "ask",
        "Only events for which these ASK queries are true",
        schema=repeated({"type": "string"}, STREAM_FILTER_VALUES),
    ),
    Parameter("filter", "Only events that pass a plugin filter; `filter.…` are its parameters", schema=_TEXT),
)
_MOVED = Parameter("moved", "Set by clients that come from another edge: ids are those of events")

CONSUME = Operation(
    "GET /streams/{stream}",
    "consume",
    "Subscribe to a stream",
    _CONSUME,
    description="From a position in history or from now on, without gaps and duplicates.",
    takes=(*_LISTENING, _MOVED, *_FILTERS),
    answers={
        **_STREAM_ANSWERS,
        307: BodyContent(description="A repeater has the stream, and more capacity", headers=("Location", "Link")),
    },
    problems=(400, 403, 404, 406, 422, 503),
    sends=("EventMessage", "UndecidedMessage", "MoveMessage", "FailedMessage", *_NOTICES),
    receives=("AcknowledgeMessage",),
)
NOTIFICATIONS = Operation(
    "GET /subscriptions/{id}/notifications",
    "deliver",
    "Receive the notifications of a subscription",
    _SUBSCRIBE,
    description="Without a start, all retained notifications since the subscription was created are sent.",
    takes=_LISTENING,
    answers=_STREAM_ANSWERS,
    problems=(400, 403, 404, 406, 503),
    sends=("NotificationMessage", "EndMessage", *_NOTICES),
    receives=("AcknowledgeMessage",),
)
QUERY_ANSWERS = Operation(
    "GET /queries/{id}/answers",
    "answers",
    "Receive the answers of a continuous query",
    _SUBSCRIBE,
    description="Without a start, all retained answers since the query was registered are sent. Answers of "
    "windows and of CONSTRUCT are events, all others notifications.",
    takes=_LISTENING,
    answers=_STREAM_ANSWERS,
    problems=(400, 403, 404, 406, 503),
    sends=("AnswerMessage", "EventMessage", "EndMessage", *_NOTICES),
    receives=("AcknowledgeMessage",),
)
GATHER = Operation(
    "GET /notifications",
    "gather",
    "Receive many subscriptions, queries and streams over one connection",
    (Verb.SUBSCRIBE, Verb.CONSUME),
    description="In the order of events; a WebSocket may add and remove some later.",
    takes=(
        Parameter("subscription", "The ids of subscriptions", schema=repeated(_TEXT, CONNECTION_SOURCES)),
        Parameter("query", "The ids of continuous queries", schema=repeated(_TEXT, CONNECTION_SOURCES)),
        Parameter("stream", "The names of streams", schema=repeated(ref("StreamName"), CONNECTION_SOURCES)),
        *_LISTENING,
    ),
    answers=_STREAM_ANSWERS,
    problems=(400, 403, 404, 406, 503),
    sends=("EventMessage", "NotificationMessage", "AnswerMessage", "EndMessage", "LeftMessage", *_NOTICES),
    receives=tuple(CLIENT_MESSAGE_SCHEMAS),
)
READ = Operation(
    "GET /events",
    "readEvents",
    "Read a page of the log",
    _CONSUME,
    description="Events at positions p with `after < p <= through`. The metadata of the schema have the position "
    "up to which that is complete.",
    takes=(
        Parameter("stream", "Only this stream", schema=ref("StreamName")),
        Parameter("after", "After this position", schema=operations.CURSOR.schema),
        Parameter("through", "Up to this position", schema=ref(POSITION)),
    ),
    answers={200: BodyContent({"application/vnd.apache.arrow.stream": None}, "An Arrow stream")},
    problems=(400,),
    head=False,
)


_TYPES = {each.media_type: None for each in SYNTAXES}
_ITEMS = {each.media_type: None for each in ENVELOPES}
_DATASETS = {each.media_type: None for each in SYNTAXES if each.graphs}
_RECEIPT = json_body("Receipt", "All accepted events are durable")
_HEADERS = (
    header_parameter("Source-Id", "The source of all events of the body"),
    header_parameter("Application-Id", "The application of all events of the body"),
    header_parameter("Timestamp", "The time of all events of the body", {"type": "string", "format": "date-time"}),
)
_TRANSFER = (
    header_parameter("Idempotency-Key", "The key by which a repeated publication is recognized"),
    header_parameter(
        "Content-Encoding", "The compression of the body", enum_schema(("gzip", "deflate", "zstd", "identity"))
    ),
)
_REFUSED = (400, 409, 413, 415, 503, 507)

PUBLISH = Operation(
    "POST /streams/{stream}",
    "publish",
    "Publish events to a stream",
    _PUBLISH,
    description="A named graph is an event; triples outside of a graph are one. Items, and events of a body that has "
    "several, are accepted or refused one by one. With `?ack=each` the body need not end, and each item is "
    "acknowledged by a line of JSON as soon as it is durable.",
    takes=(
        Parameter("ack", "`each`: acknowledge items one by one, while the body is sent"),
        header_parameter("Event-Id", "The id of the only event: an absolute IRI, or a UUID"),
        *_HEADERS,
        *_TRANSFER,
    ),
    body=BodyContent({**_TYPES, **_ITEMS}, "RDF, or items"),
    answers={
        201: _RECEIPT,
        200: BodyContent({"application/x-ndjson": "Acknowledgement"}, "With `?ack=each`: a line for each item"),
    },
    problems=_REFUSED,
)
PUBLISH_BY_SOCKET = Operation(
    "GET /streams/{stream}/publish",
    "publishBySocket",
    "Publish to a stream over a WebSocket",
    _PUBLISH,
    description="Each message is a body of the type in `?type=`, and is acknowledged by an object of JSON.",
    takes=(Parameter("type", "The media type of messages; by default lines of JSON"), *_HEADERS),
    answers={101: BodyContent(description="A WebSocket")},
    problems=(400, 403, 503),
    sends=("Acknowledgement",),
    receives=("Item",),
)
PUBLISH_ADDRESSED = Operation(
    "POST /events",
    "publishAddressed",
    "Publish events that state their streams themselves",
    _PUBLISH,
    description="By triples about an event's id outside of its graph. All are stored, or none.",
    takes=_TRANSFER,
    body=BodyContent(_DATASETS, "RDF with named graphs"),
    answers={201: _RECEIPT},
    problems=_REFUSED,
)


_TRIPLES = ("application/ld+json", "text/turtle", "application/n-triples", "application/rdf+xml")
RDF_TYPES: dict[str, str | None] = dict.fromkeys(("application/trig", "application/n-quads", *_TRIPLES))
"""Media types of RDF documents."""

_CACHED = ("ETag", "Cache-Control", "Link")


def _cacheable(types: dict[str, str | None], description: str = "") -> dict[int, BodyContent]:
    same = BodyContent(description="Not modified", headers=_CACHED)
    return {200: BodyContent(types, description, _CACHED), 304: same}


_LDES_ANSWERS = _cacheable(RDF_TYPES, "A node, in the words of TREE and LDES")

LDES_VIEW = Operation(
    "GET /streams/{stream}/ldes",
    "ldesView",
    "Get the root of the history of a stream",
    _CONSUME,
    description="The first node of a Linked Data Event Stream: its properties, and where its pages are.",
    answers=_LDES_ANSWERS,
    problems=(400, 404, 406),
)
LDES_NODE = Operation(
    r"GET /streams/{stream}/ldes/{level:\d{1,2}}/{number:\d{1,15}}",
    "ldesNode",
    "Get a node of the history of a stream",
    _CONSUME,
    description="Level 0 has the pages with events; nodes above link to them. A full page never changes.",
    answers=_LDES_ANSWERS,
    problems=(400, 404, 406, 410),
)
STREAMS = Operation(
    "GET /streams",
    "listStreams",
    "List streams",
    _CONSUME,
    description="The visible streams, in pages: as JSON, with their traffic, or as DCAT.",
    takes=(Parameter("cursor", "The stream after which the page begins", schema=ref("StreamName")),),
    answers=_cacheable({_JSON: "Streams", **RDF_TYPES}),
    problems=(406,),
)
ABOUT = Operation(
    "GET /streams/{stream}/about",
    "aboutStream",
    "Get the profile of a stream",
    _CONSUME,
    answers=_cacheable({_JSON: "StreamProfile", **RDF_TYPES}),
    problems=(400, 404, 406),
)
PUT_ABOUT = Operation(
    "PUT /streams/{stream}/about",
    "putAbout",
    "Set the description of a stream",
    (Verb.ADMIN,),
    body=json_body("StreamDescription"),
    answers=operations.ok("StreamDescription"),
    problems=(400, 422, 507),
)
VOID = Operation(
    "GET /.well-known/void",
    "void",
    "Get the VoID description of all events",
    (Verb.QUERY, Verb.CONSUME),
    description="Counts are for principals that see everything.",
    answers=_cacheable(RDF_TYPES),
    problems=(406,),
)
API_CATALOG = Operation(
    "GET /.well-known/api-catalog",
    "apiCatalog",
    "Get the API catalog",
    description="A set of links (RFC 9727).",
    answers={200: BodyContent({"application/linkset+json": None}, headers=("Link",))},
)


_FORM = "application/x-www-form-urlencoded"

WEBSUB = Operation(
    "POST /websub",
    "websub",
    "Subscribe to a stream, or unsubscribe, by WebSub",
    _CONSUME,
    description="The response says that the request is valid. Then the intent of the callback is verified.",
    body=BodyContent({_FORM: "HubRequest"}),
    answers={202: BodyContent(description="The intent will be verified")},
    problems=(400, 413, 415, 503),
)
DISCOVER_HUB = Operation(
    "HEAD /streams/{stream}",
    "discover",
    "Discover the hub of a stream",
    _CONSUME,
    answers={200: BodyContent(description="The hub and the topic, in headers", headers=("Link",))},
    problems=(400,),
)
MERCURE_SUBSCRIBE = Operation(
    "GET /.well-known/mercure",
    "mercureSubscribe",
    "Subscribe to streams by Mercure",
    _CONSUME,
    takes=(
        Parameter(
            "topic",
            "Addresses of streams, such as `/streams/home` or `/streams/city-{id}`, or `*`",
            schema=repeated({"type": "string"}, CONNECTION_SOURCES),
            required=True,
        ),
        Parameter("lastEventID", "The id after which to begin; `earliest` for all retained updates"),
        Parameter("authorization", "A token, for browsers"),
        header_parameter("Last-Event-ID", "The same as lastEventID; it takes precedence"),
    ),
    answers={200: BodyContent({"text/event-stream": None}, "Updates without end")},
    problems=(400, 503),
    sends=("EventMessage", *_NOTICES),
)
MERCURE_PUBLISH = Operation(
    "POST /.well-known/mercure",
    "mercurePublish",
    "Publish an update by Mercure",
    _PUBLISH,
    description="`topic` and `data` are required; `id`, `type`, `retry` and `private` are optional.",
    body=BodyContent({_FORM: None}),
    answers={200: BodyContent({"text/plain": None}, "The id from which to resume")},
    problems=(400, 409, 413, 415, 503, 507),
)
