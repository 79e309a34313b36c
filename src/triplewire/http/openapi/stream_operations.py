"""Operations on streams: publish, subscribe, read history, discover; with their dialects Mercure, LDES and WebSub."""

from __future__ import annotations

from typing import Final

from triplewire.http.openapi import operations as with_
from triplewire.http.openapi.operations import BodyContent, Operation, Parameter
from triplewire.http.openapi.schemas import POSITION, ref
from triplewire.rdf import SYNTAXES
from triplewire.rdf.envelopes import ENVELOPES
from triplewire.rdf.messages import MESSAGE_SYNTAXES, message_media_type
from triplewire.rdf.terms import HEADER_CHARACTERS
from triplewire.security import Verb
from triplewire.storage.registry.ports import PAGE_ENTRIES

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

STREAM_ANSWERS = {
    200: BodyContent(STREAM_FORMATS, "Messages without end, or those of a poll", headers=("Position", "Link")),
    204: BodyContent(description="A poll without messages", headers=("Position", "Link")),
    101: BodyContent(description="A WebSocket; each message is a JSON object"),
}
NOTICES = ("PositionMessage", "GapMessage", "SlowMessage", "ClosingMessage", "ProblemMessage")
_TEXT = {"type": "string", "minLength": 1, "maxLength": HEADER_CHARACTERS}
_FILTERS = (
    Parameter("source", "Only events of these sources", schema=with_.repeated(_TEXT, STREAM_FILTER_VALUES)),
    Parameter("application", "Only events of these applications", schema=with_.repeated(_TEXT, STREAM_FILTER_VALUES)),
    Parameter(
        "vocabulary",
        "Only events with a predicate or class whose IRI has this prefix",
        schema=with_.repeated(_TEXT, STREAM_FILTER_VALUES),
    ),
    Parameter(
        "ask",
        "Only events for which these ASK queries are true",
        schema=with_.repeated({"type": "string"}, STREAM_FILTER_VALUES),
    ),
    Parameter("filter", "Only events that pass a plugin filter; `filter.…` are its parameters", schema=_TEXT),
)

CONSUME = Operation(
    "consume",
    "Subscribe to a stream",
    (Verb.CONSUME,),
    "stream",
    description="From a position in history or from now on, without gaps and duplicates.",
    parameters=(with_.STREAM, *with_.LISTENING, with_.MOVED, *_FILTERS),
    answers={
        **STREAM_ANSWERS,
        307: BodyContent(description="A repeater has the stream, and more capacity", headers=("Location", "Link")),
    },
    problems=(400, 403, 404, 406, 422, 503),
    sends=("EventMessage", "UndecidedMessage", "MoveMessage", "FailedMessage", *NOTICES),
    receives=("AcknowledgeMessage",),
)
GATHER = Operation(
    "gather",
    "Receive many subscriptions, queries and streams over one connection",
    (Verb.SUBSCRIBE, Verb.CONSUME),
    description="In the order of events; a WebSocket may add and remove some later.",
    parameters=(
        Parameter("subscription", "The ids of subscriptions", schema=with_.repeated(_TEXT, CONNECTION_SOURCES)),
        Parameter("query", "The ids of continuous queries", schema=with_.repeated(_TEXT, CONNECTION_SOURCES)),
        Parameter("stream", "The names of streams", schema=with_.repeated(ref("StreamName"), CONNECTION_SOURCES)),
        *with_.LISTENING,
    ),
    answers=STREAM_ANSWERS,
    problems=(400, 403, 404, 406, 503),
    sends=("EventMessage", "NotificationMessage", "AnswerMessage", "EndMessage", "LeftMessage", *NOTICES),
    receives=(
        "AcknowledgeMessage",
        "SubscribeMessage",
        "UnsubscribeMessage",
        "StreamMessage",
        "UnstreamMessage",
        "QueryMessage",
        "UnqueryMessage",
    ),
)
READ = Operation(
    "readEvents",
    "Read a page of the log",
    (Verb.CONSUME,),
    description="Events at positions p with `after < p <= through`. The metadata of the schema have the position "
    "up to which that is complete.",
    parameters=(
        Parameter("stream", "Only this stream", schema=ref("StreamName")),
        Parameter("after", "After this position", schema=with_.CURSOR.schema),
        Parameter("through", "Up to this position", schema=ref(POSITION)),
    ),
    answers={200: BodyContent({"application/vnd.apache.arrow.stream": None}, "An Arrow stream")},
    problems=(400,),
)


