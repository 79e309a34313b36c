"""The streaming queries over the log: `match`, `match-slow` and `store`, each with a checkpoint of its own."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cache, cached_property
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource
from pyspark.sql.streaming.query import StreamingQuery

from triplewire.config import limits
from triplewire.config.tracing import Tracer, now_ns, parse_parents
from triplewire.model import format_position
from triplewire.pipeline.accounts import Accounts
from triplewire.pipeline.checkpoints import Checkpoint
from triplewire.pipeline.costs import Costs
from triplewire.pipeline.lanes import slowly
from triplewire.pipeline.match import collected, matched
from triplewire.pipeline.ports import Ports
from triplewire.pipeline.source import Batching, log_source
from triplewire.pipeline.store import stored
from triplewire.pipeline.tasks import made
from triplewire.storage.lake.ports import CommitBatch
from triplewire.storage.log.ports import Log
from triplewire.storage.registry.ports import Registry
from triplewire.storage.registry.subscriptions import LANE, Lane, lane_to_value

logger = logging.getLogger(__name__)

SLOW = "match-slow"
"""The name of the query of the slow lane."""


@dataclass(frozen=True)
class Work:
    """What all queries work with."""

    spark: SparkSession
    ports: Ports
    checkpoints: Path
    costs: Costs
    reached: Counter[str] = field(default_factory=Counter)
    """Of limits, how often subscriptions reached each on an event, since the pipeline began."""
    accounts: Accounts = field(default_factory=Accounts)
    traces: Tracer | None = None
    """Where spans are told; None where nobody hears them."""
    ongoing: dict[str, object] = field(default_factory=dict)
    """What is told of continuous queries, as of their last batch."""

    @property
    def cores(self) -> int:
        return self.spark.sparkContext.defaultParallelism

    @cached_property
    def registry(self) -> Registry:
        return self.ports.open_registry()

    @cached_property
    def log(self) -> Log:
        return self.ports.open_log()

    def trace(self, name: str, after: int, upto: int, began: int) -> None:
        """Tell the traces of events, where there are any, what was done for them in a batch."""
        if self.traces is None:
            return
        entries = self.log.read(after, upto, limits.PAGE_EVENTS)
        found = parse_parents(entries["extensions"].to_pylist(), limits.TRACED_EVENTS)
        if found:
            self.traces.batch(
                name, found, began, {"triplewire.events": entries.num_rows, "triplewire.upto": format_position(upto)}
            )


@dataclass(frozen=True)
class Streaming:
    """How one query runs: its name, what its batches are, and how often it looks."""

    name: str
    checkpoint: Checkpoint
    batching: Batching
    interval: float
    """Seconds between two looks; 0 is at once after a batch."""
    rest: float = 0.01
    """Seconds after a look that found nothing."""


def start_match(work: Work, interval: float) -> StreamingQuery:
    """Every event against every subscription that holds at its position; matches go to the outbox."""
    ports, checkpoint = work.ports, Checkpoint(work.checkpoints / "match")
    outbox = cache(ports.open_outbox)
    done = [outbox("").head()]
    streaming = Streaming("match", checkpoint, Batching(done[0], work.cores), interval)

    def deliver(entries: DataFrame, number: int) -> None:
        began = now_ns()
        matches = collected(matched(entries, ports, work.costs))
        upto = checkpoint.upto(number)
        outbox(checkpoint.id).write(number, upto, matches)
        work.trace("match", done[0], upto, began)
        work.reached.update(matches["limit"].drop_null().to_pylist())
        move(work.registry, work.accounts.settle(work.costs.shapes.value, upto - done[0]))
        done[0] = upto

    return start(work, streaming, deliver)


def move(registry: Registry, expensive: Mapping[str, float]) -> None:
    """Move shapes to the slow lane, with what an event costs them. Where they are there already they stay as they are:
    what was decided at a position holds."""
    moving = [Lane(shape, cost) for shape, cost in expensive.items() if registry.get(LANE, shape) is None]
    if moving:
        logger.warning("too expensive, and matched apart from now on: %s", moving)
        registry.put([(LANE, each.shape, lane_to_value(each)) for each in moving])


def start_slow(work: Work, interval: float) -> StreamingQuery | None:
    """Every event against the subscriptions of the slow lane; None as long as there are none."""
    ports, checkpoint = work.ports, Checkpoint(work.checkpoints / SLOW)
    lanes = work.registry.list(LANE)
    if not lanes:
        return None
    outbox = cache(ports.open_slow)
    after = outbox("").head() or lanes[0].position
    streaming = Streaming(SLOW, checkpoint, Batching(after, work.cores), interval)

    def deliver(entries: DataFrame, number: int) -> None:
        matches = collected(slowly(entries, ports.open_registry, work.costs))
        outbox(checkpoint.id).write(number, checkpoint.upto(number), matches)
        work.reached.update(matches["limit"].drop_null().to_pylist())

    return start(work, streaming, deliver)


def start_store(work: Work, interval: float) -> StreamingQuery:
    """Every event into the lake: a commit in every interval, or one after the other as long as much waits. Spark itself
    begins batches at whole intervals alone, and rests in between however much waits."""
    ports, checkpoint = work.ports, Checkpoint(work.checkpoints / "store")
    lake = ports.open_lake()
    batching = Batching(lake.files().upto, work.cores, limits.STORE_EVENTS, limits.STORE_TEXT_BYTES, interval)
    streaming = Streaming("store", checkpoint, batching, interval=0.0, rest=interval / 4)

    def commit(entries: DataFrame, number: int) -> None:
        written = made(stored(entries, ports.lake_files, work.costs))
        lake.commit(CommitBatch(checkpoint.id, number, checkpoint.upto(number)), written)

    return start(work, streaming, commit)


def start(
    work: Work, streaming: Streaming, sink: Callable[[DataFrame, int], None], source: type[DataSource] | None = None
) -> StreamingQuery:
    """Run a query over the log, or over another source."""
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
