"""Subscriptions to test matching with, as the registry would tell of them."""

from __future__ import annotations

from triplewire.matching.shapes import lift
from triplewire.model import Kind, Subscription
from triplewire.registry.ports import Change
from triplewire.registry.subscriptions import SHAPE, SUBSCRIPTION, to_value
from triplewire.sparql import parse_query


def registered(position: int, sparql: str, kind: Kind = Kind.BINDINGS, stream: str | None = None) -> list[Change]:
    """The changes that making a subscription at a position leads to; its id is its position."""
    lifted = lift(parse_query(sparql), solutions=kind is Kind.BINDINGS, stream=stream)
    made = Subscription(str(position), sparql, kind, lifted.shape.key, lifted.constants, stream)
    return [
        Change(position, SHAPE, lifted.shape.key, lifted.shape.to_value()),
        Change(position, SUBSCRIPTION, made.id, to_value(made)),
    ]


def ended(position: int, id: int) -> Change:
    return Change(position, SUBSCRIPTION, str(id), None)
