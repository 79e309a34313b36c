"""The aims of `bench continuous`, on two cores after warm-up: those that a run of its kind and size is about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from triplewire.bench.aims import Aim

_FULL = 100_000
"""Questions with which rates are aims."""

_RATES = {"paths": 10_000.0, "structures": 2_000.0, "windowed": 20_000.0}
_GROWTH = Aim("time for a triple, times that with 1,000 questions", ("growth", "times"), 2.0, "")
_SPREAD = Aim("share of buckets at work", ("loads", "buckets", "share_at_work"), 0.95, "", least=True)
_FLAT = Aim("memory in the last quarter, times that in the second", ("memory", "times"), 1.1, "")
_LATEST = Aim("until the latest window was reported after its end", ("late_ms", "max"), 2_000.0, " ms")
_ALL = Aim("windows without a report", ("missing",), 0.0, "")


def aims(report: Mapping[str, Any]) -> list[Aim]:
    """Those that the report can be held to."""
    workload = report["workload"]
    if workload == "sliding":
        return [_LATEST, _ALL]
    found: list[Aim] = []
    if report["strategy"] == "csbv":
        if workload == "structures" or report["queries"] >= _FULL:
            found.append(Aim("triples a second", ("triples_per_s",), _RATES[workload], "", least=True))
        found.append(_SPREAD)
    if report.get("growth"):
        found.append(_GROWTH)
    if workload == "windowed":
        found.append(_FLAT)
    return found
