"""Graphs: what CONSTRUCT subscriptions build, with an independent engine as the judge."""

from __future__ import annotations

import re

import pyoxigraph as ox
import pytest

from tests.matching.subscriptions import registered
from tests.matching.test_evaluator import entries, evaluator
from tests.matching.test_general_shapes import EVENTS, PREFIX, XSD
from triplewire.matching.shapes import Shape, expand_graph, lift
from triplewire.model import Event, Kind
from triplewire.sparql import Conjunction, parse_query
from triplewire.storage.registry.subscriptions import subscription_from_change

FLAT = (
    "CONSTRUCT { ?o :seen ?v } WHERE { ?o :value ?v }",
    "CONSTRUCT WHERE { ?o :value ?v ; :by ?s }",
    "CONSTRUCT { ?v :of ?o . ?o :has ?v } WHERE { ?o :value ?v }",
    "CONSTRUCT { ?v :of ?o } WHERE { ?o ?p ?v }",
    "CONSTRUCT { ?o ?v :x } WHERE { ?o ?p ?v FILTER(?p != :in) }",
    "CONSTRUCT { :alarm :by :a ; :in 7 } WHERE { ?o :by :a ; :value ?v FILTER(?v > 5) }",
    "CONSTRUCT { _:b :value ?v ; :seen [] } WHERE { ?o :value ?v }",
    "CONSTRUCT { _:b :on :x } WHERE { ?o ?p ?v }",
    "CONSTRUCT { ?g :holds ?o } WHERE { GRAPH ?g { ?o :value ?v } }",
    "CONSTRUCT { :any :event _:b } WHERE { }",
    "CONSTRUCT { ?a ?p ?b . ?b ?p ?a } WHERE { ?a ?p ?b } ORDER BY ?a",
)
WHOLE = (
    "CONSTRUCT { ?o :in ?u } WHERE { ?o :value ?v OPTIONAL { ?o :unit ?u } }",
    "CONSTRUCT { ?o :in ?u . ?o :has ?v } WHERE { ?o :value ?v OPTIONAL { ?o :unit ?u } }",
    "CONSTRUCT { ?o :twice ?d } WHERE { ?o :value ?v BIND(?v * 2 AS ?d) }",
    "CONSTRUCT { ?o :best ?m } WHERE { { SELECT ?o (MAX(?v) AS ?m) { ?o :value ?v } GROUP BY ?o } }",
    "CONSTRUCT { ?x :reaches ?y } WHERE { ?x :in+ ?y }",
    "CONSTRUCT { ?x :is _:n . _:n :of ?x } WHERE { { ?x :by :a } UNION { ?x :in :b } UNION { ?x :in :b } }",
    "CONSTRUCT { ?o :most ?v } WHERE { ?o :value ?v } ORDER BY DESC(?v) LIMIT 1",
    "CONSTRUCT { ?v :of ?o } WHERE { ?o ?p ?v } ORDER BY ?p ?o ?v LIMIT 1",
    "CONSTRUCT { ?o :of ?s } WHERE { { SELECT ?o ?s { ?o :value ?v OPTIONAL { ?o :by ?s } } GROUP BY ?o ?s } }",
)


def delivered(event: Event, position: int, query: str, stream: str | None = None) -> str | None:
    """The graph as it is sent; None where nothing is."""
    changes = registered(1, PREFIX + query, stream=stream)
    batch = entries({position: event})
    matches = evaluator(*changes).match(batch).to_pylist()
    if not matches:
        return None
    (match,) = matches
    shape = Shape.from_value(changes[0].value or {})
    (entry,) = batch.to_pylist()
    found = expand_graph(
        shape, subscription_from_change(changes[1]), entry, match["solutions"] or [], match["terms"] or []
    )
    assert found["format"] == "application/n-triples"
    text: str = found["graph"]
    return text


def expected(event: Event, query: str) -> set[ox.Triple]:
    store = ox.Store()
    for line in event.text.split("\n"):
        for name in ("", f" <{event.id}>"):
            store.load(f"{line.replace(chr(9), ' ')}{name} .\n".encode(), ox.RdfFormat.N_QUADS)
    answer = store.query(PREFIX + query)
    assert isinstance(answer, ox.QueryTriples)
    return {*answer}


