"""The same through Spark SQL: few, as each takes about a second, and not shrunk."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.differential.cases import load
from tests.differential.data import Data, data
from tests.differential.grammar import Question, questions
from tests.differential.pairs import examples, hold, verdict
from tests.differential.spark import OnSpark

pytestmark = [pytest.mark.spark, pytest.mark.timeout(350)]

CASES = load()


@pytest.fixture(scope="module")
def engine() -> Iterator[OnSpark]:
    started = OnSpark()
    yield started
    started.close()


@settings(examples(8), phases=[Phase.generate])
@given(data, st.lists(questions, min_size=5, max_size=5))
def test_spark_answers_as_pyoxigraph(engine: OnSpark, given: Data, several: list[Question]) -> None:
    engine.take(given)
    for question in several:
        hold(given, question, engine.ask)


@pytest.mark.parametrize("name", CASES)
def test_a_kept_pair_is_answered(engine: OnSpark, name: str) -> None:
    engine.take(CASES[name].data)
    assert verdict(CASES[name], engine.ask) is None, CASES[name].note
