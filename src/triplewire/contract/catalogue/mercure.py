"""Mercure: its protocol, over streams."""

from __future__ import annotations

from triplewire.access import Verb
from triplewire.config import limits
from triplewire.contract import parameters as with_
from triplewire.contract.catalogue.consuming import NOTICES
from triplewire.contract.operations import Content, Operation, Parameter

SUBSCRIBE = Operation(
    "mercureSubscribe",
    "Listen to streams, as Mercure does",
    (Verb.CONSUME,),
    parameters=(
        Parameter(
            "topic",
            "Addresses of streams, such as `/streams/home` or `/streams/city-{id}`, or `*`",
            schema=with_.several({"type": "string"}, limits.GATHERED),
            required=True,
        ),
        Parameter("lastEventID", "After which id to begin; `earliest` is all that is kept"),
        Parameter("authorization", "A token, for browsers"),
        with_.header("Last-Event-ID", "The same as lastEventID, which it goes before"),
    ),
    answers={200: Content({"text/event-stream": None}, "Updates, without an end")},
    problems=(400, 503),
    tells=("EventMessage", *NOTICES),
)
PUBLISH = Operation(
    "mercurePublish",
    "Publish an update, as Mercure does",
    (Verb.PUBLISH,),
    description="`topic` and `data` must be there; `id`, `type`, `retry` and `private` may.",
    body=Content({"application/x-www-form-urlencoded": None}),
    answers={200: Content({"text/plain": None}, "The id from which to resume")},
    problems=(400, 409, 413, 415, 503, 507),
)
