"""The pipeline as a process: one Spark application that runs the streaming queries until it is told to stop.

The pipeline is ready when both jobs have passed a new registry entry. While there are continuous queries, workers are
touched now and then so that Spark keeps them.
"""

from __future__ import annotations

import logging
import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from subprocess import Popen
from threading import Event as Flag
from typing import Any, Final, Protocol

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from triplewire.config import Settings
from triplewire.config.files import file_lock, prepare_directory
from triplewire.config.logs import JSON
from triplewire.config.settings import is_orphaned
from triplewire.config.status import HEARTBEAT_SECONDS, write_heartbeat
from triplewire.history.worker import PREPARE_SECONDS
from triplewire.kernels.cache import is_compiled
from triplewire.model.clock import Clock
from triplewire.model.errors import TriplewireError
from triplewire.spark.jobs.maintenance import Eraser, LakeMaintenance, MaintenanceRules, MaintenanceThread
from triplewire.spark.jobs.ports import JobPorts
from triplewire.spark.jobs.resident import JOBS, ResidentJob, ResidentOptions
from triplewire.spark.jobs.streaming import CONTINUOUS_JOB, JobContext, QueryJob, start_store
from triplewire.spark.jobs.workers import CpuCosts, run_tasks
from triplewire.spark.session import identity, start_session
from triplewire.storage.lake.maintenance import MaintenanceContext
from triplewire.storage.log.ports import LogRetention
from triplewire.storage.outbox import OutboxLane
from triplewire.storage.registry.subscriptions import LANE, QUERY

LOG_AGE_SECONDS: Final = 7 * 24 * 3600.0
"""How long the log keeps events for consumers that resume. The lake keeps them for good."""

LOG_BYTES: Final = 8 * 1024**3
"""How much event text the log keeps at most."""


def keep_warm(spark: SparkSession) -> None:
    """Give a worker next to nothing to do. Spark lets all of them go after a minute in which none was used, and the
    next event would wait two seconds for new ones."""
    spark.range(1, numPartitions=1).mapInArrow(identity, "id long").toArrow()


logger = logging.getLogger(__name__)

LOOK_SECONDS = 0.1
WARM_BEATS = 15
"""Heartbeats between two touches of the workers: half a minute, of the minute that Spark bears with them."""
TRIM_BEATS = 150
"""Heartbeats between two looks at what retention lets go: five minutes."""


