"""Documents: subscriptions, templates and ontologies as clients see them."""

from __future__ import annotations

from typing import Any

import orjson

from triplewire.control.beginnings import written
from triplewire.control.wishes import Wish
from triplewire.matching.results import format_timestamp
from triplewire.model import Subscription, format_position
from triplewire.model.subscriptions import ContinuousQuery
from triplewire.storage.registry.ontologies import LoadedOntology
from triplewire.storage.registry.subscriptions import Lane, QueryTemplate, narrowing_fields
from triplewire.storage.webhooks import Webhook


def subscription(made: Subscription) -> dict[str, Any]:
    """With the fields that it was made of, those that say anything; `stream` is always there."""
    return {
        "id": made.id,
        **_given(sparql=made.sparql),
        **orjson.loads(made.filter or "{}"),
        "kind": made.kind.value,
        "stream": None,
        **narrowing_fields(made),
        **_instance(made),
        **_given(ttl=made.ttl, entailment=made.entailment),
        "created": format_timestamp(made.created),
        "since": format_position(made.made),
        **({} if made.begins is None else {"from": written(made.begins)}),
        "notifications": f"/subscriptions/{made.id}/notifications",
    }


def query(found: ContinuousQuery) -> dict[str, Any]:
    """A continuous query as its owner sees it."""
    semantics = {"semantics": "set" if found.distinct else "bag"}
    clock = {"time": found.time.value, "lateness": found.lateness, "late": found.late.value}
    published = {} if found.into is None else {"into": found.into, "stream": f"/streams/{found.into}"}
    return {
        "id": found.id,
        "query": found.text,
        **_given(name=found.name),
        "state": found.state.value,
        **(clock if found.windowed else semantics),
        **_given(streams=found.streams, within=found.within, span=found.span),
        **published,
        "created": format_timestamp(found.created),
        "since": format_position(found.since),
        **({} if found.begins is None else {"from": written(found.begins)}),
        "answers": f"/queries/{found.id}/answers",
    }


def made(found: Subscription, wish: Wish) -> dict[str, Any]:
    """The same to whoever has just made it: with the secret of its webhook, where that was made here."""
    told = subscription(found)
    return told if wish.webhook is None else {**told, "webhook": wish.webhook.told()}


def webhook(hook: Webhook) -> dict[str, Any]:
    return {"url": hook.url, "state": hook.state.value, **_given(attempts=hook.attempts)}


def lane(slow: Lane) -> dict[str, Any]:
    """Why a subscription is told later than others: since when, and the CPU time that an event took it then."""
    return {"name": "slow", "since": format_position(slow.since), "milliseconds_per_event": round(slow.cost * 1_000, 3)}


def template(found: QueryTemplate) -> dict[str, Any]:
    return {
        "name": found.name,
        "version": format_position(found.version),
        "sparql": found.sparql,
        "parameters": {name: {"type": type} for name, type in found.parameters.items()},
    }


def ontology(loaded: LoadedOntology) -> dict[str, Any]:
    """What is told of an ontology beside its triples."""
    return {
        "name": loaded.name,
        "version": format_position(loaded.version),
        "triples": loaded.triples,
        "classes": loaded.classes,
        "properties": loaded.properties,
    }


def _instance(made: Subscription) -> dict[str, Any]:
    if made.template is None:
        return {}
    name, version = made.template
    return {"template": name, "version": format_position(version), "values": dict(made.values)}


def _given(**fields: object) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
