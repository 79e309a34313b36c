"""Generated subscriptions on single events find what pyoxigraph finds in a store of that event alone."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest
from hypothesis import given

from tests.differential.data import Data, data
from tests.differential.engines import OnEvents
from tests.differential.grammar import Question, one_event
from tests.differential.pairs import examples, hold_on_event, seed_of


@pytest.fixture(scope="module")
def engine() -> Iterator[OnEvents]:
    started = OnEvents()
    yield started
    started.close()


@pytest.mark.parametrize("part", range(2))
def test_events_answer_as_pyoxigraph(engine: OnEvents, part: int) -> None:
    """In parts, which can run side by side."""

    @seed_of(part)
    @examples(150)
    @given(data, one_event)
    def answers(given: Data, question: Question) -> None:
        engine.take(given)
        for graph in given.graphs:
            hold_on_event(given, graph, question, partial(engine.ask_on, graph))

    answers()