@dataclass(frozen=True)
class PipelineApplication:
    """The parts of a running pipeline."""

    settings: Settings
    ports: JobPorts
    clock: Clock
    context: MaintenanceContext
    rules: MaintenanceRules

    def run(self, stop: Flag) -> None:
        """Run until `stop` is set. Raises Conflict if another pipeline has this data, Unavailable if a query failed."""
        with _hold_pipeline_lock(self.settings.data):
            self._beat("starting")
            try:
                self._serve(stop)
            except BaseException as error:
                self._beat("failed", error=str(error)[:500])
                raise
            self._beat("stopped")

    def _serve(self, stop: Flag) -> None:
        settings, began = self.settings, self.clock.now()
        compiling = start_compiling()
        spark = start_session(
            "triplewire",
            settings.master,
            settings.driver_memory,
            objects=settings.log_format == JSON,
            resident=len(JOBS) * settings.match_tasks,
        )
        work = JobContext(spark, self.ports, settings.checkpoints, CpuCosts.create(spark.sparkContext))
        jobs: dict[str, PipelineJob] = {}
        try:
            self._start(work, jobs, compiling, stop)
            _collect_jvm_garbage(spark)
            context = replace(self.context, run=partial(run_tasks, spark))
            maintenance = LakeMaintenance(context, self.rules, self.clock)
            thread = MaintenanceThread(maintenance, self._eraser(context, began), spark.sparkContext)
            try:
                self._watch(work, jobs, maintenance, stop)
            finally:
                thread.stop()
        finally:
            for job in jobs.values():
                job.stop()
            spark.stop()

    def _eraser(self, context: MaintenanceContext, began: int) -> Eraser:
        memory = self.settings.query_seconds + PREPARE_SECONDS
        return Eraser(self.ports.open_stores(), context, self.clock, memory, began)

    def _start(
        self, work: JobContext, jobs: dict[str, PipelineJob], compiling: Popen[bytes] | None, stop: Flag
    ) -> None:
        """Start matching and storing, and wait until each has passed the position of a new registry entry."""
        ports = self.ports
        (mark,) = ports.open_registry().put([("pipeline", "start", {"pid": os.getpid(), "at": self.clock.now()})])
        jobs["store"] = start_store(work, self.settings.store_interval)
        while compiling is not None and compiling.poll() is None and not stop.wait(LOOK_SECONDS):
            self._beat("starting")
        jobs["match"] = self._resident(work, OutboxLane.FAST, 0)
        outbox, lake = ports.open_outbox(""), ports.open_lake()
        while min(outbox.head(), lake.files().position) < mark and not stop.wait(LOOK_SECONDS):
            _check(jobs)
            self._beat("starting")

    def _watch(self, work: JobContext, jobs: dict[str, PipelineJob], maintenance: LakeMaintenance, stop: Flag) -> None:
        beats = 0
        while not stop.is_set() and not is_orphaned(self.settings):
            _check(jobs)
            self._widen(work, jobs)
            self._beat("ready", **self._figures(work, jobs), lake=maintenance.state())
            if CONTINUOUS_JOB in jobs and beats % WARM_BEATS == 0:
                keep_warm(work.spark)
            if beats % TRIM_BEATS == 0:
                self._trim()
            beats += 1
            stop.wait(HEARTBEAT_SECONDS)

    def _figures(self, work: JobContext, jobs: Mapping[str, PipelineJob]) -> dict[str, Any]:
        """Return the figures of each job, the CPU seconds of all of them, and how often limits were reached."""
        figures = {name: job.figures() for name, job in jobs.items()}
        if CONTINUOUS_JOB in figures:
            figures[CONTINUOUS_JOB] |= work.continuous
        limits, cpu = Counter[str](), work.costs.seconds()
        for lane, part in ((OutboxLane.FAST, "kernel"), (OutboxLane.SLOW, "slow")):
            resident = figures.get(JOBS[lane], {})
            limits.update(resident.get("limits", {}))
            cpu[part] = resident.get("cpu", 0.0)
        return {**figures, "cpu": cpu, "limits": dict(limits)}

    def _widen(self, work: JobContext, jobs: dict[str, PipelineJob]) -> None:
        """Start the slow lane once something is in it, and continuous queries once there are any."""
        if JOBS[OutboxLane.SLOW] not in jobs and (lanes := work.registry.list(LANE, limit=1)):
            jobs[JOBS[OutboxLane.SLOW]] = self._resident(work, OutboxLane.SLOW, lanes[0].position)
        if CONTINUOUS_JOB not in jobs and work.registry.list(QUERY, limit=1):
            jobs[CONTINUOUS_JOB] = QueryJob(self._start_continuous(work))

    def _resident(self, work: JobContext, lane: OutboxLane, after: int) -> ResidentJob:
        options = ResidentOptions(lane, after, self.settings.match_tasks, self.settings.match_interval)
        return ResidentJob(work.spark, self.ports, options, self.clock)

    def _start_continuous(self, work: JobContext) -> StreamingQuery:
        # Slow to import, and of no use without a continuous query.
        from triplewire.spark.jobs.continuous import ContinuousOptions, start_continuous

        settings = self.settings
        options = ContinuousOptions(
            path=settings.continuous.absolute(),
            partitions=settings.state_partitions or work.cores,
            spread=settings.strategy == "csbv",
            interval=settings.match_interval,
        )
        return start_continuous(work, options)

    def _trim(self) -> None:
        """Trim events beyond retention that were both matched and stored, and their matches. The slow lane and
        continuous queries do not hold this up: they could fill the disk."""
        log, outbox = self.ports.open_log(), self.ports.open_outbox("")
        done = min(outbox.head(), self.ports.open_lake().files().position)
        try:
            # Matches that a power failure takes are made again from the log.
            outbox.sync()
            log.trim(LogRetention(LOG_AGE_SECONDS, LOG_BYTES), before=done)
            oldest = min(log.begin(), done)
            outbox.trim(before=oldest)
        except TriplewireError as error:
            logger.warning("the log was not trimmed: %s", error)

    def _beat(self, state: str, **detail: object) -> None:
        write_heartbeat(self.settings.heartbeat, self.clock, state, detail)


def start_compiling() -> Popen[bytes] | None:
    """Start to compile the matching code, unless it is, beside Spark, which takes as long to start. If the process
    fails, the first task compiles."""
    if is_compiled():
        return None
    return Popen([sys.executable, "-c", "from triplewire.matching.index.groups import compile_kernels as run; run()"])


class PipelineJob(Protocol):
    """A running job of the pipeline."""

    def check(self) -> None:
        """Raises Unavailable if the job ended by itself."""

    def figures(self) -> dict[str, Any]:
        """Return its figures for the heartbeat."""

    def stop(self) -> None: ...


def _check(jobs: Mapping[str, PipelineJob]) -> None:
    for job in jobs.values():
        job.check()


def _collect_jvm_garbage(spark: SparkSession) -> None:
    """Starting fills the heap with what is never needed again; a collection lets the JVM return it."""
    spark.sparkContext._jvm.System.gc()  # type: ignore[union-attr]


@contextmanager
def _hold_pipeline_lock(data: Path) -> Iterator[None]:
    """Two pipelines on the same data would store everything twice, so the second does not start."""
    prepare_directory(data)
    with file_lock(data / "pipeline.lock", f"another pipeline is running on {data}"):
        yield
