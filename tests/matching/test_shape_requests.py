"""Subscriptions that are about some events alone, by their headers and their vocabulary, with a query or without."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.matching.test_evaluator import evaluator, pairs
from triplewire.matching.prepared_queries import lift_request
from triplewire.matching.shape_requests import EventSelector, ShapeRequest
from triplewire.model import Kind, Subscription
from triplewire.model.terms import RDF_TYPE
from triplewire.storage.log.appending import entries_table
from triplewire.storage.registry.ports import RegistryChange
from triplewire.storage.registry.subscriptions import SHAPE, SUBSCRIPTION, subscription_to_value

TYPED = f'<urn:s>\t{RDF_TYPE}\t<http://a/C>\n<urn:s>\t<urn:p>\t"1"\n<urn:s>\t<urn:p>\t"2"'
TOLD = '<urn:s>\t<http://b/p>\t"http://a/C"\n<urn:s>\t<urn:p>\t"1"'
EVENTS = {
    111: ("red", "roof", "app1", TYPED),
    112: ("red", "cellar", None, TOLD),
    113: ("blue", "roof", "app2", TOLD),
    114: ("green", None, "app1", TYPED),
}
QUERIES = {
    None: {111, 112, 113, 114},
    "SELECT ?o { ?s <urn:p> ?o }": {111, 112, 113, 114},
    'ASK { ?s <urn:p> ?o FILTER(?o = "2") }': {111, 114},
    "SELECT (COUNT(*) AS ?n) { ?s <urn:p> ?o } HAVING (COUNT(*) > 1)": {111, 114},
    "SELECT ?s { ?s <urn:p> ?o OPTIONAL { ?s <urn:q> ?x } } ORDER BY ?o LIMIT 1": {111, 112, 113, 114},
    "SELECT ?g { GRAPH ?g { ?s <http://b/p> ?o } }": {112, 113},
    "CONSTRUCT { ?s <urn:is> ?o } WHERE { ?s <urn:p> ?o MINUS { ?s <http://b/p> ?x } }": {111, 114},
}
NARROWINGS = [
    (EventSelector(), {111, 112, 113, 114}),
    (EventSelector(stream=("red",)), {111, 112}),
    (EventSelector(stream=("blue", "red")), {111, 112, 113}),
    (EventSelector(source=("roof",)), {111, 113}),
    (EventSelector(source=("attic", "cellar", "roof")), {111, 112, 113}),
    (EventSelector(application=("app1",)), {111, 114}),
    (EventSelector(stream=("red",), source=("roof",), application=("app1", "app2")), {111}),
    (EventSelector(vocabulary=("http://a/",)), {111, 114}),
    (EventSelector(vocabulary=("http://b/",)), {112, 113}),
    (EventSelector(vocabulary=("http://a/C", "http://b")), {111, 112, 113, 114}),
    (EventSelector(vocabulary=("urn:s",)), set()),
    (EventSelector(vocabulary=("http://a/",), stream=("green",)), {114}),
]


def entries() -> pa.Table:
    rows = [
        (at, stream, f"urn:event:{at}", text, source, application, 0, 0, "application/n-quads", None)
        for at, (stream, source, application, text) in EVENTS.items()
    ]
    return entries_table([rows])


def registered(asked: ShapeRequest, at: int = 1) -> list[RegistryChange]:
    lifted = lift_request(asked)
    made = Subscription(str(at), asked.text, Kind.SIGNAL, lifted.shape.key, lifted.constants)
    return [
        RegistryChange(at, SHAPE, made.shape, lifted.shape.to_value()),
        RegistryChange(at, SUBSCRIPTION, made.id, subscription_to_value(made)),
    ]


@pytest.mark.parametrize("solutions", [True, False])
@pytest.mark.parametrize("text", QUERIES, ids=str)
def test_it_matches_where_the_query_does_and_the_event_is_meant(text: str | None, solutions: bool) -> None:
    given = [ShapeRequest(text, solutions, narrowing) for narrowing, _ in NARROWINGS]
    changes = [change for at, asked in enumerate(given) for change in registered(asked, at)]
    found = pairs(evaluator(*changes).match(entries()))
    for at, (narrowing, meant) in enumerate(NARROWINGS):
        assert {position for position, since in found if since == at} == QUERIES[text] & meant, narrowing
    assert len(found) == len(set(found))


def test_solutions_are_those_of_the_query() -> None:
    """An event that is of a vocabulary in several ways has each solution once."""
    text = "SELECT ?o (COUNT(*) AS ?n) { ?s <urn:p> ?o } GROUP BY ?o"
    for narrowing in (EventSelector(), EventSelector(vocabulary=("urn:", "http://a/"), source=("roof", "x"))):
        found = evaluator(*registered(ShapeRequest(text, True, narrowing))).match(entries()).to_pylist()
        (terms,) = [each["terms"] for each in found if each["position"] == 111]
        one = '"1"^^<http://www.w3.org/2001/XMLSchema#integer>'
        assert sorted((terms[at + 1], terms[at + 2]) for at in (0, 3)) == [('"1"', one), ('"2"', one)]
        assert len(terms) == 6


def test_one_stream_is_one_pattern_more() -> None:
    shapes = {
        lift_request(ShapeRequest("ASK { ?s <urn:p> ?o }", False, EventSelector(stream=(name,)))).shape
        for name in ("red", "blue")
    }
    assert len(shapes) == 1
