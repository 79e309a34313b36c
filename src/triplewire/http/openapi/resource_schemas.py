"""JSON schemas of registry resources, webhooks, tokens and operations, and the table of all schemas by name."""

from __future__ import annotations

from typing import Any, Final

from triplewire.http.openapi.schemas import (
    BOOLEAN,
    CLIENT_MESSAGE_SCHEMAS,
    COUNT,
    MESSAGE_SCHEMAS,
    MICROSECONDS,
    NUMBER,
    OBJECT,
    POSITION,
    PROBLEM,
    PUBLISH_SCHEMAS,
    SHARED_SCHEMAS,
    STRING,
    TIME,
    Schema,
    any_of,
    array_schema,
    enum_schema,
    nullable,
    object_schema,
    ref,
)
from triplewire.matching.filters import FILTER_CONSTRAINTS, FILTERS
from triplewire.rdf.terms import HEADER_CHARACTERS
from triplewire.security.tokens import TOKEN_CHARACTERS, TOKEN_GRANTS
from triplewire.security.webhooks import WEBHOOK_ATTEMPTS_MOST, WEBHOOK_URL_CHARACTERS
from triplewire.sparql.syntax.windows import QUERY_WINDOW_DAYS
from triplewire.storage.registry.ports import PAGE_ENTRIES
from triplewire.storage.registry.streams import DESCRIPTION_CHARACTERS, DESCRIPTION_KEYWORDS
from triplewire.storage.registry.subscriptions import LEASE_SECONDS_LEAST, LEASE_SECONDS_MOST, SELECTOR_VALUES

RELAY_STREAMS: Final = 256
"""Tables in the file of a relay. Each has a connection of its own to the edge above."""


_NAME: Schema = {"type": "string", "minLength": 1, "maxLength": HEADER_CHARACTERS}
_NAMES = nullable(any_of(_NAME, array_schema(_NAME, 1, SELECTOR_VALUES)))
_STREAMS = nullable(any_of(ref("StreamName"), array_schema(ref("StreamName"), 1, SELECTOR_VALUES)))
_TYPES = ("term", "iri", "literal", "string", "integer", "decimal", "double", "boolean", "dateTime", "date")
_PARAMETERS: Schema = {
    "type": "object",
    "additionalProperties": object_schema({}, optional={"type": enum_schema(_TYPES)}, closed=True),
}

_SUBSCRIPTION_FIELDS: dict[str, Any] = {
    "sparql": STRING,
    "filter": array_schema(ref("Constraint"), 0, FILTER_CONSTRAINTS),
    "filters": array_schema(array_schema(ref("Constraint"), 0, FILTER_CONSTRAINTS), 1, FILTERS),
    "prefixes": {"type": "object", "additionalProperties": STRING},
    "template": STRING,
    "values": OBJECT,
    "version": ref(POSITION),
    "kind": ref("Kind"),
    "ttl": {"type": "number", "minimum": LEASE_SECONDS_LEAST, "maximum": LEASE_SECONDS_MOST},
    "entailment": enum_schema(("rdfs",)),
    "from": {"type": "string", "description": "`earliest`, a position, or a time with its zone"},
    "webhook": ref("Webhook"),
    "stream": _STREAMS,
    "source": _NAMES,
    "application": _NAMES,
    "vocabulary": _NAMES,
}

