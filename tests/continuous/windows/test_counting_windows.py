"""Windows of triples and sessions, against what they are, event by event."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from triplewire.continuous.windows.assigners import CountingWindows, split_sessions

sizes = st.lists(st.integers(1, 7), min_size=1, max_size=20)


@given(sizes, st.integers(1, 9), st.integers(1, 9), st.integers(0, 5))
def test_a_window_closes_when_a_multiple_of_the_step_is_passed(
    sizes: list[int], width: int, step: int, before: int
) -> None:
    counting, triples = CountingWindows(width, step), [-1] * before
    closed = {}
    for event, size in enumerate(sizes):
        passed = any(number % step == 0 for number in range(len(triples) + 1, len(triples) + size + 1))
        triples += [event] * size
        if passed:
            closed[event] = sorted(set(triples[-width:]) - {-1})
    ordinals = before + np.cumsum(np.array(sizes, np.int64))
    assert counting.closing(ordinals, before).tolist() == [*closed]
    for last, held in closed.items():
        assert list(range(counting.oldest(ordinals, last), last + 1)) == held


@given(st.lists(st.integers(0, 40), max_size=15), st.integers(1, 6))
def test_a_session_goes_on_until_nothing_came_for_the_gap(moments: list[int], gap: int) -> None:
    moments.sort()
    sessions = list[list[int]]()
    for place, moment in enumerate(moments):
        if place and moment < moments[place - 1] + gap:
            sessions[-1].append(place)
        else:
            sessions.append([place])
    assert [list(each) for each in split_sessions(np.array(moments, np.int64), gap)] == sessions
