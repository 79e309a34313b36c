"""Accounts: who is moved to the slow lane, and who is not."""

from __future__ import annotations

from triplewire.spark.jobs.streaming import LANE_BATCH_SECONDS, LANE_BATCHES, LANE_EVENT_SECONDS, CostTracker


def settled(costs: list[dict[str, float]], events: int = 10) -> list[dict[str, float]]:
    """What becomes of each batch, by what shapes took in it."""
    accounts, totals, found = CostTracker(), dict[str, float](), []
    for batch in costs:
        totals = {shape: totals.get(shape, 0.0) + batch.get(shape, 0.0) for shape in totals | batch}
        found.append(accounts.settle(totals, events))
    return found


def test_whoever_is_expensive_in_some_batches_in_a_row_is_moved_once() -> None:
    found = settled([{"dear": 2.0, "cheap": 0.01}] * (LANE_BATCHES + 3))
    assert found == [{}] * (LANE_BATCHES - 1) + [{"dear": 0.2}] + [{}] * 3


def test_one_cheap_batch_begins_the_count_anew() -> None:
    dear, cheap = {"a": 2.0}, {"a": 0.1}
    assert settled([*[dear] * (LANE_BATCHES - 1), cheap, *[dear] * (LANE_BATCHES - 1), {}, dear]) == [{}] * (
        2 * LANE_BATCHES + 1
    )


def test_a_large_batch_may_take_long() -> None:
    events = round(4 * LANE_BATCH_SECONDS / LANE_EVENT_SECONDS)
    assert settled([{"a": 3 * LANE_BATCH_SECONDS}] * 9, events) == [{}] * 9
    assert any(settled([{"a": 5 * LANE_BATCH_SECONDS}] * 9, events))
