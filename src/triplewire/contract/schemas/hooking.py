"""Hooking: webhooks, those who are told by WebSub, and what was not taken."""

from __future__ import annotations

from triplewire.config import limits
from triplewire.contract.schemas.forms import COUNT, STRING, TIME, Schema, maybe, one_of, record, ref, some
from triplewire.contract.schemas.shared import POSITION

_URL: Schema = {"type": "string", "format": "uri", "maxLength": limits.HOOK_URL_CHARACTERS}

HOOKING: dict[str, Schema] = {
    "Webhook": record(
        {"url": _URL},
        optional={
            "secret": {"type": "string", "description": "`whsec_` and 24 to 64 bytes in base64; made if left out"},
            "attempts": {"type": "integer", "minimum": 1, "maximum": limits.HOOK_ATTEMPTS_MOST},
            "state": one_of(("on", "gone", "ended")),
        },
        about="Where notifications are sent. The secret is told once, where it was made here.",
    ),
    "Hook": record(
        {
            "id": STRING,
            "dialect": one_of(("webhook", "websub")),
            "url": STRING,
            "state": one_of(("on", "gone", "ended")),
            "created": TIME,
            "position": ref(POSITION),
            "failures": COUNT,
            "parked": COUNT,
        },
        optional={"stream": STRING, "topic": STRING, "expires": TIME, "reason": STRING},
        about="Who is told by POST, and how far it is.",
    ),
    "HookPage": record({"hooks": some(ref("Hook")), "next": maybe(ref(POSITION))}),
    "Letter": record(
        {
            "id": STRING,
            "position": ref(POSITION),
            "attempts": COUNT,
            "status": maybe(COUNT),
            "reason": STRING,
            "parked": TIME,
        },
        about="A message that was not taken, whatever was tried.",
    ),
    "LetterPage": record({"letters": some(ref("Letter")), "next": maybe(ref(POSITION))}),
    "Positions": record({}, optional={"positions": some(ref(POSITION), 0, limits.PAGE)}, closed=True),
    "Replay": record({"id": STRING, "replaying": COUNT}),
    "Intent": record(
        {
            "hub.mode": one_of(("subscribe", "unsubscribe")),
            "hub.topic": {"type": "string", "format": "uri"},
            "hub.callback": _URL,
        },
        optional={"hub.lease_seconds": {"type": "string", "pattern": "^[0-9]*$"}, "hub.secret": STRING},
    ),
}
