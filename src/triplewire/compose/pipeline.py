"""The pipeline process."""

from __future__ import annotations

import signal
from threading import Event as Flag

from triplewire.clock import SystemClock
from triplewire.compose.twins import pipeline_ports
from triplewire.config import Settings
from triplewire.pipeline.application import Application


def run_pipeline(settings: Settings) -> None:
    """Run until SIGTERM or SIGINT, then stop the queries between two batches."""
    stop = Flag()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    Application(settings, pipeline_ports(settings), SystemClock()).run(stop)
