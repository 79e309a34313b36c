"""Consuming: what was published, as it comes and as it was."""

from __future__ import annotations

from triplewire.access import Verb
from triplewire.config import limits
from triplewire.contract import parameters as with_
from triplewire.contract.operations import Content, Operation, Parameter
from triplewire.contract.schemas.forms import ref
from triplewire.contract.schemas.shared import POSITION
from triplewire.rdf.messages import MESSAGE_SYNTAXES, message_media_type

FORMATS: dict[str, str | None] = {
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

TOLD = {
    200: Content(FORMATS, "Messages, without an end; or those of a poll", headers=("Position", "Link")),
    204: Content(description="A poll that waited in vain", headers=("Position", "Link")),
    101: Content(description="From here on it is a WebSocket; each message is a text with an object of JSON"),
}
NOTICES = ("PositionMessage", "GapMessage", "SlowMessage", "ClosingMessage", "ProblemMessage")
_TEXT = {"type": "string", "minLength": 1, "maxLength": limits.HEADER_CHARACTERS}
_SIEVES = (
    Parameter("source", "Only events of these sources", schema=with_.several(_TEXT, limits.SIEVE_VALUES)),
    Parameter("application", "Only events of these applications", schema=with_.several(_TEXT, limits.SIEVE_VALUES)),
    Parameter(
        "vocabulary",
        "Only events in which the IRI of a predicate or class begins so",
        schema=with_.several(_TEXT, limits.SIEVE_VALUES),
    ),
    Parameter(
        "ask",
        "Only events of which these ASK queries hold",
        schema=with_.several({"type": "string"}, limits.SIEVE_VALUES),
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
        **TOLD,
        307: Content(description="A repeater has the stream, and more room", headers=("Location", "Link")),
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
        Parameter("subscription", "The ids of subscriptions", schema=with_.several(_TEXT, limits.GATHERED)),
        Parameter("query", "The ids of continuous queries", schema=with_.several(_TEXT, limits.GATHERED)),
        Parameter("stream", "The names of streams", schema=with_.several(ref("StreamName"), limits.GATHERED)),
        *with_.LISTENING,
    ),
    answers=TOLD,
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
    answers={200: Content({"application/vnd.apache.arrow.stream": None}, "An Arrow stream")},
    problems=(400,),
)
