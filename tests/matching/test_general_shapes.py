"""Subscriptions of the whole language, on one event at a time, with an independent engine as the judge."""

from __future__ import annotations

from collections import Counter

import pyoxigraph as ox
import pytest

from tests.generated import EX
from tests.matching.subscriptions import registered
from tests.matching.test_evaluator import entries, evaluator
from triplewire.matching.shapes import expand_terms, lift
from triplewire.model import Event, Kind
from triplewire.model.errors import Unsupported
from triplewire.sparql import parse_query

XSD = "http://www.w3.org/2001/XMLSchema#"
EVENTS = {
    position: Event(f"{EX}event/{position}", "\n".join("\t".join(line) for line in lines))
    for position, lines in {
        10: [
            (f"<{EX}o>", f"<{EX}by>", f"<{EX}a>"),
            (f"<{EX}o>", f"<{EX}value>", f'"7"^^<{XSD}integer>'),
            (f"<{EX}o>", f"<{EX}unit>", '"C"'),
        ],
        11: [
            (f"<{EX}o>", f"<{EX}by>", f"<{EX}b>"),
            (f"<{EX}o>", f"<{EX}value>", f'"3"^^<{XSD}integer>'),
            (f"<{EX}o>", f"<{EX}value>", f'"9"^^<{XSD}integer>'),
        ],
        12: [
            (f"<{EX}a>", f"<{EX}in>", f"<{EX}b>"),
            (f"<{EX}b>", f"<{EX}in>", f"<{EX}c>"),
            (f"<{EX}c>", f"<{EX}in>", f"<{EX}a>"),
        ],
    }.items()
}
PREFIX = f"PREFIX : <{EX}> "
QUERIES = (
    "SELECT ?o ?u { ?o :value ?v OPTIONAL { ?o :unit ?u } }",
    "SELECT ?x { { ?x :by :a } UNION { ?x :in :b } }",
    "SELECT ?o { ?o :value ?v MINUS { ?o :by :a } }",
    "SELECT ?o { ?o :value ?v FILTER NOT EXISTS { ?o :unit ?u } }",
    "SELECT ?o { ?o :value ?v FILTER EXISTS { ?o :value ?w FILTER(?w > ?v) } }",
    "SELECT (COUNT(?v) AS ?n) (SUM(?v) AS ?s) { ?o :value ?v }",
    "SELECT ?o (MAX(?v) AS ?m) { ?o :value ?v } GROUP BY ?o HAVING (MAX(?v) > 8)",
    "SELECT ?v ?d { ?o :value ?v BIND(?v * 2 AS ?d) }",
    "SELECT ?o ?c { ?o :by ?s VALUES (?s ?c) { (:a 1) (:b 2) } }",
    "SELECT ?x ?y { ?x :in+ ?y }",
    "SELECT ?x ?y { ?x :in* ?y }",
    "SELECT ?g ?v ?u { GRAPH ?g { ?o :value ?v } OPTIONAL { ?o :unit ?u } }",
    "SELECT ?v { ?o :value ?v } ORDER BY DESC(?v) LIMIT 1",
    "SELECT ?o ?best { ?o :by ?s { SELECT ?o (MAX(?v) AS ?best) { ?o :value ?v } GROUP BY ?o } }",
    "SELECT * { ?a :in ?b OPTIONAL { ?b :in ?c OPTIONAL { ?c :in ?d FILTER(?d = ?a) } } }",
    "SELECT ?o { ?o :value ?v FILTER(IF(EXISTS { ?o :unit ?u }, ?v > 5, ?v > 8)) }",
    "SELECT ?o { ?o :value ?v FILTER(EXISTS { ?o :unit ?u } || EXISTS { ?o :by :b }) }",
    "SELECT ?o ?s { ?o :by ?s { SELECT ?o { ?o :value ?s } } }",
    "ASK { ?o :value 7 OPTIONAL { ?o :unit ?u } FILTER(BOUND(?u)) }",
)


def expected(event: Event, query: str) -> Counter[tuple[str | None, ...]] | bool:
    store = ox.Store()
    for line in event.text.split("\n"):
        for graph in ("", f" <{event.id}>"):
            store.load(f"{line.replace(chr(9), ' ')}{graph} .\n".encode(), ox.RdfFormat.N_QUADS)
    answer = store.query(PREFIX + query)
    if isinstance(answer, ox.QueryBoolean):
        return bool(answer)
    assert isinstance(answer, ox.QuerySolutions)
    return Counter(tuple(None if term is None else str(term) for term in row) for row in answer)


