"""Generated CONSTRUCT subscriptions on single events build what pyoxigraph builds in a store of that event alone."""

from __future__ import annotations

import re
from functools import partial

import pyoxigraph as ox
import pytest
from hypothesis import given, reject

from tests.conformance.results import Triples
from tests.differential.data import Data, data
from tests.differential.grammar import Question, one_graph
from tests.differential.pairs import examples, hold_on_event, seed_of
from tests.matching.subscriptions import registered
from tests.matching.test_evaluator import entries
from triplewire.matching.evaluator import Evaluator
from triplewire.matching.shapes import Shape, expand_graph, lift
from triplewire.model import Event
from triplewire.model.errors import Unsupported
from triplewire.sparql import parse_query
from triplewire.storage.registry.subscriptions import subscription_from_change

_SKOLEM = re.compile(r"<urn:triplewire:genid:([^>]*)>")


def graphs(given: Data, text: str) -> dict[str, Triples]:
    """What is built of each event, by its graph; those of which nothing is delivered are left out."""
    events = {place: _event(given, place - 2) for place in range(2, 2 + len(given.graphs))}
    shape, made = registered(1, text)
    evaluator = Evaluator()
    evaluator.apply([shape, made], 1)
    batch = entries(events)
    rows = {row["position"]: row for row in batch.to_pylist()}
    found = {}
    for match in evaluator.match(batch).to_pylist():
        entry = rows[match["position"]]
        solutions, terms = match["solutions"] or [], match["terms"] or []
        told = expand_graph(
            Shape.from_value(shape.value or {}), subscription_from_change(made), entry, solutions, terms
        )
        found[f"<{entry['event']}>"] = _read(told["graph"])
    return found


def _event(given: Data, place: int) -> Event:
    triples = given.union([given.graphs[place]])
    return Event(given.graphs[place][1:-1], "\n".join("\t".join(map(str, each)) for each in triples))


def _read(text: str) -> Triples:
    """Skolem IRIs are blank nodes again."""
    assert text, "an empty graph is delivered"
    blank = _SKOLEM.sub(lambda found: "_:b" + re.sub(r"\W", "x", found[1]), text)
    return Triples(frozenset(quad.triple for quad in ox.parse(blank, format=ox.RdfFormat.N_TRIPLES)))


def _refused(text: str) -> str | None:
    try:
        lift(parse_query(text), solutions=True)
    except Unsupported as error:
        return error.construct
    return None


@pytest.mark.parametrize("part", range(2))
def test_events_are_built_from_as_by_pyoxigraph(part: int) -> None:
    @seed_of(part)
    @examples(60)
    @given(data, one_graph)
    def builds(given: Data, question: Question) -> None:
        refused = _refused(question.text)
        if refused not in (None, "CONSTRUCT without a triple"):
            reject()
        found = {} if refused else graphs(given, question.text)
        for each in given.graphs:
            hold_on_event(given, each, question, partial(_built, found, each))

    builds()


def _built(found: dict[str, Triples], each: str, text: str) -> Triples:
    return found.get(each, Triples(frozenset()))