NDJSON = "application/x-ndjson"
_TYPES = {each.media_type: None for each in SYNTAXES}
_ITEMS = {each.media_type: None for each in ENVELOPES}
_DATASETS = {each.media_type: None for each in SYNTAXES if each.graphs}
_RECEIPT = BodyContent({"application/json": "Receipt"}, "All accepted events are durable")
_HEADERS = (with_.SOURCE_ID, with_.APPLICATION_ID, with_.TIMESTAMP)
_REFUSED = (400, 409, 413, 415, 503, 507)

PUBLISH = Operation(
    "publish",
    "Publish events to a stream",
    (Verb.PUBLISH,),
    "stream",
    description="A named graph is an event; triples outside of a graph are one. Items, and events of a body that has "
    "several, are accepted or refused one by one. With `?ack=each` the body need not end, and each item is "
    "acknowledged by a line of JSON as soon as it is durable.",
    parameters=(
        with_.STREAM,
        Parameter("ack", "`each`: acknowledge items one by one, while the body is sent", schema={"type": "string"}),
        with_.EVENT_ID,
        *_HEADERS,
        with_.IDEMPOTENCY_KEY,
        with_.CONTENT_ENCODING,
    ),
    body=BodyContent({**_TYPES, **_ITEMS}, "RDF, or items"),
    answers={201: _RECEIPT, 200: BodyContent({NDJSON: "Acknowledgement"}, "With `?ack=each`: a line for each item")},
    problems=_REFUSED,
)
PUBLISH_BY_SOCKET = Operation(
    "publishBySocket",
    "Publish to a stream over a WebSocket",
    (Verb.PUBLISH,),
    "stream",
    description="Each message is a body of the type in `?type=`, and is acknowledged by an object of JSON.",
    parameters=(
        with_.STREAM,
        Parameter("type", "The media type of messages; by default lines of JSON"),
        *_HEADERS,
    ),
    answers={101: BodyContent(description="A WebSocket")},
    problems=(400, 403, 503),
    sends=("Acknowledgement",),
    receives=("Item",),
)
PUBLISH_ADDRESSED = Operation(
    "publishAddressed",
    "Publish events that state their streams themselves",
    (Verb.PUBLISH,),
    description="By triples about an event's id outside of its graph. All are stored, or none.",
    parameters=(with_.IDEMPOTENCY_KEY, with_.CONTENT_ENCODING),
    body=BodyContent(_DATASETS, "RDF with named graphs"),
    answers={201: _RECEIPT},
    problems=_REFUSED,
)


RDF_TYPES: dict[str, str | None] = {
    "application/trig": None,
    "application/n-quads": None,
    "application/ld+json": None,
    "text/turtle": None,
    "application/n-triples": None,
    "application/rdf+xml": None,
}
"""Media types of RDF documents."""

_NUMBER = {"type": "integer", "minimum": 0}
_CACHED = ("ETag", "Cache-Control", "Link")
_LDES_ANSWERS = {
    200: BodyContent(RDF_TYPES, "A node, in the words of TREE and LDES", headers=_CACHED),
    304: BodyContent(description="Not modified", headers=_CACHED),
}

LDES_VIEW = Operation(
    "ldesView",
    "Get the root of the history of a stream",
    (Verb.CONSUME,),
    "stream",
    description="The first node of a Linked Data Event Stream: its properties, and where its pages are.",
    parameters=(with_.STREAM,),
    answers=_LDES_ANSWERS,
    problems=(400, 404, 406),
)
LDES_NODE = Operation(
    "ldesNode",
    "Get a node of the history of a stream",
    (Verb.CONSUME,),
    "stream",
    description="Level 0 has the pages with events; nodes above link to them. A full page never changes.",
    parameters=(
        with_.STREAM,
        with_.path_parameter("level", "The level above the pages", {**_NUMBER, "maximum": 99}),
        with_.path_parameter("number", "The number of the node, from 0", {**_NUMBER, "maximum": 10**15 - 1}),
    ),
    answers=_LDES_ANSWERS,
    problems=(400, 404, 406, 410),
)


JSON = "application/json"
_SAME = {304: BodyContent(description="Not modified", headers=_CACHED)}