SUBSCRIPTION_SCHEMAS: dict[str, Schema] = {
    "Kind": enum_schema(("signal", "bindings", "event")),
    "Constraint": object_schema(
        {"attribute": STRING, "op": STRING, "value": {}},
        optional={"strict": BOOLEAN},
        closed=True,
        about="A constraint on an attribute, by content or by meaning.",
    ),
    "Wish": {
        **object_schema(
            {}, optional=_SUBSCRIPTION_FIELDS, closed=True, about="What is asked for when a subscription is made."
        ),
        "minProperties": 1,
    },
    "Wishes": any_of(ref("Wish"), array_schema(ref("Wish"), 1)),
    "Subscription": object_schema(
        {
            "id": STRING,
            "kind": ref("Kind"),
            "stream": _STREAMS,
            "created": TIME,
            "since": ref(POSITION),
            "notifications": {"type": "string", "format": "uri-reference"},
        },
        optional={
            **{name: schema for name, schema in _SUBSCRIPTION_FIELDS.items() if name not in ("kind", "stream")},
            "sharing": COUNT,
            "lane": OBJECT,
            "expires": TIME,
        },
        about="A standing question, and where it is told of.",
    ),
    "Subscriptions": any_of(ref("Subscription"), array_schema(ref("Subscription"))),
    "SubscriptionPage": object_schema(
        {"subscriptions": array_schema(ref("Subscription")), "next": nullable(ref(POSITION))}
    ),
    "MadeLine": any_of(
        object_schema({"line": COUNT, "id": STRING, "position": ref(POSITION)}),
        object_schema({"line": COUNT, "error": ref(PROBLEM)}),
    ),
    "Rehearsal": object_schema(
        {
            "shape": OBJECT,
            "tier": STRING,
            "plan": OBJECT,
            "matched": COUNT,
            "of": COUNT,
            "complete": BOOLEAN,
            "examples": {"type": "array"},
        },
        about="What a subscription would have matched of late.",
    ),
    "Explanation": object_schema(
        {
            "subscription": STRING,
            "event": STRING,
            "position": ref(POSITION),
            "held": BOOLEAN,
            "matched": BOOLEAN,
            "failed": nullable(OBJECT),
            "steps": OBJECT,
        },
        about="Why a subscription matched an event, or not.",
    ),
    "QueryForm": {"type": "object", "required": ["query"], "properties": {"query": STRING}},
    "TemplateText": object_schema({"sparql": STRING}, optional={"parameters": nullable(_PARAMETERS)}, closed=True),
    "Template": object_schema({"name": STRING, "version": ref(POSITION), "sparql": STRING, "parameters": _PARAMETERS}),
    "Templates": object_schema({"templates": array_schema(ref("Template"))}),
    "Ontology": object_schema(
        {"name": STRING, "version": ref(POSITION), "triples": COUNT, "classes": COUNT, "properties": COUNT}
    ),
    "Ontologies": object_schema({"ontologies": array_schema(ref("Ontology"))}),
}


# Continuing: continuous queries, as they are asked for and as they are told.

_SECONDS: Schema = {"type": "number", "minimum": 0, "maximum": QUERY_WINDOW_DAYS * 86_400}
DURATION_SCHEMA = any_of(_SECONDS, {"type": "string", "description": "A duration such as PT10M"})
SPAN_SCHEMA: Schema = {"type": "integer", "minimum": 1, "maximum": 2**53}
START_SCHEMA: Schema = {"type": "string", "description": "`earliest`, a position, or a time with its zone"}

_QUERY_FIELDS: dict[str, Any] = {
    "query": {"type": "string", "minLength": 1, "description": "SPARQL, or RSP-QL with its windows"},
    "name": {"type": "string", "minLength": 1, "maxLength": HEADER_CHARACTERS},
    "semantics": enum_schema(("bag", "set")),
    "streams": any_of(ref("StreamName"), array_schema(ref("StreamName"), 1, SELECTOR_VALUES)),
    "within": DURATION_SCHEMA,
    "span": SPAN_SCHEMA,
    "from": START_SCHEMA,
    "time": enum_schema(("arrival", "event")),
    "lateness": DURATION_SCHEMA,
    "late": enum_schema(("drop", "revise")),
    "into": ref("StreamName"),
}
_ADDRESS: Schema = {"type": "string", "format": "uri-reference"}

QUERY_SCHEMAS: dict[str, Schema] = {
    "Inquiry": object_schema(
        {"query": _QUERY_FIELDS["query"]},
        optional={name: nullable(each) for name, each in _QUERY_FIELDS.items() if name != "query"},
        closed=True,
        about="What is asked for when a continuous query is registered.",
    ),
    "Inquiries": any_of(ref("Inquiry"), array_schema(ref("Inquiry"), 1)),
    "ContinuousQuery": object_schema(
        {
            "id": STRING,
            "query": STRING,
            "state": enum_schema(("on", "suspended")),
            "created": TIME,
            "since": ref(POSITION),
            "answers": _ADDRESS,
        },
        optional={
            **{name: schema for name, schema in _QUERY_FIELDS.items() if name != "query"},
            "stream": _ADDRESS,
            "figures": OBJECT,
        },
        about="A standing question across events, and where its answers are told.",
    ),
    "ContinuousQueries": any_of(ref("ContinuousQuery"), array_schema(ref("ContinuousQuery"))),
    "QueryPage": object_schema({"queries": array_schema(ref("ContinuousQuery")), "next": nullable(ref(POSITION))}),
}


