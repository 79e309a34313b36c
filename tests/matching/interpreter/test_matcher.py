"""Generated subscriptions on generated events: undecided, or what the evaluator says and what pyoxigraph finds."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pyoxigraph as ox
import pytest
from hypothesis import given

from tests.conformance.results import Answer
from tests.conformance.results import Rows as Table
from tests.differential.data import Data, data
from tests.differential.grammar import Question, one_event
from tests.differential.pairs import examples, hold_on_event, seed_of
from tests.matching.interpreter.oracles import alike, batch, evaluated, lifted, singly
from triplewire.matching.interpreter.matcher import PairResult
from triplewire.matching.shapes import expand_bindings, expand_terms
from triplewire.model import Event
from triplewire.model.errors import Unsupported
from triplewire.sparql import Query

EXAMPLES = 60
MOST_UNDECIDED = 0.4


def events(given: Data) -> list[Event]:
    texts = ["\n".join("\t".join(line.split(" ", 2)) for line in lines) for lines in given.events]
    return [Event(graph[1:-1], text) for graph, text in zip(given.graphs, texts, strict=True)]


@pytest.mark.parametrize("part", range(2))
def test_generated_subscriptions(part: int) -> None:
    """In parts, which can run side by side."""
    told = list[bool]()

    @seed_of(part)
    @examples(EXAMPLES)
    @given(data, one_event)
    def answers(given: Data, question: Question) -> None:
        try:
            lifted(question.text)
        except Unsupported:
            return
        table = batch(events(given))
        found = singly(question.text, table)
        told.extend(each is not None for each in found)
        if not any(each is not None for each in found):
            return
        for graph, one, other in zip(given.graphs, found, evaluated(question.text, table), strict=True):
            assert one is None or alike(question.text, one, other), f"{question.text}\n{one}\n{other}"
            if one is not None:
                row = table.to_pylist()[given.graphs.index(graph)]
                hold_on_event(given, graph, question, partial(_answer, one, row))

    answers()
    assert told.count(False) < MOST_UNDECIDED * len(told)


def _answer(found: PairResult, row: dict[str, Any], text: str) -> Answer:
    """What a subscriber would read of it."""
    asked = lifted(text)
    if asked.shape.query.form == "ask":
        return found.matched
    if isinstance(asked.shape.query, Query):
        document = expand_terms(asked.shape, found.terms or ())
    else:
        document = expand_bindings(asked.shape, row, found.solutions or ())
    read = ox.parse_query_results(json.dumps(document), format=ox.QueryResultsFormat.JSON)
    assert isinstance(read, ox.QuerySolutions)
    names = tuple(each.value for each in read.variables)
    return Table(names, tuple(tuple(each) for each in read) if found.matched else ())
