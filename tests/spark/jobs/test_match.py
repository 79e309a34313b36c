"""The `match` transform as a worker runs it, without Spark around it."""

from __future__ import annotations

import gc
import pickle
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from tests.matching.subscriptions import registered
from triplewire.config import Settings
from triplewire.matching.filters import document_query
from triplewire.matching.shapes import lift
from triplewire.model import MATCHED_COLUMNS, Event, Kind, Subscription
from triplewire.model.terms import RDF_TYPE
from triplewire.service.wiring import pipeline_ports
from triplewire.spark.jobs.match import open_matcher
from triplewire.spark.jobs.ports import JobPorts
from triplewire.storage.log.ports import Publication
from triplewire.storage.outbox import OutboxLane
from triplewire.storage.registry.ontologies import ONTOLOGY, LoadedOntology
from triplewire.storage.registry.ontologies import ontology_to_value as ontology_value
from triplewire.storage.registry.subscriptions import SHAPE, SUBSCRIPTION, subscription_to_value
from triplewire.testing import event
from triplewire.testing.samples import EXAMPLE


@pytest.fixture(autouse=True)
def _as_in_a_worker() -> Iterator[None]:
    """A worker keeps what it makes for as long as it lives; this process lets it go."""
    yield
    gc.unfreeze()


EVERYTHING = f"SELECT * {{ ?o a <{EXAMPLE}Observation> }}"


def registration(ports: JobPorts) -> int:
    changes = registered(0, EVERYTHING)
    positions = ports.open_registry().put([(each.kind, each.key, each.value) for each in changes])
    return positions[-1]


def batch(ports: JobPorts, after: int) -> pa.Table:
    log = ports.open_log()
    log.append([Publication("test", [event(number) for number in range(3)])])
    return log.read(after, log.head(), 100).select(MATCHED_COLUMNS)


def test_ports_open_the_same_stores_in_every_process(tmp_path: Path) -> None:
    ports = pipeline_ports(Settings(data=tmp_path))
    registration(ports)
    entries = batch(ports, 0)
    for copy in [pickle.loads(pickle.dumps(ports)) for _ in range(2)]:
        assert open_matcher(copy, OutboxLane.FAST).match(entries).num_rows == 3


def test_a_matcher_learns_what_was_registered_since(tmp_path: Path) -> None:
    ports = pipeline_ports(Settings(data=tmp_path))
    before, matcher = batch(ports, 0), open_matcher(ports, OutboxLane.FAST)
    assert matcher.match(before).num_rows == 0
    made = registration(ports)
    after = batch(ports, made)
    found = matcher.match(after)
    assert found["position"].to_pylist() == after["position"].to_pylist()


def test_an_ontology_that_changes_within_a_batch_holds_from_there_on(tmp_path: Path) -> None:
    ports = pipeline_ports(Settings(data=tmp_path))
    registry, log = ports.open_registry(), ports.open_log()
    asked = document_query({"filter": [{"attribute": RDF_TYPE[1:-1], "op": "@>", "value": "urn:Animal"}]})
    lifted = lift(asked, solutions=False)
    made = Subscription("s", None, Kind.SIGNAL, lifted.shape.key, lifted.constants)
    registry.put([(SHAPE, lifted.shape.key, lifted.shape.to_value()), (SUBSCRIPTION, "s", subscription_to_value(made))])
    expected = []
    for superclass in ("urn:Animal", "urn:Plant", None, "urn:Animal"):
        line = f"<urn:Cat>\t<http://www.w3.org/2000/01/rdf-schema#subClassOf>\t<{superclass}>"
        loaded = None if superclass is None else ontology_value(LoadedOntology("o", line, 1, 2, 0))
        registry.put([(ONTOLOGY, "o", loaded)])
        ((position,),) = log.append([Publication("test", [Event("urn:event", f"<urn:tom>\t{RDF_TYPE}\t<urn:Cat>")])])
        expected += [position] if superclass == "urn:Animal" else []
    entries = log.read(0, log.head(), 100).select(MATCHED_COLUMNS)
    matcher = open_matcher(ports, OutboxLane.FAST)
    assert matcher.match(entries)["position"].to_pylist() == expected
    parts = [matcher.match(entries.slice(at, 1)) for at in (3, 1, 0, 2)]
    assert sorted(at for each in parts for at in each["position"].to_pylist()) == expected, "in whatever order"
