"""Subscriptions as registry entries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from triplewire.model import Kind, Subscription
from triplewire.registry.ports import Change

SUBSCRIPTION = "subscription"
SHAPE = "shape"


def to_value(subscription: Subscription) -> Mapping[str, Any]:
    """What is stored under (`subscription`, id). `since` is not in it: it is the position of the change itself."""
    return {
        "sparql": subscription.sparql,
        "kind": subscription.kind.value,
        "shape": subscription.shape,
        "constants": list(subscription.constants),
        "stream": subscription.stream,
        "created": subscription.created,
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
        stream=value["stream"],
        created=value["created"],
        since=change.position,
    )


def ended(subscription: Subscription, position: int) -> Subscription:
    """The same subscription, ended at a position."""
    return replace(subscription, until=position)
