"""Housekeeping for `bench history`: what is fresh goes into its zones, and those are balanced, as in the pipeline."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from triplewire.service.pipeline import open_maintenance
from triplewire.spark.jobs.workers import run_tasks
from triplewire.storage.lake.balance import BalanceSettings
from triplewire.storage.lake.maintenance import MaintenanceProgress, compact
from triplewire.storage.lake.rebalancing import rebalance


@dataclass(frozen=True)
class Kept:
    """Seconds of sorting into zones and merging, seconds of balancing, and what there is then."""

    compaction: float
    balancing: float
    zones: int
    files: int


def keep_house(spark: SparkSession, table: Path, say: Callable[[str], None]) -> Kept:
    """Until nothing is left to do."""
    made = open_maintenance(table)
    tasks = spark.sparkContext.defaultParallelism
    house = replace(made, run=partial(run_tasks, spark), tasks=tasks, told=_Told(say))
    began = time.perf_counter()
    compact(house)
    compacted = time.perf_counter()
    rebalance(house, BalanceSettings())
    balanced = time.perf_counter()
    compact(house)
    merged = time.perf_counter()
    snapshot = house.lake.files()
    zones = len({each.zone for each in snapshot.files})
    return Kept(compacted - began + merged - balanced, balanced - compacted, zones, len(snapshot.files))


@dataclass
class _Told:
    """Passes progress on, a piece of work at a time."""

    say: Callable[[str], None]

    def __call__(self, progress: MaintenanceProgress) -> None:
        if not progress.done:
            self.say(f"{progress.work}, {progress.of:,} quads")
