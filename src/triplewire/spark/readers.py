"""Readers: an origin as Spark's batches and streams see it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, Filter, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from triplewire.spark.options import Options
from triplewire.spark.origins import Origin, Part

Offset = dict[str, int]


class Reader(DataSourceReader):
    """One frame of what there is when it is used."""

    def __init__(self, origin: Origin, options: Options, schema: StructType) -> None:
        self._origin = origin
        self._options = options
        self._schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        after = self._options.after
        upto = min(self._options.upto, self._origin.reach(after))
        # Spark takes an empty list for one part that has no name.
        return self._origin.parts(after, upto) or [Part(after, after)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Part)
        return self._origin.read(partition, self._schema)


class FilteringReader(Reader):
    """Takes filters. Spark refuses it in a session that does not hand them down."""

    def pushFilters(self, filters: list[Filter]) -> list[Filter]:
        return self._origin.push(filters)


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Offsets are positions. What a batch reads is fixed by its two offsets, so a replayed batch reads the same."""

    def __init__(self, origin: Origin, options: Options, schema: StructType) -> None:
        self._origin = origin
        self._options = options
        self._schema = schema
        self._last = options.upto

    def initialOffset(self) -> Offset:
        return {"position": self._options.after}

    def prepareForTriggerAvailableNow(self) -> None:
        self._last = min(self._last, self._origin.reach(self._options.after))

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self._options.max_events)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        after = start["position"]
        if after >= self._last:
            return start
        most = None if isinstance(limit, ReadAllAvailable) else self._options.max_events
        return {"position": min(self._last, self._origin.reach(after, most))}

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        return self._origin.parts(start["position"], end["position"])

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Part)
        return self._origin.read(partition, self._schema)
