"""Streaming queries over the log: `match`, `match-slow` and `store`, each with a checkpoint of its own.

The cost tracker adds up the CPU time of each shape batch by batch and moves shapes that stay too expensive to the slow
lane. Nothing of it survives a restart: an expensive shape soon is again.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource
from pyspark.sql.streaming.query import StreamingQuery

from triplewire.config.tracing import TRACED_EVENTS, Tracer, now_ns, parse_parents
from triplewire.model import format_position
from triplewire.spark.jobs.match import collect_matches, match_blocks, match_slow_lane
from triplewire.spark.jobs.ports import JobPorts
from triplewire.spark.jobs.source import Batching, Checkpoint, log_source
from triplewire.spark.jobs.store import store_blocks
from triplewire.spark.jobs.workers import CpuCosts, unpack_results
from triplewire.storage.lake.ports import CommitBatch
from triplewire.storage.log.ports import Log
from triplewire.storage.outbox import OutboxLane
from triplewire.storage.registry.ports import Registry
from triplewire.storage.registry.subscriptions import LANE, Lane, lane_to_value

TRACED_READ_EVENTS: Final = 20_000
"""Events of a batch that are read again to find those that are traced: some 50 ms."""

STORE_EVENTS: Final = 60_000
"""Events in one batch of `store` where it is behind: some two seconds. Workers do not hold them all at once."""

STORE_TEXT_BYTES: Final = 96 * 1024 * 1024
"""Text of the events in such a batch; one event more may begin within it."""

LANE_BATCH_SECONDS: Final = 0.5
"""CPU time that the evaluator takes for one shape on a batch, for which all others wait, before it counts as
expensive."""

LANE_EVENT_SECONDS: Final = 0.001
"""CPU time for one shape and event, on the average of a batch, below which a shape is not expensive: ten times what a
hundred usual ones take together."""

LANE_BATCHES: Final = 3
"""Batches in a row in which a shape is expensive before it goes to the slow lane, where it stays."""


@dataclass
class CostTracker:
    """The CPU time of shapes in the driver, lost with a restart: an expensive shape soon is again."""

    _known: dict[str, float] = field(default_factory=dict)
    """The seconds of each shape since the pipeline began."""
    _over: dict[str, int] = field(default_factory=dict)
    """The number of batches in a row in which a shape was too expensive."""

    def settle(self, seconds: Mapping[str, float], events: int) -> dict[str, float]:
        """Add a batch of events, given the CPU seconds of all shapes since the start. Return the shapes to move to the
        slow lane, with their seconds for each event."""
        taken = {shape: total - self._known.get(shape, 0.0) for shape, total in seconds.items()}
        self._known = dict(seconds)
        least = max(LANE_BATCH_SECONDS, events * LANE_EVENT_SECONDS)
        self._over = {shape: self._over.get(shape, 0) + 1 for shape, each in taken.items() if each >= least}
        return {shape: taken[shape] / max(1, events) for shape, count in self._over.items() if count == LANE_BATCHES}


logger = logging.getLogger(__name__)

SLOW_LANE_JOB = "match-slow"
"""The name of the query of the slow lane."""


@dataclass(frozen=True)
class JobContext:
    """The session, ports and figures that all jobs share."""

    spark: SparkSession
    ports: JobPorts
    checkpoints: Path
    costs: CpuCosts
    reached: Counter[str] = field(default_factory=Counter)
    """The number of events on which subscriptions exceeded a limit, by limit, since the pipeline began."""
    accounts: CostTracker = field(default_factory=CostTracker)
    traces: Tracer | None = None
    """The receiver of spans, if there is one."""
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

    def trace(self, name: str, after: int, through: int, began: int) -> None:
        """Add a span for a batch to the traces of its events."""
        if self.traces is None:
            return
        entries = self.log.read(after, through, TRACED_READ_EVENTS)
        found = parse_parents(entries["extensions"].to_pylist(), TRACED_EVENTS)
        if found:
            self.traces.batch(
                name, found, began, {"triplewire.events": entries.num_rows, "triplewire.upto": format_position(through)}
            )


@dataclass(frozen=True)
class StreamingJob:
    """A streaming query: its name, checkpoint, batches and interval."""

    name: str
    checkpoint: Checkpoint
    batching: Batching
    interval: float
    """Seconds between two checks for events; 0 is at once after a batch."""
    rest: float = 0.01
    """Seconds after a check that found none."""


def start_match(work: JobContext, interval: float) -> StreamingQuery:
    """Start the job that matches every event against the subscriptions at its position, into the outbox."""
    ports, checkpoint = work.ports, Checkpoint(work.checkpoints / "match")
    outbox = cache(ports.open_outbox)
    first = outbox("").head()
    streaming = StreamingJob("match", checkpoint, Batching(first, work.cores), interval)

    def deliver(entries: DataFrame, number: int) -> None:
        began = now_ns()
        matches = collect_matches(match_blocks(entries, ports, work.costs))
        through = checkpoint.position(number)
        outbox(checkpoint.id).write(number, through, matches)
        after = checkpoint.position(number - 1) if number else first
        work.trace("match", after, through, began)
        work.reached.update(matches["limit"].drop_null().to_pylist())
        move_to_slow_lane(work.registry, work.accounts.settle(work.costs.shapes.value, through - after))

    return start_job(work, streaming, deliver)


def move_to_slow_lane(registry: Registry, expensive: Mapping[str, float]) -> None:
    """Move shapes to the slow lane, with their cost for each event. Shapes that are there already stay as they are."""
    moving = [Lane(shape, cost) for shape, cost in expensive.items() if registry.get(LANE, shape) is None]
    if moving:
        logger.warning("shapes moved to the slow lane, because they are too expensive: %s", moving)
        registry.put([(LANE, each.shape, lane_to_value(each)) for each in moving])


def start_slow_lane(work: JobContext, interval: float) -> StreamingQuery | None:
    """Start the job that matches events against the slow lane; None as long as that is empty."""
    ports, checkpoint = work.ports, Checkpoint(work.checkpoints / SLOW_LANE_JOB)
    lanes = work.registry.list(LANE)
    if not lanes:
        return None
    outbox = cache(ports.open_outbox)
    after = outbox("").head(OutboxLane.SLOW) or lanes[0].position
    streaming = StreamingJob(SLOW_LANE_JOB, checkpoint, Batching(after, work.cores), interval)

    def deliver(entries: DataFrame, number: int) -> None:
        matches = collect_matches(match_slow_lane(entries, ports.open_registry, work.costs))
        outbox(checkpoint.id).write(number, checkpoint.position(number), matches, OutboxLane.SLOW)
        work.reached.update(matches["limit"].drop_null().to_pylist())

    return start_job(work, streaming, deliver)


def start_store(work: JobContext, interval: float) -> StreamingQuery:
    """Start the job that stores every event in the lake: a commit in every interval, or one after the other while much
    waits. Spark itself begins batches only at whole intervals."""
    ports, checkpoint = work.ports, Checkpoint(work.checkpoints / "store")
    lake = ports.open_lake()
    batching = Batching(lake.files().position, work.cores, STORE_EVENTS, STORE_TEXT_BYTES, interval)
    streaming = StreamingJob("store", checkpoint, batching, interval=0.0, rest=interval / 4)

    def commit(entries: DataFrame, number: int) -> None:
        written = unpack_results(store_blocks(entries, ports.lake_files, work.costs))
        lake.commit(CommitBatch(checkpoint.id, number, checkpoint.position(number)), written)

    return start_job(work, streaming, commit)


def start_job(
    work: JobContext,
    streaming: StreamingJob,
    sink: Callable[[DataFrame, int], None],
    source: type[DataSource] | None = None,
) -> StreamingQuery:
    """Start a query over the log, or over another source."""
    found = source or log_source(work.ports.open_log)
    work.spark.sparkContext.setLocalProperty("spark.scheduler.pool", streaming.name)
    work.spark.conf.set("spark.sql.streaming.pollingDelay", f"{round(streaming.rest * 1_000)}ms")
    work.spark.dataSource.register(found)
    return (
        work.spark.readStream.format(found.name())
        .options(**asdict(streaming.batching))
        .load()
        .writeStream.queryName(streaming.name)
        .option("checkpointLocation", str(streaming.checkpoint.path))
        .trigger(processingTime=f"{round(streaming.interval * 1_000)} milliseconds")
        .foreachBatch(sink)
        .start()
    )
