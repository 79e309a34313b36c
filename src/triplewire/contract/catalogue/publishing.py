"""Publishing: events in."""

from __future__ import annotations

from triplewire.access import Verb
from triplewire.contract import parameters as with_
from triplewire.contract.operations import Content, Operation, Parameter
from triplewire.rdf import SYNTAXES
from triplewire.rdf.envelopes import ENVELOPES

NDJSON = "application/x-ndjson"
_TYPES = {each.media_type: None for each in SYNTAXES}
_ITEMS = {each.media_type: None for each in ENVELOPES}
_DATASETS = {each.media_type: None for each in SYNTAXES if each.graphs}
_RECEIPT = Content({"application/json": "Receipt"}, "Everything that was taken is on disk")
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
    body=Content({**_TYPES, **_ITEMS}, "RDF, or items"),
    answers={201: _RECEIPT, 200: Content({NDJSON: "Acknowledgement"}, "With `?ack=each`: a line for each item")},
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
    answers={101: Content(description="From here on it is a WebSocket")},
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
    body=Content(_DATASETS, "RDF with named graphs"),
    answers={201: _RECEIPT},
    problems=_REFUSED,
)
