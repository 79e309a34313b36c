"""Explanations: chosen ones to the letter, and for generated ones that they say what matching does."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pyoxigraph as ox
import pytest
from hypothesis import assume, given

from tests.differential.data import Data, data
from tests.differential.grammar import Question, one_event, one_graph
from tests.differential.pairs import examples
from tests.matching.filters.worlds import World, constraint, event, holds, loaded
from tests.matching.subscriptions import registered
from tests.matching.test_evaluator import entries, evaluator
from triplewire.matching.explain import EventExplanation, EventProbe, explain
from triplewire.matching.filters import document_query
from triplewire.matching.shapes import lift
from triplewire.model import Event, Kind
from triplewire.model.clock import ManualClock
from triplewire.model.errors import QueryLimit, Unsupported
from triplewire.sparql import Pattern, Var, parse_query
from triplewire.sparql.algebra import Basic
from triplewire.sparql.entailment.ontologies import build_ontology
from triplewire.sparql.paths import Triple

CASES = tomllib.loads((Path(__file__).parent / "cases" / "explanations.toml").read_text()).get("case", [])
EX = "http://example.org/"
PREFIX = f"PREFIX : <{EX}> "
RDFS = "PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#> "


def triples(lines: list[str]) -> list[Triple]:
    """Of Turtle, in the order in which they stand."""
    quads = ox.parse(f"{PREFIX}{RDFS}{' . '.join(lines)} .", format=ox.RdfFormat.TURTLE)
    return [(str(each.subject), str(each.predicate), str(each.object)) for each in quads]


def row(event: Event) -> dict[str, Any]:
    (found,) = entries({5: event}).to_pylist()
    return dict(found)


def told(case: dict[str, Any]) -> EventExplanation:
    event = Event(f"{EX}event", "\n".join("\t".join(each) for each in triples(case["event"])))
    ontology = build_ontology(triples(case["ontology"])) if case.get("ontology") else build_ontology([])
    return explain(parse_query(PREFIX + case["query"]), row(event), ontology=ontology)


@pytest.mark.parametrize("case", [pytest.param(case, id=case["name"]) for case in CASES])
def test_it_is_told_in_words(case: dict[str, Any]) -> None:
    assert told(case).text() == case["text"]


def test_it_is_told_to_programs() -> None:
    (case,) = (each for each in CASES if each["name"] == "a filter that removes all, with what it saw")
    value = json.loads(json.dumps(told(case).value()))
    steps = value["steps"]["inside"]
    assert (value["matched"], value["failed"]) == (False, {"step": "filter", "says": steps[-1]["says"]})
    assert [(each["step"], each["solutions"]) for each in steps] == [("pattern", 2), ("filter", 2), ("filter", 0)]
    assert (steps[0]["alone"], len(steps[0]["found"])) == (2, 2)
    assert (steps[2]["before"], len(steps[2]["removed"])) == (2, 2)


ANIMALS = loaded("ex:Dog rdfs:subClassOf ex:Animal . ex:Cat rdfs:subClassOf ex:Animal .")
PETS = event('ex:home ex:pet ex:Dog ; ex:number 2 ; ex:names ("Rex" "Tom") .')


@pytest.mark.parametrize(
    ("constraints", "failed"),
    [
        ([constraint("ex:pet", "@>", "ex:Animal"), constraint("ex:number", "<", 3)], None),
        ([constraint("ex:pet", "@>", "ex:Cat"), constraint("ex:number", "<", 3)], "filter"),
        ([constraint("ex:toy", "@>", "ex:Animal"), constraint("ex:number", "<", 3)], "pattern"),
        ([constraint("ex:names", "#=", ["Tom", "Rex"]), constraint("ex:pet", "@>", "ex:Animal")], None),
        ([constraint("ex:names", "#=", ["Tom", "Tom"]), constraint("ex:pet", "@>", "ex:Animal")], "bag"),
    ],
)
def test_filters_are_explained_by_the_ontologies_that_are_loaded(constraints: list[Any], failed: str | None) -> None:
    query = document_query({"prefixes": {"ex": EX}, "filter": constraints})
    explanation = explain(query, row(PETS), ontologies=[ANIMALS])
    assert explanation.matched == holds(World([PETS], [ANIMALS]), *constraints)
    told = explanation.value()["failed"]
    assert (None if told is None else told["step"]) == failed, explanation.text()


def test_a_query_without_patterns_matches() -> None:
    assert told({"query": "ASK { }", "event": [":a :in :b"]}).text() == "matched\nask: 1 solution\n"


def test_what_no_subscription_may_ask_is_not_explained() -> None:
    with pytest.raises(Unsupported, match="SERVICE"):
        told({"query": "ASK { SERVICE :x { ?s ?p ?o } }", "event": [":a :in :b"]})


def test_a_trial_ends_when_its_time_is_over() -> None:
    clock = ManualClock()
    with EventProbe(row(Event(f"{EX}event", f"<{EX}a>\t<{EX}in>\t<{EX}b>")), clock=clock) as trial:
        assert trial.count(Basic()) == 1
        clock.advance(60)
        with pytest.raises(QueryLimit, match="very many solutions"):
            trial.count(Basic())


def test_a_question_that_would_take_forever_is_cut_off() -> None:
    text = "\n".join(f"<{EX}a>\t<{EX}in>\t<{EX}{number}>" for number in range(2_000))
    cross = Basic(tuple(Pattern(Var("s"), Var(f"p{number}"), Var(f"o{number}")) for number in range(6)))
    with EventProbe(row(Event(f"{EX}event", text)), seconds=0.2) as trial, pytest.raises(QueryLimit):
        trial.count(cross)


@examples(12)
@given(data, one_event | one_graph)
def test_it_says_matched_exactly_if_the_evaluator_matches(given: Data, question: Question) -> None:
    try:
        lift(parse_query(question.text), solutions=True)
    except Unsupported:
        assume(False)
    lines = given.union([given.graphs[0]])
    event = Event(given.graphs[0][1:-1], "\n".join("\t".join(map(str, each)) for each in lines))
    explanation = explain(parse_query(question.text), row(event))
    for kind in (Kind.BINDINGS, Kind.SIGNAL):
        found = evaluator(*registered(1, question.text, kind)).match(entries({5: event})).num_rows
        assert explanation.matched == bool(found), explanation.text()
    assert explanation.matched == (explanation.root.failed() is None)
