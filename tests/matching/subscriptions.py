"""Subscriptions to test matching with, as the registry would tell of them."""

from __future__ import annotations

from triplewire.matching.shapes import lift
from triplewire.model import Kind, Subscription
from triplewire.sparql import parse_query
from triplewire.storage.registry.ports import RegistryChange
from triplewire.storage.registry.subscriptions import SHAPE, SUBSCRIPTION, subscription_to_value


def registered(
    position: int, sparql: str, kind: Kind = Kind.BINDINGS, stream: str | None = None
) -> list[RegistryChange]:
    """The changes that making a subscription at a position leads to; its id is its position."""
    lifted = lift(parse_query(sparql), solutions=kind is Kind.BINDINGS, stream=stream)
    made = Subscription(str(position), sparql, kind, lifted.shape.key, lifted.constants, stream)
    return [
        RegistryChange(position, SHAPE, lifted.shape.key, lifted.shape.to_value()),
        RegistryChange(position, SUBSCRIPTION, made.id, subscription_to_value(made)),
    ]


def ended(position: int, id: int) -> RegistryChange:
    return RegistryChange(position, SUBSCRIPTION, str(id), None)
