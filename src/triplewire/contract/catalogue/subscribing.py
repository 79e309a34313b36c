"""Subscribing: standing questions, and the templates that they are made from."""

from __future__ import annotations

from triplewire.access import Verb
from triplewire.contract import parameters as with_
from triplewire.contract.catalogue.consuming import NOTICES, TOLD
from triplewire.contract.operations import Content, Operation, Parameter
from triplewire.contract.schemas.forms import one_of

JSON = "application/json"
NDJSON = "application/x-ndjson"
_SUBSCRIBE = (Verb.SUBSCRIBE,)
_ADMIN = (Verb.ADMIN,)
_SEE = (Verb.SUBSCRIBE, Verb.ADMIN)
_GONE = {204: Content(description="It is gone")}

MAKE = Operation(
    "makeSubscription",
    "Make subscriptions",
    _SUBSCRIBE,
    description="One of an object, all or none of an array, and of lines each by itself. Each holds for every event "
    "that is published after the answer.",
    parameters=(Parameter("dry_run", "`1`: make none, but tell what it would match", schema=one_of(("0", "1"))),),
    body=Content({JSON: "Wishes", NDJSON: "Wish"}),
    answers={
        201: Content({JSON: "Subscriptions"}, "They are made", headers=("Location",)),
        200: Content({JSON: "Rehearsal", NDJSON: "MadeLine"}, "A dry run; or a line for each line"),
    },
    problems=(400, 404, 409, 413, 415, 422, 503, 507),
)
PAGE = Operation(
    "listSubscriptions",
    "See subscriptions, a page at a time",
    _SEE,
    parameters=(with_.PAGE_SIZE, with_.CURSOR),
    answers={200: Content({JSON: "SubscriptionPage"})},
    problems=(400,),
)
FIND = Operation(
    "findSubscription",
    "See a subscription",
    _SEE,
    parameters=(with_.ID,),
    answers={200: Content({JSON: "Subscription"})},
    problems=(404,),
)
END = Operation(
    "endSubscription", "End a subscription", _SEE, parameters=(with_.ID,), answers=_GONE, problems=(404, 507)
)
EXPLAIN = Operation(
    "explainSubscription",
    "See why a subscription matches an event, or not",
    _SEE,
    parameters=(
        with_.ID,
        Parameter(
            "event", "The id of the event, or its position", schema={"type": "string", "minLength": 1}, required=True
        ),
    ),
    answers={200: Content({JSON: "Explanation", "text/plain": None})},
    problems=(400, 404, 503),
)
DELIVER = Operation(
    "deliver",
    "Listen to the notifications of a subscription",
    _SUBSCRIBE,
    description="Who does not say from where gets all that is kept since the subscription was made.",
    parameters=(with_.ID, *with_.LISTENING),
    answers=TOLD,
    problems=(400, 403, 404, 406, 503),
    tells=("NotificationMessage", "EndMessage", *NOTICES),
    hears=("Acknowledging",),
)
TEMPLATES = Operation("listTemplates", "See the templates", _SEE, answers={200: Content({JSON: "Templates"})})
FIND_TEMPLATE = Operation(
    "findTemplate",
    "See a template",
    _SEE,
    parameters=(with_.NAME,),
    answers={200: Content({JSON: "Template"})},
    problems=(404,),
)
PUT_TEMPLATE = Operation(
    "putTemplate",
    "Make or replace a template",
    _ADMIN,
    description="Instances that were made of it stay as they are.",
    parameters=(with_.NAME,),
    body=Content({JSON: "TemplateText"}),
    answers={200: Content({JSON: "Template"}, headers=("Location",))},
    problems=(400, 413, 415, 422, 507),
)
REMOVE_TEMPLATE = Operation(
    "removeTemplate", "Remove a template", _ADMIN, parameters=(with_.NAME,), answers=_GONE, problems=(404, 507)
)
