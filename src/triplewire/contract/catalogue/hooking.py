"""Hooking: those who are told by POST, and what was not taken."""

from __future__ import annotations

from triplewire.access import Verb
from triplewire.config import limits
from triplewire.contract import parameters as with_
from triplewire.contract.operations import Content, Operation, Parameter
from triplewire.contract.schemas.forms import ref
from triplewire.contract.schemas.shared import POSITION

JSON = "application/json"
FORM = "application/x-www-form-urlencoded"
_POSITION = Parameter(
    "position",
    "Where those lie that are meant; all, if none is named",
    schema=with_.several(ref(POSITION), limits.PAGE),
)
_SEE = (Verb.SUBSCRIBE, Verb.ADMIN)

HOOKS = Operation(
    "listHooks",
    "See who is told by POST, and how far each is",
    (Verb.ADMIN,),
    parameters=(with_.PAGE_SIZE, with_.CURSOR),
    answers={200: Content({JSON: "HookPage"})},
    problems=(400,),
)
LETTERS = Operation(
    "listDeadLetters",
    "See what a hook did not take",
    _SEE,
    parameters=(with_.ID, with_.PAGE_SIZE, with_.CURSOR),
    answers={200: Content({JSON: "LetterPage"})},
    problems=(400, 404),
)
REPLAY = Operation(
    "replayDeadLetters",
    "Deliver again what a hook did not take",
    _SEE,
    description="All of it, or what the body names. Each is tried once; what is not taken stays.",
    parameters=(with_.ID,),
    body=Content({JSON: "Positions"}, "Which are meant; all, if it names none"),
    answers={202: Content({JSON: "Replay"}, "They will be delivered")},
    problems=(400, 404, 409, 413, 415, 422, 507),
)
DROP = Operation(
    "dropDeadLetters",
    "Give up what a hook did not take",
    _SEE,
    description="All of it, or those that are named.",
    parameters=(with_.ID, _POSITION),
    answers={204: Content(description="They are gone")},
    problems=(400, 404, 507),
)
WEBSUB = Operation(
    "websub",
    "Subscribe to a stream, or no longer, by WebSub",
    (Verb.CONSUME,),
    description="The answer says that it is understood. The callback is asked whether it meant that, and then told.",
    body=Content({FORM: "Intent"}),
    answers={202: Content(description="The callback will be asked")},
    problems=(400, 413, 415, 503),
)
DISCOVER = Operation(
    "discover",
    "See where a stream can be subscribed to",
    (Verb.CONSUME,),
    "stream",
    parameters=(with_.STREAM,),
    answers={200: Content(description="The headers say so", headers=("Link",))},
    problems=(400,),
)
