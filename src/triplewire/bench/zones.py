"""`bench zones`: EventCloud's experiment on load balancing, with its rules and with ours, over the same tweets."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from triplewire.bench.machine import description
from triplewire.bench.zones_lake import Explosion, ZonedLake, deviation
from triplewire.bench.zones_tweets import QUADS, Tweets
from triplewire.storage.lake.balance import BalanceSettings, LoadCriterion

Say = Callable[[str], None]


@dataclass(frozen=True)
class Plan:
    """How many tweets, into how many zones, and how many come in at once while zones are balanced in between."""

    events: int = 10_000
    zones: int = 32
    batch: int = 500


@dataclass(frozen=True)
class Experiment:
    """Settings, whether all data is there from the beginning, and what the thesis measured with such settings."""

    name: str
    title: str
    settings: BalanceSettings
    static: bool
    thesis: float | None = None


def experiments(plan: Plan) -> tuple[Experiment, ...]:
    """Theirs first. They cut dimensions in turn, and never merge."""
    count, ideal = plan.zones, plan.events * QUADS / plan.zones
    once, damped = (LoadCriterion("quads", 1.0, 0.0),), (LoadCriterion("quads", 1.1, 0.0),)
    both = (LoadCriterion("quads", 1.2, 0.8),)

    def theirs(
        strategy: str, criteria: tuple[LoadCriterion, ...], cut: str, estimates: tuple[float, ...] = ()
    ) -> BalanceSettings:
        return BalanceSettings(strategy, count, criteria, estimates, cut, "turn", smallest=1)

    return (
        Experiment("middle", "static, middle", theirs("static", once, "middle"), True, 559.4),
        Experiment("centroid", "static, centroid", theirs("static", once, "centroid"), True, 69.5),
        Experiment("absolute", "dynamic, absolute", theirs("absolute", once, "centroid", (ideal,)), False, 119.75),
        Experiment("relative", "dynamic, relative", theirs("relative", damped, "centroid"), False, 96.57),
        Experiment("static", "static, quantile, best", BalanceSettings("static", count, once, smallest=1), True),
        Experiment("dynamic", "dynamic, quantile, best", BalanceSettings("relative", count, both, smallest=1), False),
    )


def run(plan: Plan, say: Say) -> dict[str, Any]:
    """Everything, one after the other."""
    say(f"making {plan.events:,} tweets")
    explosion = Explosion()
    batches = [explosion.rows(body) for body in Tweets(plan.events).bodies(plan.batch)]
    found = {}
    for experiment in experiments(plan):
        say(experiment.title)
        found[experiment.name] = measured(experiment, batches, plan.zones)
    return {
        "events": plan.events,
        "quads": sum(each.num_rows for each in batches),
        "zones": plan.zones,
        "experiments": found,
        "machine": description(),
    }


def measured(experiment: Experiment, batches: Sequence[pa.Table], zones: int) -> dict[str, Any]:
    """The loads that an experiment ends with, and while data came in the deviations after every batch."""
    began = time.perf_counter()
    lake, between = ZonedLake(experiment.settings), []
    for batch in [pa.concat_tables(batches)] if experiment.static else batches:
        lake.insert(batch)
        lake.balance()
        between.append(deviation(_loads(lake, zones)))
    loads = _loads(lake, zones)
    return {
        "title": experiment.title,
        "thesis_rsd": experiment.thesis,
        "rsd": round(deviation(loads), 2),
        "worst_rsd": round(max(between[1:], default=between[0]), 2),
        "used": sum(load > 0 for load in loads),
        "moved": lake.moved,
        "seconds": round(time.perf_counter() - began, 2),
        "loads": sorted(loads, reverse=True),
    }


def _loads(lake: ZonedLake, zones: int) -> list[int]:
    """Of all zones that there may be; those that were not made hold nothing."""
    held = list(lake.loads().values())
    return held + [0] * (zones - len(held))
