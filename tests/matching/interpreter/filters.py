"""Filters one by one: what singles say of documents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tests.matching.filters.worlds import EX
from tests.matching.interpreter.oracles import batch
from triplewire.matching.evaluator import open_evaluator_engine
from triplewire.matching.filters import document_query
from triplewire.matching.interpreter.matcher import InterpreterBatch, interpret_shape
from triplewire.matching.interpreter.runs import OntologyRows
from triplewire.matching.shapes import LiftedShape, Shape, lift
from triplewire.matching.tables import OntologyClosure
from triplewire.model import Event, Kind, Subscription
from triplewire.storage.registry.ports import RegistryChange

Document = Mapping[str, Any]


def lifted(document: Document) -> LiftedShape:
    """With the shape as it is after it was in the registry."""
    found = lift(document_query({"prefixes": {"ex": EX}, **document}), solutions=False)
    return LiftedShape(Shape.from_value(found.shape.to_value()), found.constants)


def ontologies(changes: Iterable[RegistryChange]) -> OntologyRows:
    closures = OntologyClosure(open_evaluator_engine())
    for each in changes:
        closures.apply(each)
    closures.prepare()
    return OntologyRows(closures.rows)


def singly(document: Document, events: Sequence[Event], known: OntologyRows | None = None) -> list[bool | None]:
    """What is decided one by one of each event; None for what is not."""
    asked, table = lifted(document), batch(events)
    subscription = Subscription("1", "", Kind.SIGNAL, asked.shape.key, asked.constants, since=1)
    pairs = [(place, subscription) for place in range(len(events))]
    found, left = InterpreterBatch(table, known).decide(pairs, interpret_shape(asked.shape))
    matched, undecided = {*found["position"].to_pylist()}, {place for place, _ in left}
    positions = table["position"].to_pylist()
    return [None if place in undecided else position in matched for place, position in enumerate(positions)]
