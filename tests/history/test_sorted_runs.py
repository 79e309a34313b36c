"""Runs: what was added is there, in whatever order and however often it came, and nothing else is."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from triplewire.history.statistics import Numbers, SortedRuns

NUMBERS = st.lists(st.sampled_from([0, 1, 2, 3, 5, 8, 2**32, 2**63, 2**64 - 2, 2**64 - 1]), max_size=6)


def in_order(numbers: list[int]) -> Numbers:
    return np.array(sorted(numbers), np.uint64)


@given(st.lists(NUMBERS, max_size=8), st.integers(1, 12))
def test_what_was_added_is_there_and_nothing_else(added: list[list[int]], longest: int) -> None:
    made, known = SortedRuns(longest), set[int]()
    for each in added:
        made.add(in_order(each))
        known.update(each)
        asked = in_order([0, 1, 2, 4, 8, 2**63, 2**64 - 1])
        assert made.contains(asked).tolist() == [number in known for number in asked.tolist()]


def test_there_are_few_of_them() -> None:
    made = SortedRuns(longest=4_096)
    for number in range(1_000):
        made.add(np.arange(number, number + 9, dtype=np.uint64))
    assert sum(map(len, made._runs)) == 9_000
    assert len(made._runs) < 12
