"""The log as jobs read it: ranges of positions, frames of events, a streaming source with times for continuous queries,
and the checkpoints of streaming queries.

Every log is read through its port. The time of a batch is written with its offset before it runs, so that a replayed
batch runs at the same time; a batch may come though nothing was published, because a window is to close.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows
from pyspark.sql.types import StructType

from triplewire.continuous.state import read_due
from triplewire.model import MATCHED_COLUMNS
from triplewire.model.clock import Clock, SystemClock
from triplewire.spark.jobs.exchange import BLOCK_BYTES, BLOCKS, unpack_blocks
from triplewire.spark.jobs.workers import hide_pandas
from triplewire.storage.log.ports import MeasuredLog
from triplewire.storage.registry.ontologies import BATCH_EVENTS
from triplewire.storage.signals import SignalReceiver

BATCH_TEXT_BYTES: Final = 32 * 1024 * 1024
"""Text of the events in one micro-batch; one event more may begin within it. As a table of quads it is about ten times
as much."""

BLOCK_EVENTS: Final = 5_000
"""Events that go through Spark as one row. More are no faster, and all of a block are in memory at once."""


SMALLEST_PART = 6_000
"""Positions below which a batch is not cut into parts: a task more costs more than it gains."""


@dataclass(frozen=True)
class PositionRange:
    """The positions p with `after < p <= through`."""

    after: int
    through: int


@dataclass(frozen=True)
class Batching:
    """The size of a batch. Each field is an option of the source."""

    after: int
    """A query without a checkpoint starts behind this position."""
    events: int = BATCH_EVENTS
    size: int = BATCH_TEXT_BYTES
    """Bytes of text; one event more may begin within them."""

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> Batching:
        return cls(**{each.name: int(options[each.name]) for each in fields(cls)})


def plan_batch(log: MeasuredLog, after: int, events: int, size: int) -> int:
    """Return the position at which the next batch ends: the head of the log, if limits of events and of bytes allow."""
    through = min(log.head(), after + events)
    return log.page_end(after, through, size) if through > after else after


def read_blocks(log: MeasuredLog, positions: PositionRange) -> Iterator[pa.Table]:
    """Read the events of a range, with the columns that jobs read, in tables of bounded size."""
    after = positions.after
    while after < positions.through:
        through = log.page_end(after, positions.through, BLOCK_BYTES)
        entries = log.read(after, through, BLOCK_EVENTS)
        if entries.num_rows:
            yield entries.select(MATCHED_COLUMNS)
        after = entries["position"][-1].as_py() if entries.num_rows == BLOCK_EVENTS else through


def split_positions(after: int, through: int, parts: int) -> list[PositionRange]:
    """The range of positions as at most `parts` ranges of nearly equal length, none of them needlessly small."""
    count = max(1, min(parts, (through - after) // SMALLEST_PART))
    if through <= after:
        return []
    bounds = [after + (through - after) * number // count for number in range(count + 1)]
    return [PositionRange(first, last) for first, last in pairwise(bounds)]


ReadEvents = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.Table]]
"""Reads tables of events from the rows of a task."""


@dataclass(frozen=True)
class EventFrame:
    """Events as a frame: a task reads them from its rows. `alone`: one task is to do all the work; there is no other
    then."""

    rows: DataFrame
    read: ReadEvents
    alone: bool = False


def frame_of_ranges(
    spark: SparkSession, open_log: Callable[[], MeasuredLog], ranges: Sequence[PositionRange]
) -> EventFrame:
    """Return the events of ranges of the log, with a task for each. Without ranges one task has nothing to read."""
    tasks = max(1, len(ranges))
    return EventFrame(spark.range(0, tasks, 1, tasks), partial(_read_ranges, open_log, ranges), tasks == 1)


def frame_of_blocks(spark: SparkSession, blocks: Sequence[pa.RecordBatch]) -> EventFrame:
    """Return the events of `BLOCKS`, of which there must be one."""
    return EventFrame(spark.createDataFrame(pa.Table.from_batches(blocks)), unpack_blocks)


def _read_ranges(
    open_log: Callable[[], MeasuredLog], ranges: Sequence[PositionRange], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.Table]:
    log = open_log()
    for number in (number for batch in batches for number in batch["id"].to_pylist()):
        if number < len(ranges):
            yield from read_blocks(log, ranges[number])


TIMED_LOG_SOURCE = "triplewire-timed-log"


@dataclass(frozen=True)
class SourcePorts:
    """What the timed log source looks at. It pickles."""

    open_log: Callable[[], MeasuredLog]
    open_signals: Callable[[], SignalReceiver]
    due: Path
    """A file with the time, in microseconds, from which on a batch is to come even if nothing was published."""
    interval: float
    """Seconds after which the source looks at the log although no signal came."""


def timed_log_source(ports: SourcePorts) -> type[DataSource]:
    """A data source whose offsets say what a batch reads. It has no rows: tasks read the log by themselves."""

    class TimedLogSource(DataSource):
        @classmethod
        def name(cls) -> str:
            return TIMED_LOG_SOURCE

        def schema(self) -> StructType:
            return from_arrow_schema(BLOCKS)

        def streamReader(self, schema: StructType) -> DataSourceStreamReader:
            hide_pandas()
            return TimedLogReader(ports, Batching.from_options(self.options), SystemClock())

    return TimedLogSource


class TimedLogReader(DataSourceStreamReader):
    """Offsets are positions and times; neither goes back. Two offsets fix what a batch reads, so a replayed batch reads
    the same. Windows close by the time.

    Events after the position were not received before the time, but for those that are just being made durable: the
    time of a batch that leaves events for the next one is when the first of these was received.
    """

    def __init__(self, ports: SourcePorts, batching: Batching, clock: Clock) -> None:
        self._ports = ports
        self._batching = batching
        self._clock = clock

    @cached_property
    def _log(self) -> MeasuredLog:
        return self._ports.open_log()

    @cached_property
    def _signals(self) -> SignalReceiver:
        return self._ports.open_signals()

    def initialOffset(self) -> dict[str, int]:
        return {"position": self._batching.after, "time": 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self._batching.events)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        """Return the end of the next batch. If there is none yet, wait for a commit to the log or for the time that is
        due, at most for the interval, and look again."""
        signals, end = self._signals, self._plan(start)
        if end == start:
            due = (read_due(self._ports.due) - self._clock.now()) / 1_000_000
            signals.wait(max(0.0, min(self._ports.interval, due)))
            end = self._plan(start)
        return end

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        return []

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return iter(())

    def _plan(self, start: dict[str, int]) -> dict[str, int]:
        # The clock is read first: events that were received before are in the log by then, or on their way.
        now, after = self._clock.now(), start["position"]
        through = plan_batch(self._log, after, self._batching.events, self._batching.size)
        now = max(self._limit_time(through, now), start["time"])
        if through == after and now < read_due(self._ports.due):
            return start
        return {"position": through, "time": now}

    def _limit_time(self, through: int, now: int) -> int:
        following = self._log.read(through, self._log.head(), 1)
        return min(now, int(following["received"][0].as_py())) if following.num_rows else now


@dataclass(frozen=True)
class Checkpoint:
    """The checkpoint directory of one query, as Spark writes it."""

    path: Path

    @property
    def id(self) -> str:
        """The query's identity, the same over restarts. Written before the first batch runs."""
        return str(json.loads((self.path / "metadata").read_text())["id"])

    def position(self, batch: int) -> int:
        """The position at which a batch ends. Spark writes it before it runs the batch."""
        return int(self._offset(batch)["position"])

    def time(self, batch: int) -> int:
        """The time of a batch, where offsets have one."""
        return int(self._offset(batch)["time"])

    def _offset(self, batch: int) -> dict[str, int]:
        *_, offset = (self.path / "offsets" / str(batch)).read_text().splitlines()
        found: dict[str, int] = json.loads(offset)
        return found
