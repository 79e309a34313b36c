"""Webhooks of `bench edge`, a small one."""

from __future__ import annotations

import pytest

from bench.edge_webhooks import measure_webhooks

pytestmark = pytest.mark.processes


def test_it_measures_targets_that_answer_beside_some_that_do_not() -> None:
    told = measure_webhooks(targets=6, hanging=2, events=3, beats=3)
    assert (told["targets"], told["hanging"]) == (6, 2)
    for name in ("well", "some_hang"):
        assert told[name]["rate"] > 0
        assert 0 < told[name]["delay_p50"] <= told[name]["delay_p95"]
    assert set(told["ratio"]) == {"delay_mean", "delay_p95", "rate"}
