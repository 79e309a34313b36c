"""Buckets: the rate holds over time, and the memory of it is bounded."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from triplewire.http.rate_limits import TokenBucket
from triplewire.model.clock import ManualClock

RATE, SECONDS = 10.0, 2.0


def buckets(clock: ManualClock, rate: float = RATE, most: int = 3) -> TokenBucket:
    return TokenBucket(rate, clock, seconds=SECONDS, limit=most)


def test_a_quiet_client_may_have_its_burst_and_then_its_rate() -> None:
    clock = ManualClock()
    found = buckets(clock)
    assert [found.take("a") for _ in range(20)] == [0.0] * 20
    assert found.take("a") > 0
    assert found.take("b") == 0.0
    clock.advance(0.1)
    assert found.take("a") == 0.0
    assert found.take("a") > 0


def test_what_is_larger_than_the_bucket_passes_and_is_waited_for() -> None:
    clock = ManualClock()
    found = buckets(clock)
    assert found.take("a", 120) == 0.0
    assert found.take("a") == 10.0
    clock.advance(10.01)
    assert found.take("a") == 0.0


def test_without_a_rate_everything_passes() -> None:
    found = buckets(ManualClock(), rate=0.0)
    assert [found.take("a", 10**9) for _ in range(3)] == [0.0] * 3
    assert len(found) == 0


def test_those_that_took_last_are_remembered() -> None:
    clock = ManualClock()
    found = buckets(clock)
    for client in "abc":
        assert found.take(client, 100) == 0.0
    assert found.take("a") > 0
    assert found.take("d", 100) == 0.0
    assert len(found) == 3
    assert found.take("a") > 0
    assert found.take("b") == 0.0


@given(st.lists(st.tuples(st.sampled_from((0.0, 0.05, 0.3, 5.0)), st.sampled_from((1.0, 3.0, 15.0))), max_size=40))
def test_nobody_gets_more_than_burst_rate_and_one_debt(steps: list[tuple[float, float]]) -> None:
    clock = ManualClock()
    found, taken, largest = buckets(clock), 0.0, 0.0
    for pause, amount in steps:
        clock.advance(pause)
        if not found.take("a", amount):
            taken, largest = taken + amount, max(largest, amount)
        assert taken <= RATE * (SECONDS + clock.ticks()) + largest + 1e-6


@given(st.sampled_from((1.0, 7.0, 40.0)))
def test_who_waits_as_long_as_it_is_told_gets_through(amount: float) -> None:
    clock = ManualClock()
    found = buckets(clock)
    while not (wait := found.take("a", amount)):
        pass
    clock.advance(wait + 1e-6)
    assert found.take("a", amount) == 0.0
