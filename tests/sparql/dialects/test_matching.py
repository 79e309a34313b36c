"""Maximum bipartite matching, against brute force."""

from __future__ import annotations

from itertools import permutations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triplewire.sparql.dialects.duckdb import match_column, maximum_matching

WIDTH = 4


def brute(masks: list[int]) -> int:
    """The elements in every order, with None for members that go without."""
    places = [*range(WIDTH), *([None] * len(masks))]
    return max(
        sum(place is not None and bool(mask >> place & 1) for mask, place in zip(masks, chosen, strict=True))
        for chosen in set(permutations(places, len(masks)))
    )


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 2**WIDTH - 1), max_size=4))
def test_there_are_as_many_as_there_can_be(masks: list[int]) -> None:
    assert maximum_matching(masks) == brute(masks)


@pytest.mark.parametrize(
    ("masks", "count"),
    [
        ([], 0),
        ([0, 0], 0),
        ([0b11, 0b01], 2),
        ([0b011, 0b011, 0b011], 2),
        # each new one makes all before it move on
        ([0b0011, 0b0110, 0b1100, 0b0001], 4),
        ([(1 << 62) - 1] * 62, 62),
        ([*(0b11 << at for at in reversed(range(31))), 1], 32),
    ],
)
def test_whoever_stands_in_the_way_moves_on(masks: list[int], count: int) -> None:
    assert maximum_matching(masks) == count


def test_a_column_of_lists_gives_a_column_of_counts() -> None:
    lists = pa.chunked_array([[[3, 1], None, []], [[None, 1, 1]]], pa.list_(pa.int64()))
    assert match_column(lists).to_pylist() == [2, None, 0, 1]
