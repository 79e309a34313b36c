"""Generated queries over windows are answered as pyoxigraph answers them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.differential import oracles
from tests.differential.data import Data, data
from tests.differential.grammar import Question, streamed
from tests.differential.pairs import examples, seed_of
from tests.differential.verdicts import problem
from tests.differential.windows import Held, OnWindows, parted, whole

BACKGROUND = Data((("<http://example.org/a> <http://example.org/v> <http://example.org/b>",),))
"""What a query that stays in its window must not see."""

held = st.builds(Held, st.tuples(data, data, data), data)


@pytest.fixture(scope="module")
def engine() -> Iterator[OnWindows]:
    started = OnWindows()
    yield started
    started.close()


@pytest.mark.parametrize("part", range(2))
def test_a_window_answers_as_pyoxigraph(engine: OnWindows, part: int) -> None:
    @seed_of(part)
    @examples(80)
    @given(data, streamed)
    def answers(given: Data, question: Question) -> None:
        engine.hold(Held((given,), BACKGROUND))
        text = whole(question)
        wrong = problem(question.leeway, oracles.on_history(given, question), engine.ask(text))
        assert wrong is None, f"{wrong}\n{text}\n{given}"

    answers()


@pytest.mark.parametrize("part", range(3))
def test_windows_and_background_answer_as_pyoxigraph(engine: OnWindows, part: int) -> None:
    @seed_of(part)
    @examples(80)
    @given(held, streamed)
    def answers(given: Held, question: Question) -> None:
        engine.hold(given)
        text = parted(question)
        wrong = problem(question.leeway, given.expected(question), engine.ask(text))
        assert wrong is None, f"{wrong}\n{text}\n{given}"

    answers()
