"""The log as jobs read it: ranges of positions, blocks of events, a streaming source with times for continuous queries,
and the checkpoints of streaming queries.

Every log is read through its port. The time of a batch is written with its offset before it runs, so that a replayed
batch runs at the same time; a batch may come though nothing was published, because a window is to close.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows
from pyspark.sql.types import StructType

from triplewire.continuous.state import read_due
from triplewire.model import MATCHED_COLUMNS
from triplewire.model.clock import Clock, SystemClock
from triplewire.spark.jobs.exchange import BLOCK_BYTES, BLOCKS, pack_table
from triplewire.spark.jobs.workers import hide_pandas
from triplewire.storage.log.ports import MeasuredLog
from triplewire.storage.registry.ontologies import BATCH_EVENTS

BATCH_TEXT_BYTES: Final = 32 * 1024 * 1024
"""Text of the events in one micro-batch; one event more may begin within it. As a table of quads it is about ten times
as much."""

BLOCK_EVENTS: Final = 5_000
"""Events that go through Spark as one row. More are no faster, and all of a block are in memory at once."""


SMALLEST_PART = 6_000
"""Positions below which a batch is not cut into parts: a task more costs more than it gains."""


@dataclass
class PositionRange(InputPartition):
    """The positions p with `after < p <= through`."""

    after: int
    through: int


@dataclass(frozen=True)
class Batching:
    """The size of a batch, and its parts. Each field is an option of the source."""

    after: int
    """A query without a checkpoint starts behind this position."""
    parts: int
    """Tasks of a batch, at most."""
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


TIMED_LOG_SOURCE = "triplewire-timed-log"


def timed_log_source(open_log: Callable[[], MeasuredLog], due: Path) -> type[DataSource]:
    """A data source whose rows are `BLOCKS`. `due` is a file with the time, in microseconds, from which on a batch is
    to come even if nothing was published."""

    class TimedLogSource(DataSource):
        @classmethod
        def name(cls) -> str:
            return TIMED_LOG_SOURCE

        def schema(self) -> StructType:
            return from_arrow_schema(BLOCKS)

        def streamReader(self, schema: StructType) -> DataSourceStreamReader:
            hide_pandas()
            return TimedLogReader(open_log, Batching.from_options(self.options), SystemClock(), due)

    return TimedLogSource


class TimedLogReader(DataSourceStreamReader):
    """Offsets are positions and times; neither goes back. Two offsets fix what a batch reads, so a replayed batch reads
    the same. Windows close by the time.

    Events after the position were not received before the time, but for those that are just being made durable: the
    time of a batch that leaves events for the next one is when the first of these was received.
    """

    def __init__(self, open_log: Callable[[], MeasuredLog], batching: Batching, clock: Clock, due: Path) -> None:
        self._open_log = open_log
        self._batching = batching
        self._clock = clock
        self._due = due
        self._log: MeasuredLog | None = None

    def initialOffset(self) -> dict[str, int]:
        return {"position": self._batching.after, "time": 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self._batching.events)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        self._log = self._log or self._open_log()
        # The clock is read first: events that were received before are in the log by then, or on their way.
        now, after = self._clock.now(), start["position"]
        through = plan_batch(self._log, after, self._batching.events, self._batching.size)
        now = max(self._limit_time(through, now), start["time"])
        if through == after and now < read_due(self._due):
            return start
        return {"position": through, "time": now}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        return [*split_positions(start["position"], end["position"], self._batching.parts)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        hide_pandas()
        assert isinstance(partition, PositionRange)
        for entries in read_blocks(self._open_log(), partition):
            yield from pack_table(entries)

    def _limit_time(self, through: int, now: int) -> int:
        assert self._log is not None
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
