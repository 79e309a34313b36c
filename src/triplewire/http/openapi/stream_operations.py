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
"""Sources, applications, vocabularies or queries that one listener to a stream lists. Each is a comparison with every
event."""

CONNECTION_SOURCES: Final = 256
"""Subscriptions and streams that one connection listens to. Each may hold a step of its history, while others that are
behind are waited for."""


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
"""In which clients are told."""

STREAM_ANSWERS = {
    200: BodyContent(STREAM_FORMATS, "Messages, without an end; or those of a poll", headers=("Position", "Link")),
    204: BodyContent(description="A poll that waited in vain", headers=("Position", "Link")),
    101: BodyContent(description="From here on it is a WebSocket; each message is a text with an object of JSON"),
}
NOTICES = ("PositionMessage", "GapMessage", "SlowMessage", "ClosingMessage", "ProblemMessage")
_TEXT = {"type": "string", "minLength": 1, "maxLength": HEADER_CHARACTERS}
_SIEVES = (
    Parameter("source", "Only events of these sources", schema=with_.repeated(_TEXT, STREAM_FILTER_VALUES)),
    Parameter("application", "Only events of these applications", schema=with_.repeated(_TEXT, STREAM_FILTER_VALUES)),
    Parameter(
        "vocabulary",
        "Only events in which the IRI of a predicate or class begins so",
        schema=with_.repeated(_TEXT, STREAM_FILTER_VALUES),
    ),
    Parameter(
        "ask",
        "Only events of which these ASK queries hold",
        schema=with_.repeated({"type": "string"}, STREAM_FILTER_VALUES),
    ),
    Parameter("filter", "Only what passes a filter of the deployment; `filter.…` are its parameters", schema=_TEXT),
)

CONSUME = Operation(
    "consume",
    "Listen to a stream",
    (Verb.CONSUME,),
    "stream",
    description="From a place in the past on, or from now on, without a gap and without a repeat.",
    parameters=(with_.STREAM, *with_.LISTENING, with_.MOVED, *_SIEVES),
    answers={
        **STREAM_ANSWERS,
        307: BodyContent(description="A repeater has the stream, and more room", headers=("Location", "Link")),
    },
    problems=(400, 403, 404, 406, 422, 503),
    tells=("EventMessage", "UndecidedMessage", "MoveMessage", "FailedMessage", *NOTICES),
    hears=("Acknowledging",),
)
GATHER = Operation(
    "gather",
    "Listen to many subscriptions, queries and streams",
    (Verb.SUBSCRIBE, Verb.CONSUME),
    description="In the order of events; a WebSocket may name others later, and let go of some.",
    parameters=(
        Parameter("subscription", "The ids of subscriptions", schema=with_.repeated(_TEXT, CONNECTION_SOURCES)),
        Parameter("query", "The ids of continuous queries", schema=with_.repeated(_TEXT, CONNECTION_SOURCES)),
        Parameter("stream", "The names of streams", schema=with_.repeated(ref("StreamName"), CONNECTION_SOURCES)),
        *with_.LISTENING,
    ),
    answers=STREAM_ANSWERS,
    problems=(400, 403, 404, 406, 503),
    tells=("EventMessage", "NotificationMessage", "AnswerMessage", "EndMessage", "LeftMessage", *NOTICES),
    hears=("Acknowledging", "Subscribing", "Unsubscribing", "Streaming", "Unstreaming", "Querying", "Unquerying"),
)
READ = Operation(
    "readEvents",
    "Read a page of the log",
    (Verb.CONSUME,),
    description="Events at positions p with `after < p <= upto`. The metadata of the schema tell how far that is all.",
    parameters=(
        Parameter("stream", "Of this stream alone", schema=ref("StreamName")),
        Parameter("after", "After this position", schema=with_.CURSOR.schema),
        Parameter("upto", "Up to this position", schema=ref(POSITION)),
    ),
    answers={200: BodyContent({"application/vnd.apache.arrow.stream": None}, "An Arrow stream")},
    problems=(400,),
)


# Publishing: events in.

NDJSON = "application/x-ndjson"
_TYPES = {each.media_type: None for each in SYNTAXES}
_ITEMS = {each.media_type: None for each in ENVELOPES}
_DATASETS = {each.media_type: None for each in SYNTAXES if each.graphs}
_RECEIPT = BodyContent({"application/json": "Receipt"}, "Everything that was taken is on disk")
_HEADERS = (with_.SOURCE_ID, with_.APPLICATION_ID, with_.TIMESTAMP)
_REFUSED = (400, 409, 413, 415, 503, 507)

