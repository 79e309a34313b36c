"""The data source `triplewire`: readers and writers of Spark for batches and streams."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    Filter,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from triplewire.model.errors import BadRequest
from triplewire.spark.dataframes.format import (
    SCHEMAS,
    ReadOptions,
    ScanOrigin,
    ScanRange,
    check_columns,
    parse_options,
    select_columns,
)
from triplewire.spark.dataframes.publish import PublishReport, TaskPublisher, check_events, check_key, refusal_error

Offset = dict[str, int]


class _OriginReader:
    """Reads the parts of an origin, in an executor."""

    def __init__(self, origin: ScanOrigin, options: ReadOptions, schema: StructType) -> None:
        self._origin = origin
        self._options = options
        self._schema = schema
        self._last = options.through

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, ScanRange)
        return self._origin.read(partition, self._schema)


class BatchReader(_OriginReader, DataSourceReader):
    """One frame of all rows that there are when it is used."""

    def partitions(self) -> Sequence[InputPartition]:
        after = self._options.after
        through = min(self._options.through, self._origin.reach(after))
        # Spark takes an empty list for one part that has no name.
        return self._origin.parts(after, through) or [ScanRange(after, after)]


class FilteringReader(BatchReader):
    """Takes filters. Spark refuses it in a session that does not hand them down."""

    def pushFilters(self, filters: list[Filter]) -> list[Filter]:
        return self._origin.push(filters)


class StreamReader(_OriginReader, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Offsets are positions. Two offsets decide what a batch reads, so a replayed batch reads the same."""

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


_WRITE_OPTIONS = ("url", "token", "stream")
_SPARK_OPTIONS = ("checkpointlocation", "queryname")
"""Spark passes the options of a stream here, too."""
_BATCH_PROPERTIES = ("sql.streaming.queryId", "streaming.sql.batchId")
"""The numbers that Spark gives to each task of a stream."""


@dataclass
class TaskCommit(WriterCommitMessage):
    """The commit message of one task."""

    tally: PublishReport


class BatchWriter(DataSourceArrowWriter):
    """Publishes rows. Events that a task has published stay, even if others fail."""

    def __init__(self, publisher: TaskPublisher) -> None:
        self._publisher = publisher

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskCommit:
        return TaskCommit(self._publisher.publish(iterator))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        _check_commits(messages)


class StreamWriter(DataSourceStreamArrowWriter):
    """The same for each batch of a stream, under a key that a batch that is replayed has again."""

    def __init__(self, publisher: TaskPublisher) -> None:
        self._publisher = publisher

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskCommit:
        context = TaskContext.get()
        names = [context.getLocalProperty(each) for each in _BATCH_PROPERTIES] if context else []
        key = "/".join(filter(None, names)) if all(names) else ""
        return TaskCommit(replace(self._publisher, key=key or self._publisher.key).publish(iterator))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        _check_commits(messages)


def build_publisher(options: Mapping[str, str], schema: StructType, overwrite: bool) -> TaskPublisher:
    """Raises BadRequest for options or columns that do not fit."""
    said = {name.lower(): value for name, value in options.items()}
    if unknown := sorted(set(said) - {*_WRITE_OPTIONS, *_SPARK_OPTIONS}):
        raise BadRequest(f"the option {', '.join(unknown)} is not known; there are {', '.join(_WRITE_OPTIONS)}")
    if "url" not in said:
        raise BadRequest("the option url must name a running broker, such as http://localhost:8080")
    if overwrite:
        raise BadRequest("what is published stays: the mode must be append, not overwrite")
    check_events(schema, said.get("stream"))
    return TaskPublisher(said["url"], said.get("stream"), check_key(None), said.get("token"))


def _check_commits(messages: list[WriterCommitMessage | None]) -> None:
    """Raises BadRequest if events were refused."""
    report = sum((each.tally for each in messages if isinstance(each, TaskCommit)), PublishReport())
    if report.failures:
        raise refusal_error(report)


FORMAT = "triplewire"
PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


class TriplewireSource(DataSource):
    """Events or quads of a lake or of a running broker, as a batch or as a stream; and a broker to publish to."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        options = self._options()
        whole = SCHEMAS[options.what]
        return select_columns(whole, options.columns) if options.columns else whole

    def reader(self, schema: StructType) -> BatchReader:
        options = self._options()
        check_columns(SCHEMAS[options.what], schema)
        made = FilteringReader if options.pushdown else BatchReader
        return made(_open_origin(options), options, schema)

    def streamReader(self, schema: StructType) -> StreamReader:
        options = self._options()
        check_columns(SCHEMAS[options.what], schema)
        return StreamReader(_open_origin(options), options, schema)

    def writer(self, schema: StructType, overwrite: bool) -> BatchWriter:
        return BatchWriter(build_publisher(dict(self.options), schema, overwrite))

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:
        return StreamWriter(build_publisher(dict(self.options), schema, overwrite))

    def _options(self) -> ReadOptions:
        return parse_options(dict(self.options))


def register(spark: SparkSession) -> None:
    """Make the format known to a session, and have the session hand filters down to it, which is not Spark's default.

    Where Triplewire is installed for the driver Spark finds the format by itself, and only the setting is needed.
    """
    spark.conf.set(PUSHDOWN, "true")
    spark.dataSource.register(TriplewireSource)


def _open_origin(options: ReadOptions) -> ScanOrigin:
    # Only a read needs DuckDB; writers do without it.
    from triplewire.spark.dataframes.origins import BrokerOrigin, TableOrigin

    return TableOrigin(options) if options.path is not None else BrokerOrigin(options)
