"""Subscriptions as registry entries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

from triplewire.config import limits
from triplewire.model import Kind, Subscription
from triplewire.model.subscriptions import Names, Owner
from triplewire.registry.ports import Change, Registry

SUBSCRIPTION = "subscription"
SHAPE = "shape"
ENTAILED = "entailed"
"""The kind of an entry beside each subscription that follows ontologies, under its id, to find them by."""

NARROWING = ("stream", "source", "application", "vocabulary")


def owned_by(name: str) -> str:
    """The kind of an entry beside each subscription of somebody, under its id, to find them by."""
    return f"subscription of {name}"


def to_value(subscription: Subscription) -> Mapping[str, Any]:
    """What is stored under (`subscription`, id). `since` is not in it: it is the position of the change itself."""
    return {
        "sparql": subscription.sparql,
        "kind": subscription.kind.value,
        "shape": subscription.shape,
        "constants": subscription.constants,
        "created": subscription.created,
        **asked_of(subscription),
        **({} if subscription.filter is None else {"filter": subscription.filter}),
        **({} if subscription.ttl is None else {"ttl": subscription.ttl}),
        **({} if subscription.entailment is None else {"entailment": subscription.entailment}),
        **({} if subscription.begins is None else {"from": subscription.begins, "ontologies": subscription.ontologies}),
        **({} if subscription.first is None else {"first": subscription.first, "earlier": subscription.earlier}),
        **({} if subscription.owner is None else {"owner": vars(subscription.owner)}),
        **({} if subscription.sight is None else {"sight": subscription.sight}),
        **({} if subscription.template is None else {"template": subscription.template}),
        **({} if subscription.template is None else {"values": subscription.values}),
    }


def from_change(change: Change) -> Subscription:
    """The subscription that a change made. A removal makes none: raises ValueError."""
    if change.value is None:
        raise ValueError(f"{change.kind} {change.key} was removed at {change.position}")
    value = change.value
    return Subscription(
        id=change.key,
        sparql=value["sparql"],
        kind=Kind(value["kind"]),
        shape=value["shape"],
        constants=tuple(value["constants"]),
        template=tuple(value["template"]) if "template" in value else None,
        values=tuple((name, term) for name, term in value.get("values", ())),
        filter=value.get("filter"),
        ttl=value.get("ttl"),
        entailment=value.get("entailment"),
        begins=value.get("from"),
        ontologies=tuple(value.get("ontologies", ())),
        earlier=tuple(value.get("earlier", ())),
        first=value.get("first"),
        owner=owner_in(value.get("owner")),
        sight=value.get("sight"),
        created=value["created"],
        since=change.position,
        stream=_names(value.get("stream")),
        source=_names(value.get("source")),
        application=_names(value.get("application")),
        vocabulary=_names(value.get("vocabulary")),
    )


def asked_of(subscription: Subscription) -> dict[str, Any]:
    """The fields that say of which events alone it is told, those that say anything."""
    return {name: given for name in NARROWING if (given := getattr(subscription, name)) is not None}


def revised(
    subscription: Subscription, shape: str, constants: tuple[str, ...], sight: str | None = None
) -> Subscription:
    """Its next version, which begins where it is stored, and shows what is in a sight."""
    earlier = (*subscription.earlier, subscription.since)[-limits.VERSIONS :]
    asked = replace(subscription, shape=shape, constants=constants, sight=sight)
    return replace(asked, earlier=earlier, first=subscription.made)


def versions(registry: Registry, newest: Subscription) -> list[Subscription]:
    """All versions of a subscription that are remembered, in order, each with its end."""
    changes = [change for since in newest.earlier for change in registry.changes(since - 1, since)]
    begun = [*(from_change(change) for change in changes), newest]
    return [*(ended(one, after.since) for one, after in pairwise(begun)), newest]


def original(registry: Registry, newest: Subscription) -> Subscription:
    """The first version of a subscription, by which its past is matched."""
    (change,) = registry.changes(newest.made - 1, newest.made)
    return from_change(change)


def ended(subscription: Subscription, position: int) -> Subscription:
    """The same subscription, ended at a position."""
    return replace(subscription, until=position)


def owner_in(value: Mapping[str, Any] | None) -> Owner | None:
    """Who is kept so in an entry."""
    return None if value is None else Owner(value["name"], tuple(value["grants"]), tuple(value["roles"]))


def _names(value: str | list[str] | None) -> Names:
    return tuple(value) if isinstance(value, list) else value
