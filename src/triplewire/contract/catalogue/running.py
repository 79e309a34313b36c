"""Running: how the service is doing, who repeats it, and what is erased from it."""

from __future__ import annotations

from triplewire.access import Verb
from triplewire.config import limits
from triplewire.contract import parameters as with_
from triplewire.contract.operations import Content, Operation, Parameter

JSON = "application/json"
_ADMIN = (Verb.ADMIN,)
_RELAY = with_.path("id", "The id of the relay", {"type": "string", "pattern": "^[A-Za-z0-9-]{1,64}$"})
_TEXT = {"type": "string", "minLength": 1, "maxLength": limits.HEADER_CHARACTERS}
_BY = Parameter("by", "Who asks for it, as the receipt will say", schema=_TEXT)
_RECEIPT = {202: Content({JSON: "Erasure"}, "It will be done; nobody is shown it any more", headers=("Location",))}
_GONE = {204: Content(description="It is gone")}

INDEX = Operation("index", "See where to go", answers={200: Content({JSON: "Index"})})
HEALTH = Operation(
    "health",
    "See whether the service is well",
    answers={
        200: Content({JSON: "Health"}, "What is published gets matched, be it late"),
        503: Content({JSON: "Health"}, "The pipeline starts, or is down; publishing works"),
    },
)
METRICS = Operation(
    "metrics", "Read the metrics", _ADMIN, answers={200: Content({"text/plain": None}, "For Prometheus")}
)
EDGES = Operation("listEdges", "See the edges over the same stores", _ADMIN, answers={200: Content({JSON: "Edges"})})
REPEATERS = Operation(
    "listRepeaters",
    "See who repeats the streams",
    (Verb.CONSUME, Verb.ADMIN),
    answers={200: Content({JSON: "Repeaters"})},
)
PUT_REPEATER = Operation(
    "putRepeater",
    "Announce a repeater",
    _ADMIN,
    description="To be said again before it is forgotten.",
    parameters=(_RELAY,),
    body=Content({JSON: "Announcement"}),
    answers={204: Content(description="It is known")},
    problems=(400, 422),
)
REMOVE_REPEATER = Operation(
    "removeRepeater", "Take a repeater back", _ADMIN, parameters=(_RELAY,), answers=_GONE, problems=(400,)
)
ERASE_EVENT = Operation(
    "eraseEvent",
    "Erase an event",
    _ADMIN,
    parameters=(with_.path("id", "The id of the event, percent-encoded", {"type": "string", "format": "iri"}), _BY),
    answers=_RECEIPT,
    problems=(400, 507),
)
ERASE_MANY = Operation(
    "eraseEvents",
    "Erase all of a source, or all about a subject",
    _ADMIN,
    description="One of `source` and `subject` is to be given.",
    parameters=(
        Parameter("source", "The source whose events go", schema=_TEXT),
        Parameter("subject", "The IRI about which nothing is to stay", schema={"type": "string", "format": "iri"}),
        _BY,
    ),
    answers=_RECEIPT,
    problems=(400, 507),
)
ERASURES = Operation(
    "listErasures",
    "See the receipts of erasures, a page at a time",
    _ADMIN,
    parameters=(with_.PAGE_SIZE, with_.CURSOR),
    answers={200: Content({JSON: "ErasurePage"})},
    problems=(400,),
)
FIND_ERASURE = Operation(
    "findErasure",
    "See the receipt of an erasure",
    _ADMIN,
    parameters=(with_.path("id", "The id of the receipt"),),
    answers={200: Content({JSON: "Erasure"})},
    problems=(404,),
)
