"""Pauses between attempts."""

from __future__ import annotations

from triplewire.model.clock import Backoff


def test_pauses_double_up_to_the_longest() -> None:
    backoff = Backoff(0.5, 3.0, jitter=0)
    assert [backoff.seconds(failures) for failures in (1, 2, 3, 4, 1000)] == [0.5, 1.0, 2.0, 3.0, 3.0]


def test_chance_takes_off_up_to_half() -> None:
    assert Backoff(4.0, chance=lambda: 0.0).seconds(1) == 2.0
    assert Backoff(4.0, chance=lambda: 1.0).seconds(1) == 4.0
