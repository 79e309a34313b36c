"""Subscribing: subscriptions, templates and ontologies, as they are asked for and as they are told."""

from __future__ import annotations

from typing import Any

from triplewire.config import limits
from triplewire.contract.schemas.forms import (
    BOOLEAN,
    COUNT,
    OBJECT,
    STRING,
    TIME,
    Schema,
    either,
    maybe,
    one_of,
    record,
    ref,
    some,
)
from triplewire.contract.schemas.shared import POSITION, PROBLEM

_TEXT: Schema = {"type": "string", "minLength": 1, "maxLength": limits.HEADER_CHARACTERS}
_NAMES = maybe(either(_TEXT, some(_TEXT, 1, limits.NARROWING_VALUES)))
_STREAMS = maybe(either(ref("StreamName"), some(ref("StreamName"), 1, limits.NARROWING_VALUES)))
_TYPES = ("term", "iri", "literal", "string", "integer", "decimal", "double", "boolean", "dateTime", "date")
_PARAMETERS: Schema = {
    "type": "object",
    "additionalProperties": record({}, optional={"type": one_of(_TYPES)}, closed=True),
}

_ASKED: dict[str, Any] = {
    "sparql": STRING,
    "filter": some(ref("Constraint"), 0, limits.FILTER_CONSTRAINTS),
    "filters": some(some(ref("Constraint"), 0, limits.FILTER_CONSTRAINTS), 1, limits.FILTERS),
    "prefixes": {"type": "object", "additionalProperties": STRING},
    "template": STRING,
    "values": OBJECT,
    "version": ref(POSITION),
    "kind": ref("Kind"),
    "ttl": {"type": "number", "minimum": limits.LEASE_SECONDS_LEAST, "maximum": limits.LEASE_SECONDS_MOST},
    "entailment": one_of(("rdfs",)),
    "from": {"type": "string", "description": "`earliest`, a position, or a time with its zone"},
    "webhook": ref("Webhook"),
    "stream": _STREAMS,
    "source": _NAMES,
    "application": _NAMES,
    "vocabulary": _NAMES,
}

SUBSCRIBING: dict[str, Schema] = {
    "Kind": one_of(("signal", "bindings", "event")),
    "Constraint": record(
        {"attribute": STRING, "op": STRING, "value": {}},
        optional={"strict": BOOLEAN},
        closed=True,
        about="A constraint on an attribute, by content or by meaning.",
    ),
    "Wish": {
        **record({}, optional=_ASKED, closed=True, about="What is asked for when a subscription is made."),
        "minProperties": 1,
    },
    "Wishes": either(ref("Wish"), some(ref("Wish"), 1)),
    "Subscription": record(
        {
            "id": STRING,
            "kind": ref("Kind"),
            "stream": _STREAMS,
            "created": TIME,
            "since": ref(POSITION),
            "notifications": {"type": "string", "format": "uri-reference"},
        },
        optional={
            **{name: schema for name, schema in _ASKED.items() if name not in ("kind", "stream")},
            "sharing": COUNT,
            "lane": OBJECT,
            "expires": TIME,
        },
        about="A standing question, and where it is told of.",
    ),
    "Subscriptions": either(ref("Subscription"), some(ref("Subscription"))),
    "SubscriptionPage": record({"subscriptions": some(ref("Subscription")), "next": maybe(ref(POSITION))}),
    "MadeLine": either(
        record({"line": COUNT, "id": STRING, "position": ref(POSITION)}), record({"line": COUNT, "error": ref(PROBLEM)})
    ),
    "Rehearsal": record(
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
    "Explanation": record(
        {
            "subscription": STRING,
            "event": STRING,
            "position": ref(POSITION),
            "held": BOOLEAN,
            "matched": BOOLEAN,
            "failed": maybe(OBJECT),
            "steps": OBJECT,
        },
        about="Why a subscription matched an event, or not.",
    ),
    "QueryForm": {"type": "object", "required": ["query"], "properties": {"query": STRING}},
    "TemplateText": record({"sparql": STRING}, optional={"parameters": maybe(_PARAMETERS)}, closed=True),
    "Template": record({"name": STRING, "version": ref(POSITION), "sparql": STRING, "parameters": _PARAMETERS}),
    "Templates": record({"templates": some(ref("Template"))}),
    "Ontology": record(
        {"name": STRING, "version": ref(POSITION), "triples": COUNT, "classes": COUNT, "properties": COUNT}
    ),
    "Ontologies": record({"ontologies": some(ref("Ontology"))}),
}
