"""The pipeline process."""

from __future__ import annotations

import signal
from dataclasses import replace
from threading import Event as Flag

from triplewire.compose.house import lake_house, rules
from triplewire.compose.twins import pipeline_ports
from triplewire.config import Settings
from triplewire.config.logs import configure_logging
from triplewire.model.clock import SystemClock
from triplewire.spark.jobs.application import PipelineApplication
from triplewire.spark.jobs.ports import JobPorts


def run_pipeline(settings: Settings) -> None:
    """Run over the embedded twins until SIGTERM or SIGINT, then stop the queries."""
    run_application(settings, pipeline_ports(settings))


def run_application(settings: Settings, ports: JobPorts) -> None:
    """The same over any twins."""
    configure_logging(settings.log_format, "pipeline")
    stop = Flag()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    house = lake_house(settings.lake.absolute())
    PipelineApplication(settings, ports, SystemClock(), replace(house, lake=ports.open_lake()), rules(settings)).run(
        stop
    )
