"""Continuing: continuous queries, as they are asked for and as they are told."""

from __future__ import annotations

from typing import Any

from triplewire.config import limits
from triplewire.contract.schemas.forms import OBJECT, STRING, TIME, Schema, either, maybe, one_of, record, ref, some
from triplewire.contract.schemas.shared import POSITION

_SECONDS: Schema = {"type": "number", "minimum": 0, "maximum": limits.QUERY_WINDOW_DAYS * 86_400}
DURATION = either(_SECONDS, {"type": "string", "description": "A duration such as PT10M"})
SPAN: Schema = {"type": "integer", "minimum": 1, "maximum": 2**53}
FROM: Schema = {"type": "string", "description": "`earliest`, a position, or a time with its zone"}

_ASKED: dict[str, Any] = {
    "query": {"type": "string", "minLength": 1, "description": "SPARQL, or RSP-QL with its windows"},
    "name": {"type": "string", "minLength": 1, "maxLength": limits.HEADER_CHARACTERS},
    "semantics": one_of(("bag", "set")),
    "streams": either(ref("StreamName"), some(ref("StreamName"), 1, limits.NARROWING_VALUES)),
    "within": DURATION,
    "span": SPAN,
    "from": FROM,
    "time": one_of(("arrival", "event")),
    "lateness": DURATION,
    "late": one_of(("drop", "revise")),
    "into": ref("StreamName"),
}
_ADDRESS: Schema = {"type": "string", "format": "uri-reference"}

CONTINUING: dict[str, Schema] = {
    "Inquiry": record(
        {"query": _ASKED["query"]},
        optional={name: maybe(each) for name, each in _ASKED.items() if name != "query"},
        closed=True,
        about="What is asked for when a continuous query is registered.",
    ),
    "Inquiries": either(ref("Inquiry"), some(ref("Inquiry"), 1)),
    "ContinuousQuery": record(
        {
            "id": STRING,
            "query": STRING,
            "state": one_of(("on", "suspended")),
            "created": TIME,
            "since": ref(POSITION),
            "answers": _ADDRESS,
        },
        optional={
            **{name: schema for name, schema in _ASKED.items() if name != "query"},
            "stream": _ADDRESS,
            "figures": OBJECT,
        },
        about="A standing question across events, and where its answers are told.",
    ),
    "ContinuousQueries": either(ref("ContinuousQuery"), some(ref("ContinuousQuery"))),
    "QueryPage": record({"queries": some(ref("ContinuousQuery")), "next": maybe(ref(POSITION))}),
}
