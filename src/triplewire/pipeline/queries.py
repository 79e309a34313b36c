"""The streaming queries over the log: `match`, `match-slow` and `store`, each with a checkpoint of its own."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from triplewire.lake.ports import Batch
from triplewire.pipeline.accounts import Accounts
from triplewire.pipeline.checkpoints import Checkpoint
from triplewire.pipeline.costs import Costs
from triplewire.pipeline.lanes import slowly
from triplewire.pipeline.match import collected, matched
from triplewire.pipeline.ports import Ports
from triplewire.pipeline.source import NAME, log_source
from triplewire.pipeline.store import files, stored
from triplewire.registry.lanes import LANE, Lane, to_value
from triplewire.registry.ports import Registry

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

    @cached_property
    def registry(self) -> Registry:
        return self.ports.open_registry()


@dataclass(frozen=True)
class Streaming:
    """How one query runs: its name, the position behind which a first run starts, and how often it looks."""

    name: str
    after: int
    interval: float
    checkpoint: Checkpoint


def start_match(work: Work, interval: float) -> StreamingQuery:
    """Every event against every subscription that holds at its position; matches go to the outbox."""
    ports, checkpoint = work.ports, Checkpoint(work.checkpoints / "match")
    streaming = Streaming("match", ports.open_outbox("").head(), interval, checkpoint)
    outbox = cache(ports.open_outbox)
    done = [streaming.after]

    def deliver(entries: DataFrame, number: int) -> None:
        matches = collected(matched(entries, ports, work.costs))
        upto = checkpoint.upto(number)
        outbox(checkpoint.id).write(number, upto, matches)
        work.reached.update(matches["limit"].drop_null().to_pylist())
        move(work.registry, work.accounts.settle(work.costs.shapes.value, upto - done[0]))
        done[0] = upto

    return _start(work, streaming, deliver)


def move(registry: Registry, expensive: Mapping[str, float]) -> None:
    """Move shapes to the slow lane, with what an event costs them. Where they are there already they stay as they are:
    what was decided at a position holds."""
    moving = [Lane(shape, cost) for shape, cost in expensive.items() if registry.get(LANE, shape) is None]
    if moving:
        logger.warning("too expensive, and matched apart from now on: %s", moving)
        registry.put([(LANE, each.shape, to_value(each)) for each in moving])


def start_slow(work: Work, interval: float) -> StreamingQuery | None:
    """Every event against the subscriptions of the slow lane; None as long as there are none."""
    ports, checkpoint = work.ports, Checkpoint(work.checkpoints / SLOW)
    lanes = work.registry.list(LANE)
    if not lanes:
        return None
    outbox = cache(ports.open_slow)
    streaming = Streaming(SLOW, outbox("").head() or lanes[0].position, interval, checkpoint)

    def deliver(entries: DataFrame, number: int) -> None:
        matches = collected(slowly(entries, ports.open_registry, work.costs))
        outbox(checkpoint.id).write(number, checkpoint.upto(number), matches)
        work.reached.update(matches["limit"].drop_null().to_pylist())

    return _start(work, streaming, deliver)


def start_store(work: Work, interval: float) -> StreamingQuery:
    """Every event into the lake."""
    ports, checkpoint = work.ports, Checkpoint(work.checkpoints / "store")
    lake = ports.open_lake()
    streaming = Streaming("store", lake.files().upto, interval, checkpoint)

    def commit(entries: DataFrame, number: int) -> None:
        written = files(stored(entries, ports.lake_files, work.costs).toArrow())
        lake.commit(Batch(checkpoint.id, number, checkpoint.upto(number)), written)

    return _start(work, streaming, commit)


def _start(work: Work, streaming: Streaming, sink: Callable[[DataFrame, int], None]) -> StreamingQuery:
    context = work.spark.sparkContext
    context.setLocalProperty("spark.scheduler.pool", streaming.name)
    work.spark.dataSource.register(log_source(work.ports.open_log))
    return (
        work.spark.readStream.format(NAME)
        .option("parts", context.defaultParallelism)
        .option("after", streaming.after)
        .load()
        .writeStream.queryName(streaming.name)
        .option("checkpointLocation", str(streaming.checkpoint.path))
        .trigger(processingTime=f"{round(streaming.interval * 1_000)} milliseconds")
        .foreachBatch(sink)
        .start()
    )
