"""Running: how things stand, what is repeated, and what is erased."""

from __future__ import annotations

from triplewire.config import limits
from triplewire.contract.schemas.forms import (
    COUNT,
    MICROSECONDS,
    NUMBER,
    OBJECT,
    STRING,
    TIME,
    Schema,
    maybe,
    one_of,
    record,
    ref,
    some,
)
from triplewire.contract.schemas.shared import POSITION

_FRACTION: Schema = {"type": "number", "minimum": 0, "maximum": 1}
_SAID: Schema = {"type": "string", "minLength": 1, "maxLength": limits.ABOUT_CHARACTERS}
_ADDRESSES: Schema = {
    "type": "object",
    "additionalProperties": {"type": "string", "format": "uri"},
    "minProperties": 1,
    "maxProperties": limits.RELAY_STRANDS,
}

RUNNING: dict[str, Schema] = {
    "Index": {"type": "object", "additionalProperties": STRING, "required": ["name"]},
    "Health": record(
        {
            "status": one_of(("ok", "lagging", "starting", "down")),
            "edge": STRING,
            "load": NUMBER,
            "free": COUNT,
            "repeaters": COUNT,
            "pipeline": STRING,
            "head": ref(POSITION),
            "matched": ref(POSITION),
            "stored": maybe(ref(POSITION)),
            "lag": COUNT,
            "lag_seconds": NUMBER,
        },
        optional={
            "listeners": {"type": "object", "additionalProperties": COUNT},
            "lanes": {"type": "object", "additionalProperties": OBJECT},
            "queries": {"type": "object", "additionalProperties": NUMBER},
            "lake": OBJECT,
        },
        about="How far log, matching and history are. How much there is, and who listens, is told to administrators.",
    ),
    "Flow": record(
        {
            "stream": STRING,
            "clients": COUNT,
            "messages": COUNT,
            "plain_bytes": COUNT,
            "sent_bytes": COUNT,
            "dropped": COUNT,
            "waiting": COUNT,
            "window": NUMBER,
        },
        about="What flows out of one stream.",
    ),
    "Streams": record({"streams": some(OBJECT)}, optional={"notifications": ref("Flow")}),
    "Profile": record(
        {"stream": STRING, "title": STRING, "url": STRING, "about": STRING, "history": STRING, "listen": OBJECT},
        optional={
            "events": COUNT,
            "bytes": COUNT,
            "rate": NUMBER,
            "since": TIME,
            "until": TIME,
            "kept": maybe(STRING),
            "vocabularies": some(STRING),
            "sample": OBJECT,
            "shapes": OBJECT,
        },
        about="What is known of one stream.",
    ),
    "About": record(
        {},
        optional={
            "title": _SAID,
            "description": _SAID,
            "licence": {"type": "string", "format": "iri"},
            "keywords": some(_SAID, most=limits.ABOUT_KEYWORDS),
            "version_of": {"type": "string", "format": "iri"},
        },
        about="What people say about a stream.",
    ),
    "Edge": record(
        {
            "name": STRING,
            "pid": COUNT,
            "door": STRING,
            "state": one_of(("starting", "ready", "closing")),
            "since": MICROSECONDS,
            "at": MICROSECONDS,
            "cpu": NUMBER,
            "memory": COUNT,
            "listeners": {"type": "object", "additionalProperties": COUNT},
            "seats": COUNT,
            "published": COUNT,
            "streams": some(ref("Flow")),
        },
        about="How one edge stands.",
    ),
    "Edges": record({"edges": some(ref("Edge"))}),
    "Announcement": record(
        {"streams": _ADDRESSES},
        optional={"load": _FRACTION, "free": COUNT},
        about="Where streams can be heard as well.",
    ),
    "Repeater": record({"id": STRING, "streams": _ADDRESSES, "load": NUMBER, "free": COUNT, "at": MICROSECONDS}),
    "Repeaters": record({"repeaters": some(ref("Repeater"))}),
    "Erasure": record(
        {
            "id": STRING,
            "erases": one_of(("event", "source", "subject")),
            "sha256": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
            "by": maybe(STRING),
            "requested": TIME,
            "position": ref(POSITION),
            "steps": some(
                record({"step": STRING, "state": one_of(("waiting", "done")), "at": maybe(TIME)}),
            ),
            "counts": {"type": "object", "additionalProperties": COUNT},
            "completed": maybe(TIME),
        },
        about="How far an erasure is; it never says what is erased.",
    ),
    "ErasurePage": record({"erasures": some(ref("Erasure")), "next": maybe(ref(POSITION))}),
}
