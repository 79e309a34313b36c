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
from triplewire.spark.jobs.resident import JOBS, ResidentJob, ResidentOptions
from triplewire.spark.session import start_session
from triplewire.storage.log.ports import Publication
from triplewire.storage.outbox import OutboxLane, OutboxPart, PartProgress, SqliteOutbox
from triplewire.testing import event
from triplewire.testing.samples import EXAMPLE

STALLED_SECONDS = 3.0
LOOK_SECONDS = 0.1


class StallingOutbox:
    """An outbox whose first write of matches never returns."""

    def __init__(self, path: Path, run: str) -> None:
        self._outbox = SqliteOutbox(path, run)
        self._marker = path.with_name("stalled")

    def write_part(self, part: OutboxPart, after: int, position: int, matches: pa.Table) -> PartProgress:
        if matches.num_rows and not self._marker.exists():
            self._marker.touch()
            while True:
                time.sleep(60)
        return self._outbox.write_part(part, after, position, matches)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever an outbox has
        return getattr(self._outbox, name)


def publish(ports: JobPorts, count: int) -> list[int]:
    (positions,) = ports.open_log().append([Publication("test", [event(number) for number in range(count)])])
    return [*positions]


def wait(until: Callable[[], bool]) -> None:
    while not until():
        time.sleep(LOOK_SECONDS)


def restart(job: ResidentJob) -> bool:
    """Return whether the job was started again. It is checked here alone: a task that is slow to begin, since the
    machine is busy, must not count as stalled."""
    job.check()
    return job.restarts > 0


def main(folder: str, tasks: int, events: int) -> None:
    """Publish so many events twice, the first time to a job whose first write stalls."""
    settings = Settings(data=Path(folder))
    ports = replace(pipeline_ports(settings), open_outbox=partial(StallingOutbox, settings.outbox.absolute()))
    changes = registered(0, f"SELECT * {{ ?o a <{EXAMPLE}Observation> }}")
    ports.open_registry().put([(each.kind, each.key, each.value) for each in changes])
    spark = start_session("stalling", "local[1]", "512m", resident=len(JOBS) * tasks)
    outbox = SqliteOutbox(settings.outbox)
    job = ResidentJob(
        spark, ports, ResidentOptions(OutboxLane.FAST, tasks=tasks, stalled=STALLED_SECONDS), SystemClock()
    )
    try:
        wait(lambda: job.figures()["tasks"] == tasks)
        published = publish(ports, events)
        wait((settings.data / "stalled").exists)
        wait(lambda: restart(job))
        wait(lambda: outbox.head() == ports.open_log().head())
        published += publish(ports, events)
        wait(lambda: outbox.head() == ports.open_log().head())
        found = [at for chunk in outbox.read(0, 100) for at in chunk.matches["position"].to_pylist()]
        print(found == published, (settings.data / "stalled").exists(), job.restarts)  # noqa: T201
    finally:
        job.stop()
        spark.stop()
