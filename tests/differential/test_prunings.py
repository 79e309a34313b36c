"""Generated queries are answered as pyoxigraph answers them where each scan reads only what it has to."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given

from tests.differential.cases import load
from tests.differential.data import Data, data
from tests.differential.grammar import Question, questions
from tests.differential.pairs import examples, hold, seed_of, verdict
from tests.differential.parts import OnParts

CASES = load()


@pytest.fixture(scope="module")
def engine() -> Iterator[OnParts]:
    started = OnParts()
    yield started
    started.close()


@seed_of(7)
@examples(80)
@given(data, questions)
def test_what_is_not_read_is_not_missed(engine: OnParts, given: Data, question: Question) -> None:
    engine.take(given)
    hold(given, question, engine.ask)


def test_kept_pairs_are_answered_by_reading_less(engine: OnParts) -> None:
    for case in CASES.values():
        engine.take(case.data)
        assert verdict(case, engine.ask) is None, case.note
