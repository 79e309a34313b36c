"""Continuing: standing questions across events."""

from __future__ import annotations

from triplewire.access import Verb
from triplewire.contract import parameters as with_
from triplewire.contract.catalogue.consuming import NOTICES, TOLD
from triplewire.contract.operations import Operation

_SUBSCRIBE = (Verb.SUBSCRIBE,)

ANSWERS = Operation(
    "answers",
    "Listen to the answers of a continuous query",
    _SUBSCRIBE,
    description="Who does not say from where gets all that is kept since the query was registered. Those of windows "
    "and of CONSTRUCT are events, all others notifications.",
    parameters=(with_.QUERY_ID, *with_.LISTENING),
    answers=TOLD,
    problems=(400, 403, 404, 406, 503),
    tells=("AnswerMessage", "EventMessage", "EndMessage", *NOTICES),
    hears=("Acknowledging",),
)
