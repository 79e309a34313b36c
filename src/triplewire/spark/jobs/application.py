"""The pipeline as a process: one Spark application that runs the streaming queries until it is told to stop.

Workers are warmed up before the pipeline says that it is ready, and touched now and then so that Spark keeps them.
"""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from threading import Event as Flag
from threading import Thread
from typing import Final

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from triplewire.config import Settings
from triplewire.config.files import file_lock, prepare_directory
from triplewire.config.logs import JSON
from triplewire.config.settings import is_orphaned
from triplewire.config.status import HEARTBEAT_SECONDS, write_heartbeat
from triplewire.config.tracing import open_tracer
from triplewire.history.worker import PREPARE_SECONDS
from triplewire.model import ENTRIES, MATCHED_COLUMNS
from triplewire.model.clock import Clock
from triplewire.model.errors import TriplewireError, Unavailable
from triplewire.spark.jobs.continuous import CONTINUOUS_JOB, ContinuousOptions, start_continuous
from triplewire.spark.jobs.exchange import pack_table
from triplewire.spark.jobs.maintenance import Eraser, LakeMaintenance, MaintenanceRules, MaintenanceThread
from triplewire.spark.jobs.match import match_blocks
from triplewire.spark.jobs.ports import JobPorts
from triplewire.spark.jobs.store import store_blocks
from triplewire.spark.jobs.streaming import SLOW_LANE_JOB, JobContext, start_match, start_slow_lane, start_store
from triplewire.spark.jobs.workers import CpuCosts, run_tasks
from triplewire.spark.session import start_session
from triplewire.storage.lake.maintenance import MaintenanceContext
from triplewire.storage.log.ports import LogRetention

LOG_AGE_SECONDS: Final = 7 * 24 * 3600.0
"""How long the log keeps events for consumers that resume. The lake keeps them for good."""

LOG_BYTES: Final = 8 * 1024**3
"""How much event text the log keeps at most."""


def warm_up(spark: SparkSession, ports: JobPorts, costs: CpuCosts) -> None:
    """Start the workers, load the registry in them and run both transforms once over an event that nobody published.
    Its matches are dropped, and it is stored in a temporary directory."""
    position, count = ports.open_log().head(), spark.sparkContext.defaultParallelism
    blocks = pa.Table.from_batches(
        [block for _ in range(count) for block in pack_table(_warm_up_entries(position).select(MATCHED_COLUMNS))]
    )
    entries = spark.createDataFrame(blocks).repartition(count)
    match_blocks(entries, ports, costs).toArrow()
    with tempfile.TemporaryDirectory(prefix="triplewire-warm-") as scratch:
        store_blocks(entries, Path(scratch), costs).toArrow()


def keep_warm(spark: SparkSession) -> None:
    """Give a worker next to nothing to do. Spark lets all of them go after a minute in which none was used, and the
    next event would wait two seconds for new ones."""
    spark.range(1, numPartitions=1).mapInArrow(_identity, "id long").toArrow()