def found(event: Event, position: int, query: str) -> Counter[tuple[str | None, ...]] | bool:
    matches = evaluator(*registered(1, PREFIX + query)).match(entries({position: event})).to_pylist()
    shape = lift(parse_query(PREFIX + query), solutions=True).shape
    if query.startswith("ASK"):
        return bool(matches)
    assert len(matches) <= 1
    width = 1 + len(shape.query.projection)
    terms = matches[0]["terms"] if matches else []
    return Counter(tuple(terms[start + 1 : start + width]) for start in range(0, len(terms), width))


@pytest.mark.parametrize("query", QUERIES)
def test_solutions_on_one_event_are_those_of_an_independent_engine(query: str) -> None:
    for position, event in EVENTS.items():
        assert found(event, position, query) == expected(event, query), (query, position)


@pytest.mark.parametrize("query", QUERIES)
def test_a_batch_of_events_is_each_event_by_itself(query: str) -> None:
    matching = evaluator(*registered(1, PREFIX + query), *registered(2, PREFIX + query, Kind.SIGNAL))
    together = matching.match(entries(EVENTS)).to_pylist()
    for position, event in EVENTS.items():
        alone = matching.match(entries({position: event})).to_pylist()
        assert alone == [each for each in together if each["position"] == position]
        assert [each["subscription"] for each in alone] in ([], [1, 2])


def test_constants_tell_subscriptions_of_one_shape_apart() -> None:
    ask = PREFIX + "SELECT ?o {{ ?o :by :{0} OPTIONAL {{ ?o :unit ?u }} }}"
    changes = [*registered(1, ask.format("a")), *registered(2, ask.format("b")), *registered(3, ask.format("c"))]
    matches = evaluator(*changes).match(entries(EVENTS)).to_pylist()
    assert [(each["position"], each["subscription"]) for each in matches] == [(10, 1), (11, 2)]


def test_a_stream_is_asked_for_even_where_nothing_else_is() -> None:
    ask = PREFIX + "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }"
    matching = evaluator(*registered(1, ask, stream="here"), *registered(2, ask, stream="there"))
    assert [each["subscription"] for each in matching.match(entries(EVENTS, "there")).to_pylist()] == [2, 2, 2]


def test_now_is_when_the_event_came() -> None:
    ask = PREFIX + f'ASK {{ ?o :by :a FILTER(NOW() = "1970-01-01T00:00:00Z"^^<{XSD}dateTime>) }}'
    assert evaluator(*registered(1, ask)).match(entries(EVENTS)).num_rows == 1


@pytest.mark.parametrize("kind", list(Kind))
@pytest.mark.parametrize(("slice_", "places"), [("OFFSET 1", [11]), ("LIMIT 0", []), ("LIMIT 1", [10, 11])])
def test_a_slice_without_solutions_is_no_match(kind: Kind, slice_: str, places: list[int]) -> None:
    matching = evaluator(*registered(1, f"{PREFIX}SELECT ?v {{ ?o :value ?v }} {slice_}", kind))
    assert matching.match(entries(EVENTS))["position"].to_pylist() == places


def test_solutions_come_in_the_order_that_was_asked_for() -> None:
    ask = PREFIX + "SELECT ?v { ?o :value ?v } ORDER BY DESC(?v)"
    (match,) = evaluator(*registered(1, ask)).match(entries({11: EVENTS[11]})).to_pylist()
    shape = lift(parse_query(ask), solutions=True).shape
    rows = expand_terms(shape, match["terms"])["results"]["bindings"]
    assert [row["v"]["value"] for row in rows] == ["9", "3"]


@pytest.mark.parametrize(
    ("query", "construct"),
    [
        ("SELECT (RAND() AS ?r) { ?o :by :a }", "RAND"),
        ("DESCRIBE ?o { ?o :by :a }", "DESCRIBE"),
        ("CONSTRUCT { ?o :by ?x } WHERE { ?o :by :a }", "CONSTRUCT without a triple"),
        ("CONSTRUCT { ?o :by :a } FROM <urn:g> WHERE { ?o :by :a }", "FROM"),
        ("SELECT * FROM <urn:g> { ?o :by :a }", "FROM"),
        ("SELECT * { SERVICE <urn:x> { ?o :by :a } }", "SERVICE"),
    ],
)
def test_what_cannot_be_asked_of_one_event_is_refused_by_name(query: str, construct: str) -> None:
    with pytest.raises(Unsupported, match=construct):
        lift(parse_query(PREFIX + query), solutions=True)
