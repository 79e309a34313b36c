"""Streaming queries over the log, each with a checkpoint of its own: `store`, and the parts that continuous queries
share with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from threading import Event as Flag
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource
from pyspark.sql.streaming.query import StreamingQuery

from triplewire.model.errors import Unavailable
from triplewire.spark.jobs.ports import JobPorts
from triplewire.spark.jobs.source import SMALLEST_PART, Batching, Checkpoint, plan_batch, split_positions
from triplewire.spark.jobs.store import store_ranges
from triplewire.spark.jobs.workers import CpuCosts
from triplewire.storage.lake.ports import CommitBatch
from triplewire.storage.log.ports import Log
from triplewire.storage.registry.ports import Registry

STORE_EVENTS: Final = 60_000
"""Events in one batch of `store` where it is behind: some two seconds. Workers do not hold them all at once."""

STORE_TEXT_BYTES: Final = 96 * 1024 * 1024
"""Text of the events in such a batch; one event more may begin within it."""

STORE_AT_ONCE: Final = 2 * SMALLEST_PART
"""Positions that wait from which on the next batch begins at once, and not in the next interval."""


CONTINUOUS_JOB = "continuous"
"""The name of the query that answers continuous queries."""


@dataclass(frozen=True)
class JobContext:
    """The session, ports and figures that all jobs share."""

    spark: SparkSession
    ports: JobPorts
    checkpoints: Path
    costs: CpuCosts
    continuous: dict[str, object] = field(default_factory=dict)
    """Figures of continuous queries as of their last batch, for the heartbeat."""

    @property
    def cores(self) -> int:
        return self.spark.sparkContext.defaultParallelism

    @cached_property
    def registry(self) -> Registry:
        return self.ports.open_registry()

    @cached_property
    def log(self) -> Log:
        return self.ports.open_log()


@dataclass(frozen=True)
class StreamingJob:
    """A streaming query: its name, checkpoint and batches."""

    name: str
    checkpoint: Checkpoint
    batching: Batching


@dataclass(frozen=True)
class QueryJob:
    """A streaming query as a job."""

    query: StreamingQuery
    stopping: Flag = field(default_factory=Flag)
    """Ends a batch that waits."""

    def check(self) -> None:
        """Raises Unavailable if the query ended by itself."""
        failure = self.query.exception()
        if failure or not self.query.isActive:
            raise Unavailable(f"the {self.query.name} query ended: {failure}")

    def figures(self) -> dict[str, Any]:
        """Return the figures of its last batch, for the heartbeat."""
        last = self.query.lastProgress
        return {"batch": last.batchId, "rows": last.numInputRows, "milliseconds": dict(last.durationMs)} if last else {}

    def stop(self) -> None:
        self.stopping.set()
        self.query.stop()


def start_store(work: JobContext, interval: float) -> QueryJob:
    """Start the job that stores every event in the lake: a commit in every interval, or one after the other while much
    waits.

    Its source is a clock of Spark's own. Each batch begins where the lake ends, and the lake commits a position once,
    so that the job needs nothing of its checkpoint. A batch without events takes Spark 30 ms of CPU time, so a batch
    first waits until there are some.
    """
    ports, stopping = work.ports, Flag()
    log, lake = ports.open_log(), ports.open_lake()

    def store(ticks: DataFrame, number: int) -> None:
        stored = lake.files().position
        while log.head() <= stored and not stopping.wait(interval):
            pass
        waiting = STORE_AT_ONCE
        while waiting >= STORE_AT_ONCE:
            after = lake.files().position
            through = plan_batch(log, after, STORE_EVENTS, STORE_TEXT_BYTES)
            if through > after:
                files = store_ranges(work.spark, ports, split_positions(after, through, work.cores), work.costs)
                lake.commit(CommitBatch("store", through, through), files)
            waiting = log.head() - through

    work.spark.sparkContext.setLocalProperty("spark.scheduler.pool", "store")
    ticks = work.spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
    query = (
        ticks.writeStream.queryName("store")
        .option("checkpointLocation", str(work.checkpoints / "store-ticks"))
        .trigger(processingTime=f"{round(interval * 1_000)} milliseconds")
        .foreachBatch(store)
        .start()
    )
    return QueryJob(query, stopping)


def start_job(
    work: JobContext,
    streaming: StreamingJob,
    sink: Callable[[DataFrame, int], None],
    source: type[DataSource],
) -> StreamingQuery:
    """Start a query whose source waits until there is something for a batch."""
    work.spark.sparkContext.setLocalProperty("spark.scheduler.pool", streaming.name)
    work.spark.conf.set("spark.sql.streaming.pollingDelay", "10ms")
    work.spark.dataSource.register(source)
    return (
        work.spark.readStream.format(source.name())
        .options(**asdict(streaming.batching))
        .load()
        .writeStream.queryName(streaming.name)
        .option("checkpointLocation", str(streaming.checkpoint.path))
        .trigger(processingTime="0 seconds")
        .foreachBatch(sink)
        .start()
    )
