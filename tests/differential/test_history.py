"""Generated queries over history are answered as pyoxigraph answers them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given

from tests.differential.cases import load
from tests.differential.data import Data, data
from tests.differential.engines import OnDuckDB
from tests.differential.grammar import Question, questions
from tests.differential.pairs import examples, hold, verdict

CASES = load()


@pytest.fixture(scope="module")
def engine() -> Iterator[OnDuckDB]:
    started = OnDuckDB()
    yield started
    started.close()


@examples(600)
@given(data, questions)
def test_history_answers_as_pyoxigraph(engine: OnDuckDB, given: Data, question: Question) -> None:
    engine.take(given)
    hold(given, question, engine.ask)


@pytest.mark.parametrize("name", CASES)
def test_a_kept_pair_is_answered(engine: OnDuckDB, name: str) -> None:
    engine.take(CASES[name].data)
    assert verdict(CASES[name], engine.ask) is None, CASES[name].note
