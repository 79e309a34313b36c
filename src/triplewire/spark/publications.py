"""Publications: frames of events or quads on their way to a broker."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Literal, TypeAlias
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, StringType, StructType, TimestampNTZType, TimestampType

from triplewire.model.errors import BadRequest
from triplewire.spark.publishers import Failure, Publisher, Tally
from triplewire.spark.schemas import EVENTS, TRIPLE
from triplewire.storage.registry.streams import check_stream_name

Report: TypeAlias = Tally

_LONGEST_KEY = 512
"""Half of what a header may have: a digest comes behind it."""

_QUAD = ("graph", "subject", "predicate", "object")
_OPTIONAL = ("stream", "source", "application", "time", "extensions")
_HELP = (
    "events have the columns event and quads, as spark.read.format('triplewire') gives them; quads have "
    f"{', '.join(_QUAD)}; both may have {', '.join(_OPTIONAL)}"
)
_TALLY = "events long, quads long, bytes long, failures long, examples array<struct<event: string, reason: string>>"


def write_events(
    frame: DataFrame,
    url: str,
    stream: str | None = None,
    *,
    key: str | None = None,
    token: str | None = None,
    on_failure: Literal["raise", "report"] = "raise",
) -> Report:
    """Publish a frame of events, or of quads, which are put together by their graphs, from the executors.

    Without `stream` each event goes to that of its column `stream`. Columns that are not known are left alone.
    The order of events is not kept. A task that runs again publishes nothing twice if it is given the same rows in the
    same order; neither does a second call with the same `key`. Where the order differs, each event is published at
    least once.

    Raises BadRequest for columns that do not fit, and for events that were refused, unless these are to be in the
    report alone; the other events are published in either case.
    """
    if on_failure not in ("raise", "report"):
        raise BadRequest(f"on_failure must be raise or report, not {on_failure!r}")
    made = events_from(frame, stream)
    rows = made.mapInArrow(_task(Publisher(url, stream, checked(key), token)), _TALLY).toArrow().to_pylist()
    report = sum((_tally(row) for row in rows), Tally())
    if report.failures and on_failure == "raise":
        raise refused(report)
    return report


def checked(key: str | None) -> str:
    """The key, or a new one. Raises BadRequest for what no header can hold."""
    if key is None:
        return uuid4().hex
    if not key or not key.isprintable() or set(key) & set("\"'\\") or len(key) > _LONGEST_KEY:
        raise BadRequest(f"key must be printable, without quotes and backslashes, at most {_LONGEST_KEY} characters")
    return key


def refused(report: Report) -> BadRequest:
    """What to say of events that were refused."""
    first = report.examples[0]
    return BadRequest(
        f"{report.failures} of {report.events + report.failures} events were refused, the others are published; "
        f"the first is {first.event}: {first.reason}"
    )


def events_from(frame: DataFrame, stream: str | None = None) -> DataFrame:
    """The frame as events: `event`, `quads`, and of the other columns those that are published."""
    if "quads" not in frame.columns and set(_QUAD) <= set(frame.columns):
        frame = _gathered(frame)
    check_events(frame.schema, stream)
    kept = [name for name in _OPTIONAL if name in frame.columns]
    return frame.select("event", "quads", *(_instant(frame, name) for name in kept))


def check_events(schema: StructType, stream: str | None) -> None:
    """Raises BadRequest, which names the columns that are missing or of another type."""
    if missing := [name for name in ("event", "quads") if name not in schema.names]:
        raise BadRequest(f"there is no column {' and '.join(missing)} among {', '.join(schema.names)}: {_HELP}")
    for field in schema:
        if field.name in EVENTS.names and not _fits(field.dataType, EVENTS[field.name].dataType):
            wanted = EVENTS[field.name].dataType.simpleString()
            raise BadRequest(f"the column {field.name} is {field.dataType.simpleString()}; it must be {wanted}")
    if stream is not None:
        check_stream_name(stream)
    elif "stream" not in schema.names:
        raise BadRequest("say to which stream: give stream=, or a column stream")


def _fits(given: DataType, wanted: DataType) -> bool:
    if isinstance(wanted, ArrayType):
        inner = given.elementType if isinstance(given, ArrayType) else None
        return isinstance(inner, StructType) and all(
            name in inner.names and isinstance(inner[name].dataType, StringType) for name in TRIPLE.names
        )
    if isinstance(wanted, StringType):
        return isinstance(given, StringType)
    return not isinstance(wanted, TimestampType) or isinstance(given, TimestampType | TimestampNTZType)


def _instant(frame: DataFrame, name: str) -> Column:
    """Times that have no zone are those of the session's, as everywhere in Spark."""
    return frame[name].cast("timestamp") if name == "time" else frame[name]


def _gathered(frame: DataFrame) -> DataFrame:
    """Quads put together by graph, in the order of `quad` if there is such a column."""
    place = frame["quad"] if "quad" in frame.columns else F.lit(0)
    quad = F.struct(place.alias("quad"), *TRIPLE.names)
    heads = [F.first(name, ignorenulls=True).alias(name) for name in _OPTIONAL if name in frame.columns]
    found = frame.groupBy("graph").agg(F.array_sort(F.collect_list(quad)).alias("quads"), *heads)
    event = F.regexp_replace("graph", "^<(.*)>$", "$1").alias("event")
    return found.select(event, "quads", *(each for each in _OPTIONAL if each in found.columns))


def _task(publisher: Publisher) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        told = publisher.publish(batches)
        examples = [{"event": each.event, "reason": each.reason} for each in told.examples]
        kind = pa.list_(pa.struct([("event", pa.string()), ("reason", pa.string())]))
        columns = {name: pa.array([getattr(told, name)], pa.int64()) for name in _COUNTS}
        yield pa.record_batch({**columns, "examples": pa.array([examples], kind)})

    return run


_COUNTS = ("events", "quads", "bytes", "failures")


def _tally(row: dict[str, object]) -> Tally:
    examples = row.pop("examples")
    assert isinstance(examples, list)
    return Tally(**row, examples=tuple(Failure(**each) for each in examples))  # type: ignore[arg-type]
