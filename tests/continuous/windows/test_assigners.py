"""Windows of time, against what a window is: an end at a multiple of the step, and the moments before it."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from triplewire.continuous.windows.assigners import SlidingWindows, WindowBounds

slidings = st.builds(SlidingWindows, st.integers(1, 12), st.integers(1, 12))
moments = st.integers(-40, 40)
ENDS = range(-200, 200)


def windows(sliding: SlidingWindows) -> list[WindowBounds]:
    """By definition, those around the moments of these tests."""
    return [WindowBounds(end - sliding.width, end) for end in ENDS if end % sliding.step == 0]


def holding(sliding: SlidingWindows, moment: int) -> list[int]:
    return [each.end for each in windows(sliding) if each.start <= moment < each.end]


@given(slidings, moments)
def test_an_event_belongs_to_the_windows_around_it(sliding: SlidingWindows, moment: int) -> None:
    assert list(sliding.holding(moment)) == holding(sliding, moment)
    assert sliding.held(np.array([moment])).tolist() == [bool(holding(sliding, moment))]


@given(slidings, moments, moments)
def test_windows_close_at_their_ends(sliding: SlidingWindows, after: int, through: int) -> None:
    expected = [each.end for each in windows(sliding) if after < each.end <= through]
    assert list(sliding.closing(after, through)) == expected


@given(slidings, moments)
def test_the_newest_window_is_the_last_that_closed(sliding: SlidingWindows, moment: int) -> None:
    closed = [each for each in windows(sliding) if each.end <= moment]
    assert sliding.newest(moment) == closed[-1]
    assert sliding.next(moment) == windows(sliding)[len(closed)].end
    assert sliding.previous(moment) == max(each.end for each in windows(sliding) if each.end < moment)


@given(slidings, moments, moments)
def test_an_event_is_lost_when_all_its_windows_closed(sliding: SlidingWindows, moment: int, closed: int) -> None:
    ends = holding(sliding, moment)
    assert sliding.lost(np.array([moment]), closed).tolist() == [bool(ends) and max(ends) <= closed]


@given(slidings, st.lists(moments, max_size=6), moments)
def test_contents_change_where_an_event_enters_or_leaves(
    sliding: SlidingWindows, known: list[int], moment: int
) -> None:
    end = sliding.newest(moment).end
    later = [each for each in windows(sliding) if each.end > end]
    entering = [each.end for each in later if any(each.start <= one < each.end for one in known)]
    assert sliding.entering(np.array(known, np.int64), end) == (entering[0] if entering else None)
    leaving = next(each.end for each in windows(sliding) if each.start > moment)
    assert sliding.leaving(moment) == leaving


def test_with_a_step_above_the_width_there_are_gaps() -> None:
    sliding = SlidingWindows(width=2, step=5)
    assert [moment for moment in range(10) if list(sliding.holding(moment))] == [3, 4, 8, 9]
    assert sliding.gaps
