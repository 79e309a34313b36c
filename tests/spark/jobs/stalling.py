"""A resident job whose first task hangs in the middle of its work: the driver has to notice, and to start it again."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.matching.subscriptions import registered
from triplewire.config import Settings
from triplewire.model.clock import SystemClock
from triplewire.service.wiring import pipeline_ports
from triplewire.spark.jobs.ports import JobPorts
from triplewire.spark.jobs.resident import JOBS, ResidentJob
from triplewire.spark.session import start_session
from triplewire.storage.log.ports import Publication
from triplewire.storage.outbox import OutboxLane, SqliteOutbox
from triplewire.testing import event
from triplewire.testing.samples import EXAMPLE

STALLED_SECONDS = 3.0
LOOK_SECONDS = 0.1


class StallingOutbox:
    """An outbox whose first write of matches never returns."""

    def __init__(self, path: Path, run: str) -> None:
        self._outbox = SqliteOutbox(path, run)
        self._marker = path.with_name("stalled")

    def write(self, batch: int, position: int, matches: pa.Table, lane: OutboxLane = OutboxLane.FAST) -> None:
        if matches.num_rows and not self._marker.exists():
            self._marker.touch()
            while True:
                time.sleep(60)
        self._outbox.write(batch, position, matches, lane)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever an outbox has
        return getattr(self._outbox, name)


def publish(ports: JobPorts, number: int) -> None:
    ports.open_log().append([Publication("test", [event(number)])])


def wait(job: ResidentJob, until: Callable[[], bool]) -> None:
    while not until():
        job.check()
        time.sleep(LOOK_SECONDS)


def main(folder: str) -> None:
    settings = Settings(data=Path(folder))
    ports = replace(pipeline_ports(settings), open_outbox=partial(StallingOutbox, settings.outbox.absolute()))
    changes = registered(0, f"SELECT * {{ ?o a <{EXAMPLE}Observation> }}")
    ports.open_registry().put([(each.kind, each.key, each.value) for each in changes])
    spark = start_session("stalling", "local[1]", "512m", resident=len(JOBS))
    outbox = SqliteOutbox(settings.outbox)
    job = ResidentJob(spark, ports, OutboxLane.FAST, 0, 0.1, SystemClock(), stalled=STALLED_SECONDS)
    try:
        wait(job, lambda: job.last_report().state == "ready")
        publish(ports, 1)
        wait(job, lambda: outbox.head() == ports.open_log().head())
        publish(ports, 2)
        wait(job, lambda: outbox.head() == ports.open_log().head())
        found = [at for chunk in outbox.read(0, 10) for at in chunk.matches["position"].to_pylist()]
        head = ports.open_log().head()
        print(found == [head - 1, head], (settings.data / "stalled").exists(), job.restarts)  # noqa: T201
    finally:
        job.stop()
        spark.stop()
