"""Tables of bags: what they match is what filters mean, by brute force and by plain SQL."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.matching.filters import generated, reference
from tests.matching.filters.worlds import EX
from triplewire.matching.bags import BagTable, make_table
from triplewire.matching.bags.clauses import split_clauses
from triplewire.matching.bags.tables import BagLimits
from triplewire.matching.evaluator import Evaluator, open_evaluator_engine
from triplewire.matching.filters import document_query, parse_filters
from triplewire.matching.prepared_queries import lift_request
from triplewire.matching.shape_requests import NO_SELECTOR, EventSelector, ShapeRequest
from triplewire.matching.shapes import LiftedShape, Shape
from triplewire.matching.tables import OntologyClosure, TableFactory, make_plain_table
from triplewire.model import Event, Kind, Subscription
from triplewire.sparql.entailment.ontologies import SUB_CLASS
from triplewire.storage.log.appending import entries_table
from triplewire.storage.registry.ontologies import ONTOLOGY
from triplewire.storage.registry.ports import RegistryChange
from triplewire.storage.registry.subscriptions import SHAPE, SUBSCRIPTION, subscription_to_value

FIRST = 1_000
"""The position of the first event."""

Pairs = set[tuple[int, int]]


def lifted(document: dict[str, Any], narrowing: EventSelector = NO_SELECTOR) -> LiftedShape:
    return lift_request(ShapeRequest(None, False, narrowing, query=document_query(document)))


def entries(events: Sequence[Event], first: int = FIRST) -> pa.Table:
    rows = [
        (first + at, f"s{at % 2}", each.id, each.text, None, None, 0, 0, "text/turtle", None)
        for at, each in enumerate(events)
    ]
    return entries_table([rows])


def loaded(triples: set[reference.Triple], position: int = 1) -> RegistryChange:
    text = "\n".join("\t".join(each) for each in sorted(triples))
    return RegistryChange(position, ONTOLOGY, "drawn", {"text": text, "triples": 0, "classes": 0, "properties": 0})


def made(asked: Sequence[LiftedShape], first: int = 10) -> list[RegistryChange]:
    changes = [RegistryChange(2, SHAPE, each.shape.key, each.shape.to_value()) for each in asked]
    for number, each in enumerate(asked):
        subscription = Subscription(f"{first + number}", None, Kind.SIGNAL, each.shape.key, each.constants)
        changes.append(
            RegistryChange(first + number, SUBSCRIPTION, subscription.id, subscription_to_value(subscription))
        )
    return changes


def evaluator(making: TableFactory) -> Evaluator:
    return Evaluator(open_evaluator_engine(), None, "constants", _make_table=making)


def pairs(found: pa.Table) -> Pairs:
    return set(zip(found["position"].to_pylist(), found["subscription"].to_pylist(), strict=True))


def world(seed: int) -> tuple[set[reference.Triple], list[Event], list[dict[str, Any]]]:
    random = Random(seed)
    triples = generated.ontology(random)
    events = [generated.event(random, at) for at in range(12)]
    return triples, events, [generated.bagged(random) for _ in range(12)]


@settings(max_examples=5, deadline=None)
@given(st.integers(0, 2**32))
def test_matches_are_those_of_the_reference(seed: int) -> None:
    triples, events, documents = world(seed)
    matcher = evaluator(make_table)
    matcher.apply([loaded(triples), *made([lifted(each) for each in documents])], 100)
    found = pairs(matcher.match(entries(events)))
    for at, event in enumerate(events):
        for number, document in enumerate(documents):
            wanted = reference.holds(parse_filters(document), event, reference.Knowledge(triples))
            assert ((FIRST + at, 10 + number) in found) is wanted, (event.text, document)


@settings(max_examples=2, deadline=None)
@given(st.integers(0, 2**32))
def test_many_of_one_shape_in_some_streams_match_as_plain_sql_says(seed: int) -> None:
    triples, events, documents = world(seed)
    narrowings = (
        NO_SELECTOR,
        EventSelector(stream=("s0",)),
        EventSelector(stream=("s1", "s2")),
        EventSelector(vocabulary=(EX,)),
    )
    asked = [lifted(each, narrowing) for each in documents[:3] for narrowing in narrowings]
    told = list[Pairs]()
    for making in (make_table, make_plain_table):
        matcher = evaluator(making)
        matcher.apply([loaded(triples), *made(asked)], 100)
        told.append(pairs(matcher.match(entries(events))))
    assert told[0] == told[1]


def test_what_ends_is_forgotten_and_what_comes_late_is_there() -> None:
    event = Event("urn:e", "<urn:s>\t<urn:a>\t<urn:1>\n<urn:s>\t<urn:a>\t<urn:2>")
    asked = [lifted({"filter": [bag("#>", f"urn:{at % 5}")]}) for at in range(40)]
    matcher = evaluator(partial(make_table, limits=BagLimits(late_rows=2)))
    matcher.apply(made(asked[:20]), 100)
    wanted = {10 + at for at in range(20) if at % 5 in (1, 2)}
    assert pairs(matcher.match(entries([event]))) == {(FIRST, each) for each in wanted}
    for at in range(20, 40):
        matcher.apply(made(asked[at : at + 1], 10 + at), 100)
        wanted |= {10 + at} if at % 5 in (1, 2) else set()
        assert pairs(matcher.match(entries([event]))) == {(FIRST, each) for each in wanted}
    matcher.apply([RegistryChange(200 + at, SUBSCRIPTION, f"{10 + at}", None) for at in range(40) if at % 5 == 1], 300)
    matcher.forget(FIRST)
    assert pairs(matcher.match(entries([event]))) == {(FIRST, each) for each in wanted if each % 5 != 1}
    matcher.apply(made(asked[1:2], 400), 500)
    assert (FIRST, 400) in pairs(matcher.match(entries([event])))


def test_an_ontology_that_changes_changes_what_is_matched() -> None:
    event = Event("urn:e", "<urn:s>\t<urn:a>\t<urn:low>")
    below = {("<urn:low>", SUB_CLASS, "<urn:high>")}
    matcher = evaluator(make_table)
    matcher.apply(made([lifted({"filter": [bag("#=/@>", "urn:high")]})]), 100)
    assert pairs(matcher.match(entries([event]))) == set()
    matcher.apply([loaded(below, 200)], 200)
    assert pairs(matcher.match(entries([event]))) == {(FIRST, 10)}
    matcher.apply([RegistryChange(300, ONTOLOGY, "drawn", None)], 300)
    assert pairs(matcher.match(entries([event]))) == set()


def test_a_relation_that_most_are_in_is_looked_at_in_portions() -> None:
    events = [Event(f"urn:e{at}", f"<urn:s>\t<urn:a>\t<urn:{at}>") for at in range(5)]
    matcher = evaluator(partial(make_table, limits=BagLimits(pairs=3)))
    matcher.apply(made([lifted({"filter": [bag("#=/!=", f"urn:{at}")]}) for at in range(5)]), 100)
    wanted = {(FIRST + event, 10 + at) for event in range(5) for at in range(5) if event != at}
    assert pairs(matcher.match(entries(events))) == wanted


class Heavy(BagTable):
    """One for which every event is too much."""

    def heavy(self, quads: int) -> Sequence[int]:
        return [FIRST, FIRST + 1]

    @classmethod
    def tabled(cls, duck: duckdb.DuckDBPyConnection, closures: OntologyClosure, shape: Shape, name: str) -> Heavy:
        found = split_clauses(shape)
        assert found is not None
        return cls(duck, closures, shape, found, name)


@pytest.mark.parametrize("count", [1, 4])
def test_what_would_be_too_much_together_goes_the_general_way(count: int) -> None:
    events = [Event(f"urn:e{at}", f"<urn:s>\t<urn:a>\t<urn:{at}>\n<urn:s>\t<urn:b>\t<urn:b>") for at in range(1)]
    other = {"attribute": "urn:b", "op": "=", "value": {"@id": "urn:b"}}
    asked = [lifted({"filter": [bag("#>", f"urn:{at % 2}"), other]}) for at in range(count)]
    matcher = evaluator(Heavy.tabled)
    matcher.apply(made(asked), 100)
    for _ in range(2):
        found = matcher.match(entries(events))
        assert pairs(found) == {(FIRST, 10 + at) for at in range(0, count, 2)}
        assert found["limit"].null_count == found.num_rows


@pytest.mark.parametrize(
    ("document", "own"),
    [
        ({"filter": [{"attribute": "urn:a", "op": "#=", "value": ["x"]}]}, True),
        ({"filter": [{"attribute": "urn:a", "op": "#=", "value": []}]}, True),
        ({"filter": [{"attribute": "urn:a", "op": ">", "value": 3}]}, False),
        ({"filters": [[{"attribute": "urn:a", "op": "#=", "value": ["x"]}], []]}, False),
        ({"filter": [{"attribute": "https://triplewire.dev/ns#time", "op": "=", "value": "x"}, {}]}, False),
    ],
)
def test_a_table_of_its_own_is_for_bags_that_stand_apart(document: dict[str, Any], own: bool) -> None:
    for each in document.get("filter", []):
        each.setdefault("attribute", "urn:a")
        each.setdefault("op", "#<")
        each.setdefault("value", ["x"])
    duck = open_evaluator_engine()
    assert isinstance(make_table(duck, OntologyClosure(duck), lifted(document).shape, "t"), BagTable) is own


def bag(op: str, *addresses: str) -> dict[str, Any]:
    return {"attribute": "urn:a", "op": op, "value": [{"@id": each} for each in addresses]}