# Hooking: webhooks, those who are told by WebSub, and what was not taken.

_URL: Schema = {"type": "string", "format": "uri", "maxLength": WEBHOOK_URL_CHARACTERS}

WEBHOOK_SCHEMAS: dict[str, Schema] = {
    "Webhook": object_schema(
        {"url": _URL},
        optional={
            "secret": {"type": "string", "description": "`whsec_` and 24 to 64 bytes in base64; made if left out"},
            "attempts": {"type": "integer", "minimum": 1, "maximum": WEBHOOK_ATTEMPTS_MOST},
            "state": enum_schema(("on", "gone", "ended")),
        },
        about="Where notifications are sent. The secret is told once, where it was made here.",
    ),
    "Hook": object_schema(
        {
            "id": STRING,
            "dialect": enum_schema(("webhook", "websub")),
            "url": STRING,
            "state": enum_schema(("on", "gone", "ended")),
            "created": TIME,
            "position": ref(POSITION),
            "failures": COUNT,
            "parked": COUNT,
        },
        optional={"stream": STRING, "topic": STRING, "expires": TIME, "reason": STRING},
        about="Who is told by POST, and how far it is.",
    ),
    "HookPage": object_schema({"hooks": array_schema(ref("Hook")), "next": nullable(ref(POSITION))}),
    "Letter": object_schema(
        {
            "id": STRING,
            "position": ref(POSITION),
            "attempts": COUNT,
            "status": nullable(COUNT),
            "reason": STRING,
            "parked": TIME,
        },
        about="A message that was not taken, whatever was tried.",
    ),
    "LetterPage": object_schema({"letters": array_schema(ref("Letter")), "next": nullable(ref(POSITION))}),
    "Positions": object_schema({}, optional={"positions": array_schema(ref(POSITION), 0, PAGE_ENTRIES)}, closed=True),
    "Replay": object_schema({"id": STRING, "replaying": COUNT}),
    "Intent": object_schema(
        {
            "hub.mode": enum_schema(("subscribe", "unsubscribe")),
            "hub.topic": {"type": "string", "format": "uri"},
            "hub.callback": _URL,
        },
        optional={"hub.lease_seconds": {"type": "string", "pattern": "^[0-9]*$"}, "hub.secret": STRING},
    ),
}


# Admitting: tokens, as they are ordered and told of.

_TOKEN_TEXT: Schema = {"type": "string", "minLength": 1, "maxLength": TOKEN_CHARACTERS}
_GRANT: Schema = {
    "type": "string",
    "pattern": r"^(\*|admin|(publish|consume|subscribe|query)(:[A-Za-z0-9._~-]*\*?)?)$",
    "examples": ["publish:home", "consume:city-*", "query", "admin", "*"],
}
_LIFETIME: Schema = {"type": "string", "pattern": "^[1-9][0-9]{0,5}[smhdw]$", "examples": ["30d"]}
_TOKEN_FIELDS: dict[str, Schema] = {
    "id": STRING,
    "name": STRING,
    "allow": array_schema(STRING),
    "roles": array_schema(STRING),
    "state": enum_schema(("good", "expired", "revoked")),
    "created": TIME,
    "expires": nullable(TIME),
    "revoked": nullable(TIME),
}

