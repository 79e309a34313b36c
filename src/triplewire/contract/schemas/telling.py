"""Telling: the messages that listeners get, as lines of JSON and WebSockets have them.

Server-sent events have the `type` as the event's name, and the rest as data.
"""

from __future__ import annotations

from typing import Any

from triplewire.contract.schemas.forms import BOOLEAN, COUNT, NUMBER, OBJECT, STRING, TIME, Schema, maybe, record, ref
from triplewire.contract.schemas.shared import MARK, POSITION, PROBLEM, RESULTS


def _message(type: str, about: str, fields: dict[str, Schema], **optional: Schema) -> Schema:
    return record({"type": {"const": type}, **fields}, optional=optional, about=about)


_PLACE: dict[str, Any] = {"position": ref(POSITION), "stream": ref("StreamName"), "event": STRING, "time": TIME}

MESSAGES: dict[str, Schema] = {
    "EventMessage": _message(
        "event",
        "An event of a stream. `body` is N-Quads.",
        {**_PLACE, "source": maybe(STRING), "application": maybe(STRING), "format": STRING, "body": STRING},
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

SAID: dict[str, Schema] = {
    "Acknowledging": record({"ack": ref(MARK)}, about="Done with that message and all before it."),
    "Subscribing": record(
        {"subscribe": STRING}, optional={"after": STRING}, about="Tell of a subscription, too, over this connection."
    ),
    "Unsubscribing": record({"unsubscribe": STRING}, about="Tell no more of a subscription."),
    "Streaming": record({"stream": STRING}, optional={"after": STRING}, about="Tell of a stream, too."),
    "Unstreaming": record({"unstream": STRING}, about="Tell no more of a stream."),
    "Querying": record({"query": STRING}, optional={"after": STRING}, about="Tell of a continuous query, too."),
    "Unquerying": record({"unquery": STRING}, about="Tell no more of a query."),
}
