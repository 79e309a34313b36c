"""Arrival time never goes back; a watermark waits for streams that are busy, and for no others."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from triplewire.continuous.windows.watermarks import (
    SECOND,
    WINDOW_GRACE_SECONDS,
    WINDOW_IDLE_SECONDS,
    ArrivalClock,
    StreamProgress,
    Watermark,
)

GRACE = int(WINDOW_GRACE_SECONDS * SECOND)
IDLE = int(WINDOW_IDLE_SECONDS * SECOND)


def times(*seconds: float) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array([int(each * SECOND) for each in seconds], np.int64)


def sighting(time: float, received: float) -> StreamProgress:
    return StreamProgress.from_times(times(time), times(received))


@given(st.lists(st.tuples(st.lists(st.integers(0, 50), max_size=4), st.integers(0, 50)), max_size=8))
def test_by_arrival_nothing_is_ever_late(turns: list[tuple[list[int], int]]) -> None:
    clock, before = ArrivalClock(), -GRACE - 1
    for received, now in turns:
        moments = clock.take(times(*received)).tolist()
        assert moments == sorted(moments)
        assert all(moment >= max(before, at * SECOND) for moment, at in zip(moments, received, strict=True))
        clock.advance(now * SECOND)
        assert clock.reached is not None
        assert clock.reached >= max([before, now * SECOND - GRACE, *moments])
        before = clock.reached


def test_a_busy_stream_needs_no_grace() -> None:
    clock = ArrivalClock()
    clock.take(times(9.9, 10.0))
    clock.advance(int(10.1 * SECOND))
    assert clock.reached == 10 * SECOND


def test_a_watermark_follows_the_greatest_time_at_a_distance() -> None:
    mark = Watermark(("a",), 2 * SECOND, begun=0)
    mark.see({"a": StreamProgress.from_times(times(10, 7), times(11, 12))})
    mark.advance(12 * SECOND)
    assert mark.reached == 8 * SECOND
    mark.see({"a": sighting(9, 13)})
    mark.advance(13 * SECOND)
    assert mark.reached == 8 * SECOND


def test_what_is_said_to_happen_in_the_future_closes_nothing() -> None:
    mark = Watermark(("a",), 0, begun=0)
    mark.see({"a": sighting(1_000_000, 11)})
    mark.advance(12 * SECOND)
    assert mark.reached == 11 * SECOND


def test_a_quiet_stream_goes_on_with_the_clock_in_its_own_year() -> None:
    mark = Watermark(("a",), 0, begun=0)
    mark.see({"a": sighting(100, 5_000)})
    mark.advance(5_000 * SECOND + IDLE)
    assert mark.reached == 100 * SECOND
    mark.advance(5_007 * SECOND + IDLE)
    assert mark.reached == 107 * SECOND


@pytest.mark.parametrize(
    ("now", "reached"),
    [(1, None), (4, None), (WINDOW_IDLE_SECONDS + 1, 3)],
    ids=["registered", "waits for the other", "waits no longer"],
)
def test_a_stream_that_is_silent_from_the_start_is_waited_for_a_while(now: float, reached: int | None) -> None:
    mark = Watermark(("a", "b"), 0, begun=0)
    mark.see({"a": sighting(3, 3)})
    mark.advance(int(now * SECOND))
    assert mark.reached == (None if reached is None else reached * SECOND)


def test_a_stream_that_lags_holds_the_others_until_it_is_idle() -> None:
    mark = Watermark(("a", "b"), 0, begun=0)
    mark.see({"a": sighting(20, 20), "b": sighting(10, 20)})
    mark.advance(20 * SECOND)
    assert mark.reached == 10 * SECOND
    mark.see({"a": sighting(27, 27)})
    mark.advance(20 * SECOND + IDLE + 1)
    assert mark.reached == 27 * SECOND


def test_without_events_event_time_does_not_begin() -> None:
    mark = Watermark(("a",), 0, begun=0)
    mark.advance(1_000 * SECOND)
    assert mark.reached is None
    assert mark.due(5, 1_000 * SECOND) is None


@given(st.integers(0, 20), st.integers(0, 20), st.integers(1, 30), st.integers(0, 5))
def test_it_is_known_when_a_quiet_stream_comes_to_a_moment(time: int, lag: int, moment: int, lateness: int) -> None:
    """A turn at that time, and none a microsecond earlier, finds the watermark there."""
    mark = Watermark(("a",), lateness * SECOND, begun=0)
    mark.see({"a": sighting(time, time + lag)})
    now = (time + lag) * SECOND
    mark.advance(now)
    wanted = moment * SECOND
    assert mark.reached is not None
    if mark.reached >= wanted:
        return
    due = mark.due(wanted, now)
    while due is not None and mark.reached < wanted:
        mark.advance(due - 1)
        assert mark.reached < wanted
        mark.advance(due)
        now, due = due, mark.due(wanted, due)
    assert mark.reached >= wanted