STREAMS = Operation(
    "listStreams",
    "List streams",
    (Verb.CONSUME,),
    description="The visible streams, in pages: as JSON, with their traffic, or as DCAT.",
    parameters=(Parameter("cursor", "The stream after which the page begins", schema=ref("StreamName")),),
    answers={200: BodyContent({JSON: "Streams", **RDF_TYPES}, headers=_CACHED), **_SAME},
    problems=(406,),
)
ABOUT = Operation(
    "aboutStream",
    "Get the profile of a stream",
    (Verb.CONSUME,),
    "stream",
    parameters=(with_.STREAM,),
    answers={200: BodyContent({JSON: "StreamProfile", **RDF_TYPES}, headers=_CACHED), **_SAME},
    problems=(400, 404, 406),
)
PUT_ABOUT = Operation(
    "putAbout",
    "Set the description of a stream",
    (Verb.ADMIN,),
    parameters=(with_.STREAM,),
    body=BodyContent({JSON: "StreamDescription"}),
    answers={200: BodyContent({JSON: "StreamDescription"})},
    problems=(400, 422, 507),
)
VOID = Operation(
    "void",
    "Get the VoID description of all events",
    (Verb.QUERY, Verb.CONSUME),
    description="Counts are for principals that see everything.",
    answers={200: BodyContent(RDF_TYPES, headers=_CACHED), **_SAME},
    problems=(406,),
)
API_CATALOG = Operation(
    "apiCatalog",
    "Get the API catalog",
    description="A set of links (RFC 9727).",
    answers={200: BodyContent({"application/linkset+json": None}, headers=("Link",))},
)


FORM = "application/x-www-form-urlencoded"
_POSITION = Parameter(
    "position",
    "Positions of dead letters; by default all",
    schema=with_.repeated(ref(POSITION), PAGE_ENTRIES),
)
_SEE = (Verb.SUBSCRIBE, Verb.ADMIN)

HOOKS = Operation(
    "listHooks",
    "List webhooks and their progress",
    (Verb.ADMIN,),
    parameters=(with_.PAGE_SIZE, with_.CURSOR),
    answers={200: BodyContent({JSON: "WebhookPage"})},
    problems=(400,),
)
DEAD_LETTERS = Operation(
    "listDeadLetters",
    "List dead letters of a webhook",
    _SEE,
    parameters=(with_.ID, with_.PAGE_SIZE, with_.CURSOR),
    answers={200: BodyContent({JSON: "DeadLetterPage"})},
    problems=(400, 404),
)
REPLAY_DEAD_LETTERS = Operation(
    "replayDeadLetters",
    "Deliver dead letters again",
    _SEE,
    description="All, or those in the body. Each is tried once; those that are not accepted stay.",
    parameters=(with_.ID,),
    body=BodyContent({JSON: "Positions"}, "Their positions; by default all"),
    answers={202: BodyContent({JSON: "Replay"}, "Accepted")},
    problems=(400, 404, 409, 413, 415, 422, 507),
)
DROP_DEAD_LETTERS = Operation(
    "dropDeadLetters",
    "Delete dead letters",
    _SEE,
    description="All, or those at the given positions.",
    parameters=(with_.ID, _POSITION),
    answers={204: BodyContent(description="Deleted")},
    problems=(400, 404, 507),
)
WEBSUB = Operation(
    "websub",
    "Subscribe to a stream, or unsubscribe, by WebSub",
    (Verb.CONSUME,),
    description="The response says that the request is valid. Then the intent of the callback is verified.",
    body=BodyContent({FORM: "HubRequest"}),
    answers={202: BodyContent(description="The intent will be verified")},
    problems=(400, 413, 415, 503),
)
DISCOVER_HUB = Operation(
    "discover",
    "Discover the hub of a stream",
    (Verb.CONSUME,),
    "stream",
    parameters=(with_.STREAM,),
    answers={200: BodyContent(description="The hub and the topic, in headers", headers=("Link",))},
    problems=(400,),
)


MERCURE_SUBSCRIBE = Operation(
    "mercureSubscribe",
    "Subscribe to streams by Mercure",
    (Verb.CONSUME,),
    parameters=(
        Parameter(
            "topic",
            "Addresses of streams, such as `/streams/home` or `/streams/city-{id}`, or `*`",
            schema=with_.repeated({"type": "string"}, CONNECTION_SOURCES),
            required=True,
        ),
        Parameter("lastEventID", "The id after which to begin; `earliest` for all retained updates"),
        Parameter("authorization", "A token, for browsers"),
        with_.header_parameter("Last-Event-ID", "The same as lastEventID; it takes precedence"),
    ),
    answers={200: BodyContent({"text/event-stream": None}, "Updates without end")},
    problems=(400, 503),
    sends=("EventMessage", *NOTICES),
)
MERCURE_PUBLISH = Operation(
    "mercurePublish",
    "Publish an update by Mercure",
    (Verb.PUBLISH,),
    description="`topic` and `data` are required; `id`, `type`, `retry` and `private` are optional.",
    body=BodyContent({"application/x-www-form-urlencoded": None}),
    answers={200: BodyContent({"text/plain": None}, "The id from which to resume")},
    problems=(400, 409, 413, 415, 503, 507),
)
