"""The streaming queries over the log: `match` and `store`, each with a checkpoint of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from triplewire.lake.ports import Batch
from triplewire.pipeline.checkpoints import Checkpoint
from triplewire.pipeline.costs import Costs
from triplewire.pipeline.match import collected, matched
from triplewire.pipeline.ports import Ports
from triplewire.pipeline.source import NAME, log_source
from triplewire.pipeline.store import files, stored


@dataclass(frozen=True)
class Work:
    """What both queries work with."""

    spark: SparkSession
    ports: Ports
    checkpoints: Path
    costs: Costs
    reached: Counter[str] = field(default_factory=Counter)
    """Of limits, how often subscriptions reached each on an event, since the pipeline began."""


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

    def deliver(entries: DataFrame, number: int) -> None:
        matches = collected(matched(entries, ports.open_registry, work.costs))
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
