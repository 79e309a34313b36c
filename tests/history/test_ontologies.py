"""Ontologies of queries: what the registry holds now, and queries that go by it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.history.test_executor import history
from triplewire.history.executor import HistoryExecutor, OntologyTables, QueryCompiler
from triplewire.history.requests import HistoryRequest
from triplewire.http.resources.ontologies import OntologyManager as Control
from triplewire.model import Event
from triplewire.model.errors import NotFound, Unsupported
from triplewire.rdf import TURTLE
from triplewire.sparql import parse_query
from triplewire.testing import TWIN_KINDS, open_twin

PREFIX = "@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . @prefix : <urn:> .\n"
SENSORS = (PREFIX + ":Thermometer rdfs:subClassOf :Sensor .").encode()
SITES = (PREFIX + ":Sensor rdfs:subClassOf :Thing . :at rdfs:range :Place .").encode()


@pytest.mark.parametrize("kind", TWIN_KINDS)
def test_what_is_loaded_is_seen_and_what_is_removed_is_not(kind: str) -> None:
    with open_twin(kind) as stores:
        control, seen = Control(stores.registry), OntologyTables(stores.registry)
        assert not seen.get()
        control.load("sensors", SENSORS, TURTLE)
        assert seen.get().sub_classes.above("<urn:Thermometer>") == {"<urn:Thermometer>", "<urn:Sensor>"}
        control.load("sites", SITES, TURTLE)
        assert "<urn:Thing>" in seen.get().sub_classes.above("<urn:Thermometer>")
        control.remove("sensors")
        assert seen.get().classes == {"<urn:Sensor>", "<urn:Thing>", "<urn:Place>"}


def test_as_long_as_nothing_changes_nothing_is_made_anew() -> None:
    with open_twin("memory") as stores:
        Control(stores.registry).load("sensors", SENSORS, TURTLE)
        seen = OntologyTables(stores.registry)
        before = seen.get()
        stores.registry.put([("subscription", "a", {})])
        assert seen.get() is before


def test_those_of_some_names_can_be_asked_for() -> None:
    with open_twin("memory") as stores:
        control, seen = Control(stores.registry), OntologyTables(stores.registry)
        control.load("sensors", SENSORS, TURTLE)
        control.load("sites", SITES, TURTLE)
        assert seen.get(["sites"]).properties == {"<urn:at>"}
        assert not seen.get([])
        with pytest.raises(NotFound, match="sensors, sites"):
            seen.get(["other"])


def request(text: str, entailment: str | None) -> HistoryRequest:
    return HistoryRequest(text, format="tsv", entailment=entailment)


def asked(over: HistoryExecutor, text: str, entailment: str | None) -> list[str]:
    made = request(text, entailment)
    with over.start_deadline(made) as deadline:
        return sorted(b"".join(over.answer(made, deadline).chunks).decode().splitlines()[1:])


def test_a_query_counts_what_follows_if_it_asks_for_it(tmp_path: Path) -> None:
    type_ = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
    said = Event("urn:e1", f"<urn:t>\t{type_}\t<urn:Thermometer>"), Event("urn:e2", "<urn:t>\t<urn:at>\t<urn:roof>")
    with open_twin("memory") as stores:
        control = Control(stores.registry)
        over = history(tmp_path, *said, compiler=QueryCompiler(ontologies=OntologyTables(stores.registry)))
        assert asked(over, "SELECT ?x { ?x a <urn:Sensor> }", "rdfs") == []
        control.load("sensors", SENSORS, TURTLE)
        control.load("sites", SITES, TURTLE)
        assert asked(over, "SELECT ?x { ?x a <urn:Sensor> }", "rdfs") == ["<urn:t>"]
        assert asked(over, "SELECT ?x { ?x a <urn:Sensor> }", None) == []
        assert asked(over, "SELECT ?x { ?x a <urn:Place> }", "rdfs") == ["<urn:roof>"]
        assert asked(over, "SELECT ?g { GRAPH ?g { ?x a <urn:Thing> } }", "rdfs") == ["<urn:e1>"]


@pytest.mark.parametrize("entailment", ["owl", "RDFS", ""])
def test_another_regime_is_refused_by_name(entailment: str) -> None:
    with pytest.raises(Unsupported, match=f"entailment={entailment}"):
        QueryCompiler().parse(request("ASK {}", entailment))


@pytest.mark.parametrize("entailment", [None, "none", "simple", "rdfs"])
def test_without_ontologies_a_query_is_what_it_says(entailment: str | None) -> None:
    text = "SELECT * { ?s a <urn:C> }"
    assert QueryCompiler().parse(request(text, entailment)) == parse_query(text)
