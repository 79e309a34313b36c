"""Generated queries over history are answered as pyoxigraph answers them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given

from tests.differential.cases import load
from tests.differential.data import Data, data
from tests.differential.engines import OnDuckDB
from tests.differential.grammar import Question, questions
from tests.differential.pairs import examples, hold, seed_of, verdict

CASES = load()


@pytest.fixture(scope="module")
def engine() -> Iterator[OnDuckDB]:
    started = OnDuckDB()
    yield started
    started.close()


@pytest.mark.parametrize("part", range(4))
def test_history_answers_as_pyoxigraph(engine: OnDuckDB, part: int) -> None:
    """In parts, which can run side by side."""

    @seed_of(part)
    @examples(130)
    @given(data, questions)
    def answers(given: Data, question: Question) -> None:
        engine.take(given)
        hold(given, question, engine.ask)

    answers()


@pytest.mark.parametrize("name", CASES)
def test_a_kept_pair_is_answered(engine: OnDuckDB, name: str) -> None:
    engine.take(CASES[name].data)
    assert verdict(CASES[name], engine.ask) is None, CASES[name].note
