"""Continuing: standing questions across events."""

from __future__ import annotations

from triplewire.access import Verb
from triplewire.config import limits
from triplewire.contract import parameters as with_
from triplewire.contract.catalogue.consuming import NOTICES, TOLD
from triplewire.contract.operations import Content, Operation, Parameter
from triplewire.contract.schemas.continuing import DURATION, FROM, SPAN
from triplewire.contract.schemas.forms import one_of, ref

JSON = "application/json"
NDJSON = "application/x-ndjson"
SPARQL = "application/sparql-query"
TEXT = "text/plain"
_SUBSCRIBE = (Verb.SUBSCRIBE,)
_SEE = (Verb.SUBSCRIBE, Verb.ADMIN)
_OF_A_TEXT = "; where the body is a query"

REGISTER = Operation(
    "registerQuery",
    "Register continuous queries",
    _SUBSCRIBE,
    description="One of an object or of a text, all or none of an array, and of lines each by itself. Each counts all "
    "that is published after the answer.",
    parameters=(
        Parameter("name", f"As it is called{_OF_A_TEXT}"),
        Parameter(
            "semantics",
            f"An answer for every combination of triples, or each once{_OF_A_TEXT}",
            schema=one_of(("bag", "set")),
        ),
        Parameter(
            "streams",
            f"Only events of these{_OF_A_TEXT}",
            schema=with_.several(ref("StreamName"), limits.NARROWING_VALUES),
        ),
        Parameter("within", f"The time within which all pieces of an answer must arrive{_OF_A_TEXT}", schema=DURATION),
        Parameter("span", f"Likewise, the number of positions{_OF_A_TEXT}", schema=SPAN),
        Parameter("from", f"What of the past counts, too{_OF_A_TEXT}", schema=FROM),
        Parameter("time", f"By which clock windows go{_OF_A_TEXT}", schema=one_of(("arrival", "event"))),
        Parameter("lateness", f"By how much events may be late{_OF_A_TEXT}", schema=DURATION),
        Parameter("late", f"What becomes of an event that is later{_OF_A_TEXT}", schema=one_of(("drop", "revise"))),
        Parameter("into", f"The stream to which answers are published{_OF_A_TEXT}", schema=ref("StreamName")),
    ),
    body=Content({JSON: "Inquiries", NDJSON: "Inquiry", SPARQL: None, TEXT: None}),
    answers={
        201: Content({JSON: "ContinuousQueries"}, "They are registered", headers=("Location",)),
        200: Content({NDJSON: "MadeLine"}, "A line for each line"),
    },
    problems=(400, 403, 413, 415, 422, 503, 507),
)
PAGE = Operation(
    "listQueries",
    "See continuous queries, a page at a time",
    _SEE,
    parameters=(with_.PAGE_SIZE, with_.CURSOR),
    answers={200: Content({JSON: "QueryPage"})},
    problems=(400,),
)
FIND = Operation(
    "findQuery",
    "See a continuous query, and how it is doing",
    _SEE,
    parameters=(with_.QUERY_ID,),
    answers={200: Content({JSON: "ContinuousQuery"})},
    problems=(404,),
)
END = Operation(
    "endQuery",
    "End a continuous query",
    _SEE,
    parameters=(with_.QUERY_ID,),
    answers={204: Content(description="It is gone")},
    problems=(404, 507),
)

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