PUBLISH = Operation(
    "publish",
    "Publish events to a stream",
    (Verb.PUBLISH,),
    "stream",
    description="A named graph is an event; triples outside of a graph are one. Items, and events of a body that has "
    "several, are taken or refused each by itself. With `?ack=each` the body need not end, and each item is "
    "acknowledged by a line of JSON as soon as it is durable.",
    parameters=(
        with_.STREAM,
        Parameter("ack", "`each`: acknowledge items one by one, while the body comes", schema={"type": "string"}),
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
    "Keep publishing to a stream over a WebSocket",
    (Verb.PUBLISH,),
    "stream",
    description="Each message is a body of the type in `?type=`, and is acknowledged by an object of JSON.",
    parameters=(
        with_.STREAM,
        Parameter("type", "The media type of messages; lines of JSON if it is not said"),
        *_HEADERS,
    ),
    answers={101: BodyContent(description="From here on it is a WebSocket")},
    problems=(400, 403, 503),
    tells=("Acknowledgement",),
    hears=("Item",),
)
PUBLISH_ADDRESSED = Operation(
    "publishAddressed",
    "Publish events that say their streams themselves",
    (Verb.PUBLISH,),
    description="By triples about an event's id outside of its graph. All are stored, or none.",
    parameters=(with_.IDEMPOTENCY_KEY, with_.CONTENT_ENCODING),
    body=BodyContent(_DATASETS, "RDF with named graphs"),
    answers={201: _RECEIPT},
    problems=_REFUSED,
)


# Reading: the history of a stream as linked pages.

RDF_TYPES: dict[str, str | None] = {
    "application/trig": None,
    "application/n-quads": None,
    "application/ld+json": None,
    "text/turtle": None,
    "application/n-triples": None,
    "application/rdf+xml": None,
}
"""In which documents come that describe something."""

_NUMBER = {"type": "integer", "minimum": 0}
_CACHED = ("ETag", "Cache-Control", "Link")
_LDES_ANSWERS = {
    200: BodyContent(RDF_TYPES, "A node, in the words of TREE and LDES", headers=_CACHED),
    304: BodyContent(description="It is as the client has it", headers=_CACHED),
}

LDES_VIEW = Operation(
    "ldesView",
    "Begin to read the history of a stream",
    (Verb.CONSUME,),
    "stream",
    description="The first node of a Linked Data Event Stream: what the stream promises, and where its pages are.",
    parameters=(with_.STREAM,),
    answers=_LDES_ANSWERS,
    problems=(400, 404, 406),
)
LDES_NODE = Operation(
    "ldesNode",
    "Read a page of the history of a stream",
    (Verb.CONSUME,),
    "stream",
    description="Level 0 has the pages with events, those above it lead there. A full page never changes.",
    parameters=(
        with_.STREAM,
        with_.path_parameter("level", "How far above the pages", {**_NUMBER, "maximum": 99}),
        with_.path_parameter("number", "Which one, from 0 on", {**_NUMBER, "maximum": 10**15 - 1}),
    ),
    answers=_LDES_ANSWERS,
    problems=(400, 404, 406, 410),
)


# Discovering: what streams there are, and what is known of them.

JSON = "application/json"
_SAME = {304: BodyContent(description="It is as the client has it", headers=_CACHED)}

STREAMS = Operation(
    "listStreams",
    "See the streams",
    (Verb.CONSUME,),
    description="Those that the caller sees, some at a time: as JSON, with what flows out of them, or as DCAT.",
    parameters=(Parameter("cursor", "Those whose names come after this one", schema=ref("StreamName")),),
    answers={200: BodyContent({JSON: "Streams", **RDF_TYPES}, headers=_CACHED), **_SAME},
    problems=(406,),
)
ABOUT = Operation(
    "aboutStream",
    "See what is known of a stream",
    (Verb.CONSUME,),
    "stream",
    parameters=(with_.STREAM,),
    answers={200: BodyContent({JSON: "Profile", **RDF_TYPES}, headers=_CACHED), **_SAME},
    problems=(400, 404, 406),
)
PUT_ABOUT = Operation(
    "putAbout",
    "Say what a stream is about",
    (Verb.ADMIN,),
    parameters=(with_.STREAM,),
    body=BodyContent({JSON: "About"}),
    answers={200: BodyContent({JSON: "About"})},
    problems=(400, 422, 507),
)
VOID = Operation(
    "void",
    "See what all of it has in it",
    (Verb.QUERY, Verb.CONSUME),
    description="Counts are told to those who see everything.",
    answers={200: BodyContent(RDF_TYPES, headers=_CACHED), **_SAME},
    problems=(406,),
)
API_CATALOG = Operation(
    "apiCatalog",
    "See what is served",
    description="A set of links (RFC 9727).",
    answers={200: BodyContent({"application/linkset+json": None}, headers=("Link",))},
)


# Hooking: those who are told by POST, and what was not taken.

FORM = "application/x-www-form-urlencoded"
_POSITION = Parameter(
    "position",
    "Where those lie that are meant; all, if none is named",
    schema=with_.repeated(ref(POSITION), PAGE_ENTRIES),
)
_SEE = (Verb.SUBSCRIBE, Verb.ADMIN)

HOOKS = Operation(
    "listHooks",
    "See who is told by POST, and how far each is",
    (Verb.ADMIN,),
    parameters=(with_.PAGE_SIZE, with_.CURSOR),
    answers={200: BodyContent({JSON: "HookPage"})},
    problems=(400,),
)
DEAD_LETTERS = Operation(
    "listDeadLetters",
    "See what a hook did not take",
    _SEE,
    parameters=(with_.ID, with_.PAGE_SIZE, with_.CURSOR),
    answers={200: BodyContent({JSON: "LetterPage"})},
    problems=(400, 404),
)
REPLAY_DEAD_LETTERS = Operation(
    "replayDeadLetters",
    "Deliver again what a hook did not take",
    _SEE,
    description="All of it, or what the body names. Each is tried once; what is not taken stays.",
    parameters=(with_.ID,),
    body=BodyContent({JSON: "Positions"}, "Which are meant; all, if it names none"),
    answers={202: BodyContent({JSON: "Replay"}, "They will be delivered")},
    problems=(400, 404, 409, 413, 415, 422, 507),
)
DROP_DEAD_LETTERS = Operation(
    "dropDeadLetters",
    "Give up what a hook did not take",
    _SEE,
    description="All of it, or those that are named.",
    parameters=(with_.ID, _POSITION),
    answers={204: BodyContent(description="They are gone")},
    problems=(400, 404, 507),
)
WEBSUB = Operation(
    "websub",
    "Subscribe to a stream, or no longer, by WebSub",
    (Verb.CONSUME,),
    description="The answer says that it is understood. The callback is asked whether it meant that, and then told.",
    body=BodyContent({FORM: "Intent"}),
    answers={202: BodyContent(description="The callback will be asked")},
    problems=(400, 413, 415, 503),
)
DISCOVER_HUB = Operation(
    "discover",
    "See where a stream can be subscribed to",
    (Verb.CONSUME,),
    "stream",
    parameters=(with_.STREAM,),
    answers={200: BodyContent(description="The headers say so", headers=("Link",))},
    problems=(400,),
)


# Mercure: its protocol, over streams.

MERCURE_SUBSCRIBE = Operation(
    "mercureSubscribe",
    "Listen to streams, as Mercure does",
    (Verb.CONSUME,),
    parameters=(
        Parameter(
            "topic",
            "Addresses of streams, such as `/streams/home` or `/streams/city-{id}`, or `*`",
            schema=with_.repeated({"type": "string"}, CONNECTION_SOURCES),
            required=True,
        ),
        Parameter("lastEventID", "After which id to begin; `earliest` is all that is kept"),
        Parameter("authorization", "A token, for browsers"),
        with_.header_parameter("Last-Event-ID", "The same as lastEventID, which it goes before"),
    ),
    answers={200: BodyContent({"text/event-stream": None}, "Updates, without an end")},
    problems=(400, 503),
    tells=("EventMessage", *NOTICES),
)
MERCURE_PUBLISH = Operation(
    "mercurePublish",
    "Publish an update, as Mercure does",
    (Verb.PUBLISH,),
    description="`topic` and `data` must be there; `id`, `type`, `retry` and `private` may.",
    body=BodyContent({"application/x-www-form-urlencoded": None}),
    answers={200: BodyContent({"text/plain": None}, "The id from which to resume")},
    problems=(400, 409, 413, 415, 503, 507),
)
