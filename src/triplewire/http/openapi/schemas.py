"""JSON schemas (2020-12, the dialect of OpenAPI 3.1): builders, shared schemas, and the schemas of what is published
and delivered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from triplewire.sparql.syntax.windows import STREAM_NAME_CHARACTERS

Schema: TypeAlias = Mapping[str, Any]

STRING: Schema = {"type": "string"}
BOOLEAN: Schema = {"type": "boolean"}
NUMBER: Schema = {"type": "number"}
COUNT: Schema = {"type": "integer", "minimum": 0}
OBJECT: Schema = {"type": "object"}
TIME: Schema = {"type": "string", "format": "date-time"}
MICROSECONDS: Schema = {"type": "integer", "minimum": 0, "description": "Microseconds since the epoch"}
TEXTS: Schema = {"type": "array", "items": STRING}


def ref(name: str) -> Schema:
    """One of the schemas that have names."""
    return {"$ref": f"#/components/schemas/{name}"}


def object_schema(
    properties: Mapping[str, Schema],
    *,
    optional: Mapping[str, Schema] | None = None,
    closed: bool = False,
    about: str = "",
) -> Schema:
    """An object. What is told may have more members some day, so that clients pass over what they do not know; what is
    sent may not, so that a misspelt one does not go unnoticed."""
    whole: dict[str, Any] = {"type": "object", "properties": {**properties, **(optional or {})}}
    whole |= {"required": list(properties)} if properties else {}
    whole |= {"additionalProperties": False} if closed else {}
    return whole | ({"description": about} if about else {})


def array_schema(items: Schema, least: int = 0, most: int | None = None) -> Schema:
    """A list."""
    bounds = {name: bound for name, bound in (("minItems", least), ("maxItems", most)) if bound}
    return {"type": "array", "items": items, **bounds}


def any_of(*choices: Schema) -> Schema:
    return {"anyOf": list(choices)}


def nullable(schema: Schema) -> Schema:
    """That, or null."""
    return any_of(schema, {"type": "null"})


def enum_schema(values: Sequence[str]) -> Schema:
    return {"type": "string", "enum": list(values)}


# Shared: what stands in many documents, and the problem document (RFC 9457).

POSITION = "Position"
MARK = "Mark"
PROBLEM = "Problem"
RESULTS = "Results"

SHARED_SCHEMAS: dict[str, Schema] = {
    POSITION: {
        "type": "string",
        "pattern": "^[0-9a-f]{16}$",
        "description": "A place in the order of all events. Opaque; as texts positions sort as events do.",
    },
    MARK: {
        "type": "string",
        "pattern": "^[0-9a-f]{16}(~[0-9a-f]{16})?$",
        "description": "A position, and where a subscription was made: from where to resume among many of them.",
    },
    "StreamName": {
        "type": "string",
        "pattern": "^[A-Za-z0-9][A-Za-z0-9._~-]*$",
        "maxLength": STREAM_NAME_CHARACTERS,
    },
    PROBLEM: object_schema(
        {"type": {"type": "string", "format": "uri"}, "title": STRING, "status": COUNT, "detail": STRING},
        optional={
            "line": COUNT,
            "column": COUNT,
            "excerpt": STRING,
            "field": STRING,
            "construct": STRING,
            "known": TEXTS,
            "limit": NUMBER,
            "retry_after": NUMBER,
            "position": ref(POSITION),
            "refused": array_schema(ref("Refusal")),
            "refusals": COUNT,
        },
        about="What is wrong, where in the input, and what would be right (RFC 9457).",
    ),
    RESULTS: {
        "type": "object",
        "required": ["head"],
        "properties": {"head": {"type": "object"}, "results": {"type": "object"}, "boolean": {"type": "boolean"}},
        "description": "SPARQL 1.1 Query Results JSON.",
    },
}


# Publishing: what publishers send in JSON, and what they are told.

PUBLISH_SCHEMAS: dict[str, Schema] = {
    "Receipt": object_schema(
        {"events": COUNT, "first": ref(POSITION), "last": ref(POSITION), "position": ref(POSITION)},
        optional={
            "stream": ref("StreamName"),
            "repeated": COUNT,
            "refused": array_schema(ref("Refusal")),
            "refusals": COUNT,
        },
        about="What became of a body: everything in it that was taken is durable.",
    ),
    "Refusal": object_schema(
        {"item": COUNT, "problem": ref(PROBLEM)},
        optional={"line": COUNT},
        about="An item of a body that was not taken.",
    ),
    "Item": {
        **object_schema(
            {},
            optional={
                "event": STRING,
                "time": STRING,
                "source": any_of(STRING, {"type": "null"}),
                "application": any_of(STRING, {"type": "null"}),
                "headers": OBJECT,
                "format": STRING,
                "body": STRING,
            },
        ),
        "description": "An event on a line: as listeners are told it, or a JSON-LD document.",
    },
    "Acknowledgement": {
        **any_of(
            object_schema({"begin": object_schema({"stream": ref("StreamName")})}),
            object_schema({"item": COUNT, "events": COUNT, "position": ref(POSITION)}, optional={"repeated": COUNT}),
            object_schema({"item": COUNT, "problem": ref(PROBLEM)}, optional={"line": COUNT}),
            object_schema(
                {"end": object_schema({"items": COUNT, "events": COUNT, "repeated": COUNT, "refused": COUNT})}
            ),
        ),
        "description": "What a publisher that keeps publishing is told, of each item once it is durable.",
    },
}


# Telling: the messages that listeners get, as lines of JSON and WebSockets have them.
#
# Server-sent events have the `type` as the event's name, and the rest as data.


def _message(type: str, about: str, fields: dict[str, Schema], **optional: Schema) -> Schema:
    return object_schema({"type": {"const": type}, **fields}, optional=optional, about=about)


_PLACE: dict[str, Any] = {"position": ref(POSITION), "stream": ref("StreamName"), "event": STRING, "time": TIME}

MESSAGE_SCHEMAS: dict[str, Schema] = {
    "EventMessage": _message(
        "event",
        "An event of a stream. `body` is N-Quads.",
        {**_PLACE, "source": nullable(STRING), "application": nullable(STRING), "format": STRING, "body": STRING},
        id=ref(MARK),
        headers=OBJECT,
    ),
    "NotificationMessage": _message(
        "notification",
        "What a subscription asks for has happened.",
        {"subscription": STRING, "kind": ref("Kind"), **_PLACE},
        id=ref(MARK),
        results=ref(RESULTS),
        format=STRING,
        body=STRING,
        graph=STRING,
        limit=OBJECT,
    ),
    "AnswerMessage": _message(
        "notification",
        "A continuous query has found something: all that one event has completed, or that there was before.",
        {"query": STRING, "kind": ref("Kind"), "position": ref(POSITION), "time": TIME},
        id=ref(MARK),
        stream=ref("StreamName"),
        event=STRING,
        results=ref(RESULTS),
        limit=OBJECT,
    ),
    "PositionMessage": _message(
        "position",
        "From where on it goes; the first message, and where nothing else tells it.",
        {"position": ref(MARK)},
        missed=BOOLEAN,
        earliest=ref(POSITION),
        subscription=STRING,
        query=STRING,
        stream=STRING,
    ),
    "GapMessage": _message(
        "gap",
        "Events at some of these positions are kept no more.",
        {"asked": ref(POSITION), "earliest": ref(POSITION)},
        first=ref(POSITION),
        last=ref(POSITION),
        detail=STRING,
    ),
    "SlowMessage": _message(
        "slow", "The last message: read too slowly.", {"position": ref(MARK), "detail": STRING}, limit=NUMBER
    ),
    "UndecidedMessage": _message(
        "undecided",
        "In the place of an event on which a sieve took too long.",
        {"position": ref(POSITION), "detail": STRING},
    ),
    "ClosingMessage": _message(
        "closing",
        "The last message: come back after so many milliseconds.",
        {"position": ref(MARK), "retry": COUNT, "detail": STRING},
    ),
    "MoveMessage": _message(
        "move",
        "The last message: go on at the location.",
        {"position": ref(POSITION), "location": STRING, "retry": COUNT, "detail": STRING},
    ),
    "FailedMessage": _message(
        "failed", "The last message: a sieve does not work.", {"position": ref(POSITION), "detail": STRING}
    ),
    "EndMessage": _message(
        "end", "The subscription, or the query, was ended.", {"detail": STRING}, subscription=STRING, query=STRING
    ),
    "LeftMessage": _message("left", "It is listened to no more.", {}, subscription=STRING, query=STRING, stream=STRING),
    "ProblemMessage": _message("problem", "What a client said cannot be done.", {"problem": ref(PROBLEM)}),
}

CLIENT_MESSAGE_SCHEMAS: dict[str, Schema] = {
    "Acknowledging": object_schema({"ack": ref(MARK)}, about="Done with that message and all before it."),
    "Subscribing": object_schema(
        {"subscribe": STRING}, optional={"after": STRING}, about="Tell of a subscription, too, over this connection."
    ),
    "Unsubscribing": object_schema({"unsubscribe": STRING}, about="Tell no more of a subscription."),
    "Streaming": object_schema({"stream": STRING}, optional={"after": STRING}, about="Tell of a stream, too."),
    "Unstreaming": object_schema({"unstream": STRING}, about="Tell no more of a stream."),
    "Querying": object_schema({"query": STRING}, optional={"after": STRING}, about="Tell of a continuous query, too."),
    "Unquerying": object_schema({"unquery": STRING}, about="Tell no more of a query."),
}
