"""Solos: one subscription alone, to be asked of events that came before it."""

from __future__ import annotations

from collections.abc import Iterable

from triplewire.matching.evaluator import Evaluator
from triplewire.matching.shapes import Shape
from triplewire.model import Subscription
from triplewire.sparql import Conjunction
from triplewire.sparql.algebra import Const
from triplewire.sparql.compiler.scans import header_column
from triplewire.sparql.compiler.subscriptions import required_patterns
from triplewire.storage.registry.ports import RegistryChange
from triplewire.storage.registry.subscriptions import SHAPE, SUBSCRIPTION, subscription_to_value

SINCE = 0
"""The position at which it is made up, so that it sees every event; its matches name it by this."""


def solo(subscription: Subscription, shape: Shape, ontologies: Iterable[RegistryChange] = ()) -> Evaluator:
    """An evaluator that knows this one subscription. `ontologies` are the changes that loaded those which count."""
    evaluator = Evaluator()
    made = RegistryChange(SINCE, SUBSCRIPTION, subscription.id, subscription_to_value(subscription))
    evaluator.apply([*ontologies, RegistryChange(SINCE, SHAPE, shape.key, shape.to_value()), made], SINCE)
    return evaluator


def predicates(shape: Shape) -> tuple[str, ...]:
    """Those that an event surely has if it matches, in order. What has none may match any event."""
    query = shape.query
    patterns = query.patterns if isinstance(query, Conjunction) else required_patterns(query.where)
    stored = [each.predicate for each in patterns if header_column(each) is None]
    return tuple(sorted({each.term for each in stored if isinstance(each, Const)}))
