"""The pipeline process, and the maintenance of its lake by hand.

`maintain_lake` holds the maintenance lock and a Spark session of its own for commands.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Event as Flag

from triplewire.config import Settings
from triplewire.config.logs import configure_logging
from triplewire.model.clock import SystemClock
from triplewire.service.wiring import pipeline_ports
from triplewire.spark.jobs.application import PipelineApplication
from triplewire.spark.jobs.maintenance import MaintenanceRules
from triplewire.spark.jobs.ports import JobPorts
from triplewire.spark.jobs.workers import run_tasks
from triplewire.spark.session import start_session
from triplewire.storage.lake.balance import parse_balance
from triplewire.storage.lake.delta import DeltaLake
from triplewire.storage.lake.maintenance import MaintenanceContext, MaintenanceProgress, hold_maintenance_lock
from triplewire.storage.lake.retention import LakeRetention
from triplewire.storage.lake.zones import ZoneLayoutStore


def open_maintenance(table: Path) -> MaintenanceContext:
    """Open a lake and its zone map for maintenance, without a Spark session."""
    return MaintenanceContext(DeltaLake(table), table, ZoneLayoutStore(table.parent / "zones"))


def maintenance_rules(settings: Settings) -> MaintenanceRules:
    """Parse the settings of maintenance. Raises InputError."""
    retention = LakeRetention.parsed(settings.retention, settings.retention_bytes)
    return MaintenanceRules(retention, parse_balance(settings.balance), settings.time_travel_hours)


@contextmanager
def maintain_lake(settings: Settings, report: Callable[[MaintenanceProgress], None]) -> Iterator[MaintenanceContext]:
    """Hold the maintenance lock of the lake, with a Spark session. Waits until no other process holds it."""
    table = settings.lake.absolute()
    with hold_maintenance_lock(table, wait=True):
        spark = start_session("triplewire lake", settings.master, settings.driver_memory)
        try:
            tasks = spark.sparkContext.defaultParallelism
            context = open_maintenance(table)
            yield MaintenanceContext(context.lake, table, context.maps, partial(run_tasks, spark), tasks, report)
        finally:
            spark.stop()


def run_pipeline(settings: Settings) -> None:
    """Run the pipeline over the embedded stores until SIGTERM or SIGINT, then stop its streaming queries."""
    run_application(settings, pipeline_ports(settings))


def run_application(settings: Settings, ports: JobPorts) -> None:
    """Run the pipeline over any stores."""
    configure_logging(settings.log_format, "pipeline")
    stop = Flag()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    maintenance = replace(open_maintenance(settings.lake.absolute()), lake=ports.open_lake())
    application = PipelineApplication(settings, ports, SystemClock(), maintenance, maintenance_rules(settings))
    application.run(stop)