def canonical(triples: set[ox.Triple]) -> ox.Dataset:
    """The same for graphs that differ in nothing but the names of blank nodes."""
    found = ox.Dataset(ox.Quad(each.subject, each.predicate, each.object) for each in triples)
    found.canonicalize(ox.CanonicalizationAlgorithm.UNSTABLE)
    return found


def read(text: str | None) -> set[ox.Triple]:
    """Skolem IRIs are blank nodes again."""
    blank = re.sub(r"<urn:triplewire:genid:([^>]*)>", lambda found: "_:b" + re.sub(r"\W", "x", found[1]), text or "")
    return {quad.triple for quad in ox.parse(blank, format=ox.RdfFormat.N_TRIPLES)}


@pytest.mark.parametrize("query", FLAT + WHOLE)
def test_the_graph_of_one_event_is_that_of_an_independent_engine(query: str) -> None:
    for position, event in EVENTS.items():
        wanted = expected(event, query)
        found = delivered(event, position, query)
        assert (found is not None) == bool(wanted), "an empty graph is not delivered"
        assert canonical(read(found)) == canonical(wanted)


@pytest.mark.parametrize("query", FLAT + WHOLE)
@pytest.mark.parametrize("kind", [Kind.SIGNAL, Kind.EVENT])
def test_all_kinds_tell_of_the_same_events(query: str, kind: Kind) -> None:
    matching = evaluator(*registered(1, PREFIX + query), *registered(2, PREFIX + query, kind))
    for position, event in EVENTS.items():
        found = [each["subscription"] for each in matching.match(entries({position: event})).to_pylist()]
        assert found == ([1, 2] if expected(event, query) else [])


@pytest.mark.parametrize("query", FLAT)
def test_patterns_and_filters_stay_a_conjunction(query: str) -> None:
    assert isinstance(lift(parse_query(PREFIX + query), solutions=True).shape.query, Conjunction)


def test_a_template_that_always_makes_a_triple_costs_a_signal_nothing() -> None:
    built = lift(parse_query(PREFIX + FLAT[0]), solutions=False)
    assert built == lift(parse_query(PREFIX + "ASK { ?x :value ?y }"), solutions=False)


def test_templates_that_differ_in_constants_share_a_shape() -> None:
    query = PREFIX + "CONSTRUCT {{ :{0} :value ?v . ?o :next :{1} }} WHERE {{ ?o :by :{0} ; :value ?v }}"
    one, other = (lift(parse_query(query.format(*each)), solutions=True, stream="s") for each in ("ab", "cd"))
    assert one.shape.key == other.shape.key
    assert one.constants != other.constants
    assert Shape.from_value(one.shape.to_value()) == one.shape


@pytest.mark.parametrize("where", ["{ ?o :by :a }", "{ ?o :by :a OPTIONAL { ?o :unit ?u } }"])
def test_constants_of_stream_and_template_keep_apart(where: str) -> None:
    query = f"CONSTRUCT {{ :here :is ?o, 3 }} WHERE {where}"
    triples = '<{0}here> <{0}is> <{0}o> .\n<{0}here> <{0}is> "3"^^<{1}integer> .\n'
    assert delivered(EVENTS[10], 10, query, stream="test") == triples.format("http://example.org/", XSD)
    assert delivered(EVENTS[10], 10, query, stream="other") is None


def test_a_blank_node_is_one_of_its_solution_and_event_and_the_same_each_time() -> None:
    query = "CONSTRUCT { _:b :value ?v } WHERE { ?o :value ?v }"

    def nodes(at: int) -> list[str]:
        return [line.split(" ")[0] for line in (delivered(EVENTS[11], at, query) or "").splitlines()]

    assert len({*nodes(11), *nodes(12)}) == 4
    assert nodes(11) == nodes(11)
    assert all(node.startswith("<urn:triplewire:genid:") for node in nodes(11))
