"""Publishing: what publishers send in JSON, and what they are told."""

from __future__ import annotations

from triplewire.contract.schemas.forms import COUNT, OBJECT, STRING, Schema, either, record, ref, some
from triplewire.contract.schemas.shared import POSITION, PROBLEM

PUBLISHING: dict[str, Schema] = {
    "Receipt": record(
        {"events": COUNT, "first": ref(POSITION), "last": ref(POSITION), "position": ref(POSITION)},
        optional={
            "stream": ref("StreamName"),
            "repeated": COUNT,
            "refused": some(ref("Refusal")),
            "refusals": COUNT,
        },
        about="What became of a body: everything in it that was taken is durable.",
    ),
    "Refusal": record(
        {"item": COUNT, "problem": ref(PROBLEM)},
        optional={"line": COUNT},
        about="An item of a body that was not taken.",
    ),
    "Item": {
        **record(
            {},
            optional={
                "event": STRING,
                "time": STRING,
                "source": either(STRING, {"type": "null"}),
                "application": either(STRING, {"type": "null"}),
                "headers": OBJECT,
                "format": STRING,
                "body": STRING,
            },
        ),
        "description": "An event on a line: as listeners are told it, or a JSON-LD document.",
    },
    "Acknowledgement": {
        **either(
            record({"begin": record({"stream": ref("StreamName")})}),
            record({"item": COUNT, "events": COUNT, "position": ref(POSITION)}, optional={"repeated": COUNT}),
            record({"item": COUNT, "problem": ref(PROBLEM)}, optional={"line": COUNT}),
            record({"end": record({"items": COUNT, "events": COUNT, "repeated": COUNT, "refused": COUNT})}),
        ),
        "description": "What a publisher that keeps publishing is told, of each item once it is durable.",
    },
}
