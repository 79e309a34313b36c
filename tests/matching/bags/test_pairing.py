"""Pairings: what holds, against brute force over all ways to pair."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triplewire.matching.bags.pairing import ClauseValues, Partners, SubscriptionRows, match_pairs

EQUAL, SUB, SUPER = 1, 2, 3


def held(how: int, masks: list[int], size: int) -> bool:
    """One event with a value for each mask, and one subscription of so many elements: bit j stands for element j."""
    partners = [[bit for bit in range(size) if mask >> bit & 1] for mask in masks]
    starts = np.cumsum([0, *map(len, partners)]).astype(np.int64)
    constants = np.array([each for one in partners for each in one], np.int32)
    values = ClauseValues(np.array([0, len(masks)]), np.arange(len(masks), dtype=np.int32), np.array([True]), 1)
    rows = SubscriptionRows(np.arange(size, dtype=np.int32)[None, :], np.array([0, size]), np.array([how]))
    zero = np.zeros(1, np.int64)
    return bool(match_pairs(zero, zero, values, Partners(starts, constants), rows)[0])


def brute(how: int, masks: list[int], size: int) -> bool:
    count = len(masks)
    if (how == EQUAL and count != size) or (how == SUB and count > size) or (how == SUPER and count < size):
        return False
    if how == SUPER:
        return any(
            all(masks[chosen[at]] >> at & 1 for at in range(size)) for chosen in permutations(range(count), size)
        )
    return any(all(masks[at] >> chosen[at] & 1 for at in range(count)) for chosen in permutations(range(size), count))


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from([EQUAL, SUB, SUPER]),
    st.integers(0, 5).flatmap(lambda size: st.tuples(st.just(size), st.lists(st.integers(0, 2**size - 1), max_size=5))),
)
def test_it_holds_where_some_way_to_pair_holds(how: int, drawn: tuple[int, list[int]]) -> None:
    size, masks = drawn
    assert held(how, masks, size) is brute(how, masks, size)


@pytest.mark.parametrize(
    ("how", "masks", "size", "holds"),
    [
        # each new one makes all before it move on
        (EQUAL, [*(0b11 << at for at in reversed(range(31))), 1], 32, True),
        (EQUAL, [0b011, 0b011, 0b011], 3, False),
        (SUB, [(1 << 32) - 1] * 32, 32, True),
        (SUB, [1, 1], 32, False),
        (SUPER, [1] * 1_000 + [2], 2, True),
        (SUPER, [1] * 1_000, 2, False),
        (SUPER, [], 0, True),
        (EQUAL, [], 0, True),
    ],
)
def test_whoever_stands_in_the_way_moves_on(how: int, masks: list[int], size: int, holds: bool) -> None:
    assert held(how, masks, size) is holds
