"""The source: the log as a stream of Spark's, read through the log port, so that every twin is read the same way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows
from pyspark.sql.types import StructType

from triplewire.config.limits import BATCH_EVENTS, BATCH_TEXT_BYTES, BLOCK_BYTES, BLOCK_EVENTS
from triplewire.log.ports import Measured
from triplewire.model import MATTER
from triplewire.pipeline.blocks import BLOCKS, packed
from triplewire.pipeline.workers import lighten

NAME = "triplewire-log"

SMALLEST_PART = 6_000
"""Positions below which a batch is not cut into parts: a task more costs more than it gains."""


@dataclass
class Part(InputPartition):
    """The positions p with `after < p <= upto`."""

    after: int
    upto: int


def log_source(open_log: Callable[[], Measured]) -> type[DataSource]:
    """A data source named `triplewire-log` whose rows are `BLOCKS`, with two options: a query without a checkpoint
    starts behind position `after`; a batch is cut into at most `parts` tasks."""

    class LogSource(DataSource):
        @classmethod
        def name(cls) -> str:
            return NAME

        def schema(self) -> StructType:
            return from_arrow_schema(BLOCKS)

        def streamReader(self, schema: StructType) -> DataSourceStreamReader:
            lighten()
            return LogReader(open_log, int(self.options["parts"]), int(self.options["after"]))

    return LogSource


class LogReader(DataSourceStreamReader):
    """Offsets are positions. What a batch reads is fixed by its two offsets, so a replayed batch reads the same."""

    def __init__(self, open_log: Callable[[], Measured], parts: int, after: int) -> None:
        self._open_log = open_log
        self._parts = parts
        self._after = after
        self._log: Measured | None = None

    def initialOffset(self) -> dict[str, int]:
        return {"position": self._after}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(BATCH_EVENTS)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        self._log = self._log or self._open_log()
        after = start["position"]
        upto = min(self._log.head(), after + BATCH_EVENTS)
        return {"position": self._log.reach(after, upto, BATCH_TEXT_BYTES) if upto > after else after}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        return cut(start["position"], end["position"], self._parts)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        lighten()
        assert isinstance(partition, Part)
        log, after = self._open_log(), partition.after
        while after < partition.upto:
            upto = log.reach(after, partition.upto, BLOCK_BYTES)
            entries = log.read(after, upto, BLOCK_EVENTS)
            yield from packed(entries.select(MATTER))
            after = entries["position"][-1].as_py() if entries.num_rows == BLOCK_EVENTS else upto


def cut(after: int, upto: int, parts: int) -> list[InputPartition]:
    """The range of positions as at most `parts` ranges of nearly equal length, none of them needlessly small."""
    count = max(1, min(parts, (upto - after) // SMALLEST_PART))
    if upto <= after:
        return []
    marks = [after + (upto - after) * number // count for number in range(count + 1)]
    return [Part(first, last) for first, last in pairwise(marks)]