def _identity(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return batches


def _warm_up_entries(position: int) -> pa.Table:
    """An entry at a position up to which the registry is to be known."""
    row = {
        "position": position,
        "stream": "warm-up",
        "event": "urn:triplewire:warm-up",
        "text": '<urn:s>\t<urn:p>\t"1"^^<http://www.w3.org/2001/XMLSchema#integer>',
        "time": 0,
        "received": 0,
        "syntax": "application/n-quads",
    }
    return pa.Table.from_pylist([row], schema=ENTRIES)


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
        spark = start_session(
            "triplewire", settings.master, settings.driver_memory, objects=settings.log_format == JSON
        )
        traces = open_tracer(settings.traces, "pipeline", settings.trace_ratio)
        work = JobContext(spark, self.ports, settings.checkpoints, CpuCosts.create(spark.sparkContext), traces=traces)
        try:
            queries = self._started(work, stop)
            _collect_jvm_garbage(spark)
            context = replace(self.context, run=partial(run_tasks, spark))
            keeper = LakeMaintenance(context, self.rules, self.clock)
            keeping = MaintenanceThread(keeper, self._eraser(context, began), spark.sparkContext)
            try:
                self._watch(work, queries, keeper, stop)
            finally:
                keeping.stop()
        finally:
            for query in spark.streams.active:
                query.stop()
            spark.stop()
            if traces is not None:
                traces.close()

    def _eraser(self, context: MaintenanceContext, began: int) -> Eraser:
        memory = self.settings.query_seconds + PREPARE_SECONDS
        return Eraser(self.ports.open_stores(), context, self.clock, memory, began)

    def _started(self, work: JobContext, stop: Flag) -> list[StreamingQuery]:
        """Start both queries, and wait until each has passed the position of a new registry entry, on warm workers."""
        ports = self.ports
        warming = Thread(target=warm_up, args=(work.spark, ports, work.costs), daemon=True)
        warming.start()
        queries = [start_match(work, self.settings.match_interval), start_store(work, self.settings.store_interval)]
        (mark,) = ports.open_registry().put([("pipeline", "start", {"pid": os.getpid(), "at": self.clock.now()})])
        outbox, lake = ports.open_outbox(""), ports.open_lake()
        while min(outbox.head(), lake.files().position) < mark and not stop.wait(LOOK_SECONDS):
            _check_queries(queries)
            self._beat("starting")
        warming.join()
        return queries

    def _watch(self, work: JobContext, queries: list[StreamingQuery], keeper: LakeMaintenance, stop: Flag) -> None:
        beats = 0
        while not stop.is_set() and not is_orphaned(self.settings):
            _check_queries(queries)
            self._widen(work, queries)
            progress = {query.name: _query_progress(query) for query in queries}
            if CONTINUOUS_JOB in progress:
                progress[CONTINUOUS_JOB] |= work.continuous
            self._beat("ready", cpu=work.costs.seconds(), limits=dict(work.reached), lake=keeper.state(), **progress)
            if beats % WARM_BEATS == 0:
                keep_warm(work.spark)
            if beats % TRIM_BEATS == 0:
                self._trim()
            beats += 1
            stop.wait(HEARTBEAT_SECONDS)

    def _widen(self, work: JobContext, queries: list[StreamingQuery]) -> None:
        """Open the slow lane, once something is in it, and begin with continuous queries, once there are any: after the
        others, which are waited for."""
        if all(query.name != SLOW_LANE_JOB for query in queries):
            slow = start_slow_lane(work, self.settings.match_interval)
            queries += [] if slow is None else [slow]
        if all(query.name != CONTINUOUS_JOB for query in queries):
            continuous = start_continuous(work, self._continuous_options(work))
            queries += [] if continuous is None else [continuous]

    def _continuous_options(self, work: JobContext) -> ContinuousOptions:
        settings = self.settings
        return ContinuousOptions(
            path=settings.continuous.absolute(),
            partitions=settings.state_partitions or work.cores,
            spread=settings.strategy == "csbv",
            interval=settings.match_interval,
        )

    def _trim(self) -> None:
        """Trim events beyond retention that were both matched and stored, and their matches. The slow lane and
        continuous queries do not hold this up: they could fill the disk."""
        log, outbox = self.ports.open_log(), self.ports.open_outbox("")
        done = min(outbox.head(), self.ports.open_lake().files().position)
        try:
            log.trim(LogRetention(LOG_AGE_SECONDS, LOG_BYTES), before=done)
            oldest = min(log.begin(), done)
            outbox.trim(before=oldest)
        except TriplewireError as error:
            logger.warning("the log was not trimmed: %s", error)

    def _beat(self, state: str, **detail: object) -> None:
        write_heartbeat(self.settings.heartbeat, self.clock, state, detail)


def _check_queries(queries: list[StreamingQuery]) -> None:
    for query in queries:
        failure = query.exception()
        if failure or not query.isActive:
            raise Unavailable(f"the {query.name} query ended: {failure}")


def _query_progress(query: StreamingQuery) -> dict[str, object]:
    last = query.lastProgress
    return {"batch": last.batchId, "rows": last.numInputRows, "milliseconds": dict(last.durationMs)} if last else {}


def _collect_jvm_garbage(spark: SparkSession) -> None:
    """Starting fills the heap with what is never needed again; a collection lets the JVM return it."""
    spark.sparkContext._jvm.System.gc()  # type: ignore[union-attr]


@contextmanager
def _hold_pipeline_lock(data: Path) -> Iterator[None]:
    """Two pipelines on the same data would store everything twice, so the second does not start."""
    prepare_directory(data)
    with file_lock(data / "pipeline.lock", f"another pipeline is running on {data}"):
        yield