TOKEN_SCHEMAS: dict[str, Schema] = {
    "TokenOrder": object_schema(
        {"name": _TOKEN_TEXT, "allow": array_schema(_GRANT, 1, TOKEN_GRANTS // 2)},
        optional={"roles": array_schema(_TOKEN_TEXT, most=TOKEN_GRANTS // 2), "expires": _LIFETIME},
        closed=True,
        about="A token that somebody wants: what for, what it lets do, and for how long.",
    ),
    "Token": object_schema(_TOKEN_FIELDS, about="A token, without its secret."),
    "NewToken": object_schema({**_TOKEN_FIELDS, "token": STRING}, about="A token that was just made, with its text."),
    "Tokens": object_schema({"tokens": array_schema(ref("Token"))}),
}


# Running: how things stand, what is repeated, and what is erased.

_FRACTION: Schema = {"type": "number", "minimum": 0, "maximum": 1}
_SAID: Schema = {"type": "string", "minLength": 1, "maxLength": DESCRIPTION_CHARACTERS}
_ADDRESSES: Schema = {
    "type": "object",
    "additionalProperties": {"type": "string", "format": "uri"},
    "minProperties": 1,
    "maxProperties": RELAY_STREAMS,
}

OPERATION_SCHEMAS: dict[str, Schema] = {
    "Index": {"type": "object", "additionalProperties": STRING, "required": ["name"]},
    "Health": object_schema(
        {
            "status": enum_schema(("ok", "lagging", "starting", "down")),
            "edge": STRING,
            "load": NUMBER,
            "free": COUNT,
            "repeaters": COUNT,
            "pipeline": STRING,
            "head": ref(POSITION),
            "matched": ref(POSITION),
            "stored": nullable(ref(POSITION)),
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
    "Flow": object_schema(
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
    "Streams": object_schema({"streams": array_schema(OBJECT)}, optional={"notifications": ref("Flow")}),
    "Profile": object_schema(
        {"stream": STRING, "title": STRING, "url": STRING, "about": STRING, "history": STRING, "listen": OBJECT},
        optional={
            "events": COUNT,
            "bytes": COUNT,
            "rate": NUMBER,
            "since": TIME,
            "until": TIME,
            "kept": nullable(STRING),
            "vocabularies": array_schema(STRING),
            "sample": OBJECT,
            "shapes": OBJECT,
        },
        about="What is known of one stream.",
    ),
    "About": object_schema(
        {},
        optional={
            "title": _SAID,
            "description": _SAID,
            "licence": {"type": "string", "format": "iri"},
            "keywords": array_schema(_SAID, most=DESCRIPTION_KEYWORDS),
            "version_of": {"type": "string", "format": "iri"},
        },
        about="What people say about a stream.",
    ),
    "Edge": object_schema(
        {
            "name": STRING,
            "pid": COUNT,
            "door": STRING,
            "state": enum_schema(("starting", "ready", "closing")),
            "since": MICROSECONDS,
            "at": MICROSECONDS,
            "cpu": NUMBER,
            "memory": COUNT,
            "listeners": {"type": "object", "additionalProperties": COUNT},
            "seats": COUNT,
            "published": COUNT,
            "streams": array_schema(ref("Flow")),
        },
        about="How one edge stands.",
    ),
    "Edges": object_schema({"edges": array_schema(ref("Edge"))}),
    "Announcement": object_schema(
        {"streams": _ADDRESSES},
        optional={"load": _FRACTION, "free": COUNT},
        about="Where streams can be heard as well.",
    ),
    "Repeater": object_schema({"id": STRING, "streams": _ADDRESSES, "load": NUMBER, "free": COUNT, "at": MICROSECONDS}),
    "Repeaters": object_schema({"repeaters": array_schema(ref("Repeater"))}),
    "Erasure": object_schema(
        {
            "id": STRING,
            "erases": enum_schema(("event", "source", "subject")),
            "sha256": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
            "by": nullable(STRING),
            "requested": TIME,
            "position": ref(POSITION),
            "steps": array_schema(
                object_schema({"step": STRING, "state": enum_schema(("waiting", "done")), "at": nullable(TIME)}),
            ),
            "counts": {"type": "object", "additionalProperties": COUNT},
            "completed": nullable(TIME),
        },
        about="How far an erasure is; it never says what is erased.",
    ),
    "ErasurePage": object_schema({"erasures": array_schema(ref("Erasure")), "next": nullable(ref(POSITION))}),
}


# All schemas that have a name.

SCHEMAS: dict[str, Schema] = {
    **SHARED_SCHEMAS,
    **PUBLISH_SCHEMAS,
    **SUBSCRIPTION_SCHEMAS,
    **QUERY_SCHEMAS,
    **MESSAGE_SCHEMAS,
    **CLIENT_MESSAGE_SCHEMAS,
    **OPERATION_SCHEMAS,
    **WEBHOOK_SCHEMAS,
    **TOKEN_SCHEMAS,
}
