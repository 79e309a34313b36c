"""The source: the log as a stream of Spark's, read through the log port, so that every twin is read the same way."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows
from pyspark.sql.types import StructType

from triplewire.config.limits import BATCH_EVENTS, BATCH_TEXT_BYTES, BLOCK_BYTES, BLOCK_EVENTS
from triplewire.model import MATCHED_COLUMNS
from triplewire.model.clock import Clock, SystemClock
from triplewire.pipeline.blocks import BLOCKS, packed
from triplewire.pipeline.workers import lighten
from triplewire.storage.log.ports import MeasuredLog

NAME = "triplewire-log"

SMALLEST_PART = 6_000
"""Positions below which a batch is not cut into parts: a task more costs more than it gains."""


@dataclass
class Part(InputPartition):
    """The positions p with `after < p <= upto`."""

    after: int
    upto: int


@dataclass(frozen=True)
class Batching:
    """How much a batch takes, and how it is cut. Each field is an option of the source."""

    after: int
    """A query without a checkpoint starts behind this position."""
    parts: int
    """Tasks of a batch, at most."""
    events: int = BATCH_EVENTS
    size: int = BATCH_TEXT_BYTES
    """Bytes of text; one event more may begin within them."""
    pace: float = 0.0
    """Seconds from one batch to the next, as long as little waits: less than two parts are worth."""

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Batching:
        kinds = {"after": int, "parts": int, "events": int, "size": int, "pace": float}
        return cls(**{name: kind(options[name]) for name, kind in kinds.items()})


def log_source(open_log: Callable[[], MeasuredLog]) -> type[DataSource]:
    """A data source named `triplewire-log` whose rows are `BLOCKS`. Its options are the fields of `Batching`."""

    class LogSource(DataSource):
        @classmethod
        def name(cls) -> str:
            return NAME

        def schema(self) -> StructType:
            return from_arrow_schema(BLOCKS)

        def streamReader(self, schema: StructType) -> DataSourceStreamReader:
            lighten()
            return LogReader(open_log, Batching.of(self.options), SystemClock())

    return LogSource


class LogReader(DataSourceStreamReader):
    """Offsets are positions. What a batch reads is fixed by its two offsets, so a replayed batch reads the same."""

    def __init__(self, open_log: Callable[[], MeasuredLog], batching: Batching, clock: Clock) -> None:
        self._open_log = open_log
        self._batching = batching
        self._clock = clock
        self._last = -math.inf
        """When a batch was begun, in ticks."""
        self._log: MeasuredLog | None = None

    def initialOffset(self) -> dict[str, int]:
        return {"position": self._batching.after}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self._batching.events)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        self._log = self._log or self._open_log()
        after = start["position"]
        upto = min(self._log.head(), after + self._batching.events)
        if upto <= after or self._is_early(upto - after):
            return {"position": after}
        self._last = self._clock.ticks()
        return {"position": self._log.reach(after, upto, self._batching.size)}

    def _is_early(self, waiting: int) -> bool:
        """Should more come together first?"""
        return waiting < 2 * SMALLEST_PART and self._clock.ticks() - self._last < self._batching.pace

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        return cut(start["position"], end["position"], self._batching.parts)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        lighten()
        assert isinstance(partition, Part)
        log, after = self._open_log(), partition.after
        while after < partition.upto:
            upto = log.reach(after, partition.upto, BLOCK_BYTES)
            entries = log.read(after, upto, BLOCK_EVENTS)
            yield from packed(entries.select(MATCHED_COLUMNS))
            after = entries["position"][-1].as_py() if entries.num_rows == BLOCK_EVENTS else upto


def cut(after: int, upto: int, parts: int) -> list[InputPartition]:
    """The range of positions as at most `parts` ranges of nearly equal length, none of them needlessly small."""
    count = max(1, min(parts, (upto - after) // SMALLEST_PART))
    if upto <= after:
        return []
    marks = [after + (upto - after) * number // count for number in range(count + 1)]
    return [Part(first, last) for first, last in pairwise(marks)]
