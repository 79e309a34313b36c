"""Solos: what an event surely has if one subscription matches it."""

from __future__ import annotations

import pytest

from tests.storage.lake.test_delta import entries
from triplewire.matching.evaluator import SINGLE_SINCE, make_single_evaluator, required_predicates
from triplewire.matching.shapes import lift
from triplewire.model import Kind, Subscription
from triplewire.sparql import parse_query
from triplewire.testing import event

TW = "PREFIX tw: <https://triplewire.dev/ns#> "


@pytest.mark.parametrize(
    ("sparql", "names"),
    [
        ("ASK { ?s <urn:b> 1 ; <urn:a> ?o }", ["a", "b"]),
        ("ASK { ?s ?p ?o }", []),
        ("ASK { ?s <urn:a> ?o OPTIONAL { ?s <urn:b> ?x } MINUS { ?s <urn:c> ?x } }", ["a"]),
        ("ASK { { ?s <urn:a> ?o } UNION { ?s <urn:b> ?o } ?s <urn:c> ?v }", ["c"]),
        ("ASK { ?s <urn:a> ?o FILTER NOT EXISTS { ?s <urn:b> ?o } }", ["a"]),
        ("SELECT (COUNT(*) AS ?n) { ?s <urn:a> ?o }", []),
        ("SELECT ?s (COUNT(*) AS ?n) { ?s <urn:a> ?o } GROUP BY ?s", ["a"]),
        ("ASK { GRAPH ?g { ?s <urn:a> ?o } }", ["a"]),
        ("ASK { ?s <urn:a>/<urn:b>* ?o }", []),
        (TW + "ASK { ?e tw:stream ?s . ?x <urn:a> ?y }", ["a"]),
        (TW + "ASK { ?e tw:source ?s }", []),
    ],
)
def test_predicates_that_are_surely_there(sparql: str, names: list[str]) -> None:
    for solutions in (False, True):
        shape = lift(parse_query(sparql), solutions=solutions, stream="home").shape
        assert required_predicates(shape) == tuple(f"<urn:{name}>" for name in names)


def test_it_sees_every_event_and_names_itself() -> None:
    lifted = lift(parse_query("SELECT ?v { ?s <http://example.org/result> ?v FILTER(?v > 2) }"), solutions=True)
    asker = make_single_evaluator(
        Subscription("s", None, Kind.BINDINGS, lifted.shape.key, lifted.constants, since=99), lifted.shape
    )
    found = asker.match(entries(event(1), event(2), event(3), event(4)))
    assert found["position"].to_pylist() == [3, 4]
    assert found["subscription"].to_pylist() == [SINGLE_SINCE, SINGLE_SINCE]
