"""Filters one by one: what singles say of documents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tests.filters.worlds import EX
from tests.matching.singles.judges import batch
from triplewire.filters import query_of
from triplewire.matching.evaluator import connection
from triplewire.matching.ontologies import Closures
from triplewire.matching.shapes import Lifted, Shape, lift
from triplewire.matching.singles import Batch, Ontologies, single_of
from triplewire.model import Event, Kind, Subscription
from triplewire.storage.registry.ports import RegistryChange

Document = Mapping[str, Any]


def lifted(document: Document) -> Lifted:
    """With the shape as it is after it was in the registry."""
    found = lift(query_of({"prefixes": {"ex": EX}, **document}), solutions=False)
    return Lifted(Shape.from_value(found.shape.to_value()), found.constants)


def ontologies(changes: Iterable[RegistryChange]) -> Ontologies:
    closures = Closures(connection())
    for each in changes:
        closures.apply(each)
    closures.prepare()
    return Ontologies(closures.rows)


def singly(document: Document, events: Sequence[Event], known: Ontologies | None = None) -> list[bool | None]:
    """What is decided one by one of each event; None for what is not."""
    asked, table = lifted(document), batch(events)
    subscription = Subscription("1", "", Kind.SIGNAL, asked.shape.key, asked.constants, since=1)
    pairs = [(place, subscription) for place in range(len(events))]
    found, left = Batch(table, known).decide(pairs, single_of(asked.shape))
    matched, undecided = {*found["position"].to_pylist()}, {place for place, _ in left}
    positions = table["position"].to_pylist()
    return [None if place in undecided else position in matched for place, position in enumerate(positions)]
