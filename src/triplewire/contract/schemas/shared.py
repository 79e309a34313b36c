"""Shared: what stands in many documents, and the problem document (RFC 9457)."""

from __future__ import annotations

from triplewire.config import limits
from triplewire.contract.schemas.forms import COUNT, NUMBER, STRING, TEXTS, Schema, record, ref, some

POSITION = "Position"
MARK = "Mark"
PROBLEM = "Problem"
RESULTS = "Results"

SHARED: dict[str, Schema] = {
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
        "maxLength": limits.STREAM_NAME_CHARACTERS,
    },
    PROBLEM: record(
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
            "refused": some(ref("Refusal")),
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
