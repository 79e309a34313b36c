"""Writers: the format `triplewire` as something to write to, from batches and from streams."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from triplewire.model.errors import BadRequest
from triplewire.spark.publications import check_events, checked, refused
from triplewire.spark.publishers import Publisher, Tally

_KNOWN = ("url", "token", "stream")
_SPARKS_OWN = ("checkpointlocation", "queryname")
"""What is said to Spark about a stream comes here, too."""
_BATCH = ("sql.streaming.queryId", "streaming.sql.batchId")
"""What Spark tells each task of a stream."""


@dataclass
class Told(WriterCommitMessage):
    """What one task says to the driver."""

    tally: Tally


class Writer(DataSourceArrowWriter):
    """Publishes what it is given. What a task has published stays, whatever becomes of the others."""

    def __init__(self, publisher: Publisher) -> None:
        self._publisher = publisher

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Told:
        return Told(self._publisher.publish(iterator))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        _check(messages)


class StreamWriter(DataSourceStreamArrowWriter):
    """The same for each batch of a stream, under a key that a batch that is replayed has again."""

    def __init__(self, publisher: Publisher) -> None:
        self._publisher = publisher

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Told:
        context = TaskContext.get()
        names = [context.getLocalProperty(each) for each in _BATCH] if context else []
        key = "/".join(filter(None, names)) if all(names) else ""
        return Told(replace(self._publisher, key=key or self._publisher.key).publish(iterator))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        _check(messages)


def publisher_of(options: Mapping[str, str], schema: StructType, overwrite: bool) -> Publisher:
    """Raises BadRequest for options or columns that do not fit."""
    said = {name.lower(): value for name, value in options.items()}
    if unknown := sorted(set(said) - {*_KNOWN, *_SPARKS_OWN}):
        raise BadRequest(f"the option {', '.join(unknown)} is not known; there are {', '.join(_KNOWN)}")
    if "url" not in said:
        raise BadRequest("the option url must name a running broker, such as http://localhost:8080")
    if overwrite:
        raise BadRequest("what is published stays: the mode must be append, not overwrite")
    check_events(schema, said.get("stream"))
    return Publisher(said["url"], said.get("stream"), checked(None), said.get("token"))


def _check(messages: list[WriterCommitMessage | None]) -> None:
    """Raises BadRequest if events were refused."""
    report = sum((each.tally for each in messages if isinstance(each, Told)), Tally())
    if report.failures:
        raise refused(report)
