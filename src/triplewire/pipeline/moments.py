"""Moments: the log as a stream whose offsets have a time beside the position.

The time of a batch is written down with it before it runs, so that a batch that is done again is done at the same
time;
and a batch may come though nothing was published, because a window is to close.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.datasource import ReadLimit
from pyspark.sql.types import StructType

from triplewire.model.clock import Clock, SystemClock
from triplewire.pipeline.blocks import BLOCKS
from triplewire.pipeline.source import Batching, LogReader
from triplewire.pipeline.workers import lighten
from triplewire.storage.log.ports import MeasuredLog

NAME = "triplewire-moments"
NEVER = 2**62


def moments_source(open_log: Callable[[], MeasuredLog], due: Path) -> type[DataSource]:
    """A data source whose rows are `BLOCKS`. `due` is a file with the time, in microseconds, from which on a batch is
    to come even if nothing was published."""

    class Moments(DataSource):
        @classmethod
        def name(cls) -> str:
            return NAME

        def schema(self) -> StructType:
            return from_arrow_schema(BLOCKS)

        def streamReader(self, schema: StructType) -> DataSourceStreamReader:
            lighten()
            return MomentReader(open_log, Batching.of(self.options), SystemClock(), due)

    return Moments


class MomentReader(LogReader):
    """Offsets are positions and times; neither goes back. What comes after a position was not received before its time,
    but for what is just being made durable: of a batch that does not take all that is there, it is when the next event
    was received, however late the batch is. By it windows close."""

    def __init__(self, open_log: Callable[[], MeasuredLog], batching: Batching, clock: Clock, due: Path) -> None:
        super().__init__(open_log, batching, clock)
        self._due = due

    def initialOffset(self) -> dict[str, int]:
        return {**super().initialOffset(), "time": 0}

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        # The clock is read first: what was taken in before is in the log when that is looked at, or on its way there.
        now = self._clock.now()
        found = super().latestOffset(start, limit)
        now = max(self._settled(found["position"], now), start["time"])
        if found["position"] == start["position"] and now < due(self._due):
            return start
        return {**found, "time": now}

    def _settled(self, upto: int, now: int) -> int:
        assert self._log is not None
        following = self._log.read(upto, self._log.head(), 1)
        return min(now, int(following["received"][0].as_py())) if following.num_rows else now


def due(path: Path) -> int:
    """When a batch is to come, as the last one left word; never, where nobody did."""
    try:
        found: Any = json.loads(path.read_text())
        return int(found)
    except (FileNotFoundError, ValueError):
        return NEVER
