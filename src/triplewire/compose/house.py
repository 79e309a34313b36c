"""The house: a lake with what keeps it in order, for the pipeline and for commands."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from triplewire.config import Settings
from triplewire.spark.jobs.maintenance import MaintenanceRules
from triplewire.spark.jobs.workers import run_tasks
from triplewire.spark.session import start_session
from triplewire.storage.lake.balance import parse_balance
from triplewire.storage.lake.delta import DeltaLake
from triplewire.storage.lake.maintenance import MaintenanceContext, MaintenanceProgress, hold_maintenance_lock
from triplewire.storage.lake.retention import LakeRetention
from triplewire.storage.lake.zones import ZoneLayoutStore


def lake_house(table: Path) -> MaintenanceContext:
    """Over the embedded twins, with nobody to work in it yet."""
    return MaintenanceContext(DeltaLake(table), table, ZoneLayoutStore(table.parent / "zones"))


def rules(settings: Settings) -> MaintenanceRules:
    """Raises InputError for settings that make no sense."""
    retention = LakeRetention.parsed(settings.keep, settings.keep_bytes)
    return MaintenanceRules(retention, parse_balance(settings.balance), settings.travel_hours)


@contextmanager
def keeping_house(settings: Settings, told: Callable[[MaintenanceProgress], None]) -> Iterator[MaintenanceContext]:
    """A house that this process alone keeps, on a Spark of its own. Waits for whoever keeps it now."""
    table = settings.lake.absolute()
    with hold_maintenance_lock(table, wait=True):
        spark = start_session("triplewire lake", settings.master, settings.driver_memory)
        try:
            tasks = spark.sparkContext.defaultParallelism
            made = lake_house(table)
            yield MaintenanceContext(made.lake, table, made.maps, partial(run_tasks, spark), tasks, told)
        finally:
            spark.stop()
