"""Publishing frames: events or quads of a frame, sent to a broker by the tasks of a job, with a report of failures."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, Literal
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, StringType, StructType, TimestampNTZType, TimestampType

from triplewire.model import Event, EventHeaders, StreamEvent
from triplewire.model.clock import Backoff
from triplewire.model.errors import BadRequest, DuplicateId, InputError, Unavailable
from triplewire.spark.dataframes.format import EVENTS, TRIPLE
from triplewire.storage.registry.streams import check_stream_name

if TYPE_CHECKING:
    from triplewire.client import AsyncClient

SPARK_BODY_EVENTS: Final = 1_000
"""Events that a task publishes with one request. A refused one is found by bisection, in ten steps."""

SPARK_BODY_BYTES: Final = 1024 * 1024
"""Bytes of text of the events of one such request; its last event may exceed them."""

SPARK_REQUESTS: Final = 8
"""Such requests of one task that are under way at a time; they share the broker's group commits."""

SPARK_ATTEMPTS: Final = 5
"""Times that such a request is sent to a broker that is busy or does not answer, within some three seconds."""

SPARK_FAILURES: Final = 20
"""Refused events that a report names, with the reason; the others it counts."""


_NO_IRI = re.compile(r'[\s<>"]')
_TIMES = range(-62_135_596_800_000_000, 253_402_300_800_000_000)
_BACKOFF = Backoff(first=0.1, jitter=0)


@dataclass(frozen=True)
class PublishFailure:
    """An event that was refused, and why."""

    event: str
    reason: str


@dataclass(frozen=True)
class PublishReport:
    """The outcome of publishing some events. `examples` are the first failures."""

    events: int = 0
    quads: int = 0
    bytes: int = 0
    failures: int = 0
    examples: tuple[PublishFailure, ...] = ()

    def __add__(self, other: PublishReport) -> PublishReport:
        return PublishReport(
            self.events + other.events,
            self.quads + other.quads,
            self.bytes + other.bytes,
            self.failures + other.failures,
            (self.examples + other.examples)[:SPARK_FAILURES],
        )

    @classmethod
    def of_failure(cls, event: object, reason: object) -> PublishReport:
        return cls(failures=1, examples=(PublishFailure(str(event), str(reason)),))


@dataclass(frozen=True)
class TaskPublisher:
    """Publishes to one broker: to one stream, or to the stream that each event names. Equal requests with the same
    `key` are published once."""

    url: str
    stream: str | None
    key: str
    token: str | None = field(default=None, repr=False)
    """The token for the broker; by default that of the executor's environment."""
    attempts: int = SPARK_ATTEMPTS

    def publish(self, batches: Iterable[pa.RecordBatch]) -> PublishReport:
        """Returns when all are durable or refused. Raises Unavailable if the broker does not answer; then some may be
        stored already."""
        return asyncio.run(self._publish(batches))

    async def _publish(self, batches: Iterable[pa.RecordBatch]) -> PublishReport:
        # A program that only reads files does without the client and the libraries that it loads.
        from triplewire.client import AsyncClient

        report = PublishReport()
        async with AsyncClient(self.url, token=self.token) as client:
            sender = RequestSender(client, self.key, asyncio.Semaphore(SPARK_REQUESTS), self.attempts)
            for batch in batches:
                events, refused = _read_events(batch, self.stream)
                sent = await asyncio.gather(*(sender.send(each) for each in split_requests(events)))
                report = sum((*refused, *sent), report)
        return report


@dataclass(frozen=True)
class RequestSender:
    """The connection of a task while it publishes."""

    client: AsyncClient
    key: str
    limit: asyncio.Semaphore
    attempts: int

    async def send(self, events: Sequence[StreamEvent]) -> PublishReport:
        """Send one request; if it is refused, its halves, until the event at fault is found."""
        try:
            async with self.limit:
                await self._try(events)
            return PublishReport(len(events), sum(map(_count_quads, events)), sum(map(_text_bytes, events)))
        except (InputError, DuplicateId) as error:
            if len(events) == 1:
                return PublishReport.of_failure(events[0].event.id, error)
        half = len(events) // 2
        return await self.send(events[:half]) + await self.send(events[half:])

    async def _try(self, events: Sequence[StreamEvent]) -> None:
        key = f"{self.key}/{sha256(repr(events).encode()).hexdigest()}"
        for attempt in range(1, self.attempts):
            try:
                await self.client.publish_addressed(events, key)
                return
            except Unavailable:
                await asyncio.sleep(_BACKOFF.seconds(attempt))
        await self.client.publish_addressed(events, key)


def split_requests(
    events: Iterable[StreamEvent], most_events: int = SPARK_BODY_EVENTS, most_bytes: int = SPARK_BODY_BYTES
) -> Iterator[list[StreamEvent]]:
    """Yield events that can share a request: not too many, and no id twice, which would be one event there."""
    body: list[StreamEvent] = []
    ids: set[str] = set()
    size = 0
    for each in events:
        if len(body) == most_events or size > most_bytes or each.event.id in ids:
            yield body
            body, ids, size = [], set(), 0
        body.append(each)
        ids.add(each.event.id)
        size += _text_bytes(each)
    if body:
        yield body


def _count_quads(each: StreamEvent) -> int:
    return each.event.text.count("\n") + 1


def _text_bytes(each: StreamEvent) -> int:
    return len(each.event.text.encode())


def _read_events(batch: pa.RecordBatch, stream: str | None) -> tuple[list[StreamEvent], list[PublishReport]]:
    """Return the events of a batch, and those that cannot be sent."""
    found: list[StreamEvent] = []
    wrong: list[PublishReport] = []
    for row in _read_rows(batch):
        try:
            found.append(_row_to_event(row, stream))
        except (ValueError, InputError) as error:
            wrong.append(PublishReport.of_failure(row.get("event"), error))
    return found, wrong


def _read_rows(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """Return rows with times in microseconds: Spark has times that Python has not."""
    columns = {name: batch.column(name) for name in batch.schema.names}
    if "time" in columns:
        columns["time"] = columns["time"].cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    rows: list[dict[str, Any]] = pa.table(columns).to_pylist()
    return rows


def _row_to_event(row: dict[str, Any], stream: str | None) -> StreamEvent:
    event, quads = row["event"], row["quads"]
    if not event or not quads:
        raise ValueError("an event must have an id, an absolute IRI in the column event, and at least one quad")
    if _NO_IRI.search(event):
        raise ValueError("the column event must have absolute IRIs, without brackets")
    target = stream or row.get("stream")
    if not target:
        raise ValueError("the column stream is null; an event must go to a stream")
    if (time := row.get("time")) is not None and time not in _TIMES:
        raise ValueError(f"the time is {time} µs from 1970, which is in no year of four digits")
    headers = EventHeaders(row.get("source"), row.get("application"), time, extensions=_read_extensions(row))
    return StreamEvent(target, Event(event, "\n".join(map(_quad_to_line, quads)), headers))


def _read_extensions(row: dict[str, Any]) -> dict[str, str]:
    if row.get("extensions") is None:
        return {}
    # A program that only reads files does without the codec and the libraries that it loads.
    from triplewire.rdf.headers import extensions_from_json

    return extensions_from_json("the column extensions", row["extensions"])


def _quad_to_line(quad: dict[str, str | None] | None) -> str:
    terms = [(quad or {}).get(name) for name in ("subject", "predicate", "object")]
    if any(term is None or "\n" in term or "\t" in term for term in terms):
        raise ValueError(f"a quad must have three terms as N-Triples text, each on one line, not {quad}")
    return "\t".join(filter(None, terms))


_LONGEST_KEY = 512
"""Characters: half of the limit of a header, because a digest is appended."""

_QUAD = ("graph", "subject", "predicate", "object")
_OPTIONAL = ("stream", "source", "application", "time", "extensions")
_HELP = (
    "events have the columns event and quads, as spark.read.format('triplewire') gives them; quads have "
    f"{', '.join(_QUAD)}; both may have {', '.join(_OPTIONAL)}"
)
_REPORT_SCHEMA = (
    "events long, quads long, bytes long, failures long, examples array<struct<event: string, reason: string>>"
)
_FAILURES = pa.list_(pa.struct([("event", pa.string()), ("reason", pa.string())]))
_REPORT_ARROW = pa.schema(
    [*((name, pa.int64()) for name in ("events", "quads", "bytes", "failures")), ("examples", _FAILURES)]
)


def write_events(
    frame: DataFrame,
    url: str,
    stream: str | None = None,
    *,
    key: str | None = None,
    token: str | None = None,
    on_failure: Literal["raise", "report"] = "raise",
) -> PublishReport:
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
    made = to_events(frame, stream)
    rows = (
        made.mapInArrow(_publish_task(TaskPublisher(url, stream, check_key(key), token)), _REPORT_SCHEMA)
        .toArrow()
        .to_pylist()
    )
    report = sum((_row_to_report(row) for row in rows), PublishReport())
    if report.failures and on_failure == "raise":
        raise refusal_error(report)
    return report


def check_key(key: str | None) -> str:
    """Return the key, or a new one. Raises BadRequest for characters that no header can hold."""
    if key is None:
        return uuid4().hex
    if not key or not key.isprintable() or set(key) & set("\"'\\") or len(key) > _LONGEST_KEY:
        raise BadRequest(f"key must be printable, without quotes and backslashes, at most {_LONGEST_KEY} characters")
    return key


def refusal_error(report: PublishReport) -> BadRequest:
    """Return the error message for events that were refused."""
    first = report.examples[0]
    return BadRequest(
        f"{report.failures} of {report.events + report.failures} events were refused, the others are published; "
        f"the first is {first.event}: {first.reason}"
    )


def to_events(frame: DataFrame, stream: str | None = None) -> DataFrame:
    """Return the frame as events: `event`, `quads`, and of the other columns those that are published."""
    if "quads" not in frame.columns and set(_QUAD) <= set(frame.columns):
        frame = _group_quads(frame)
    check_events(frame.schema, stream)
    others = [name for name in _OPTIONAL if name in frame.columns]
    return frame.select("event", "quads", *(_as_instant(frame, name) for name in others))


def check_events(schema: StructType, stream: str | None) -> None:
    """Raises BadRequest, which names the columns that are missing or of another type."""
    if missing := [name for name in ("event", "quads") if name not in schema.names]:
        raise BadRequest(f"there is no column {' and '.join(missing)} among {', '.join(schema.names)}: {_HELP}")
    for column in schema:
        if column.name in EVENTS.names and not _type_fits(column.dataType, EVENTS[column.name].dataType):
            wanted = EVENTS[column.name].dataType.simpleString()
            raise BadRequest(f"the column {column.name} is {column.dataType.simpleString()}; it must be {wanted}")
    if stream is not None:
        check_stream_name(stream)
    elif "stream" not in schema.names:
        raise BadRequest("say to which stream: give stream=, or a column stream")


def _type_fits(given: DataType, wanted: DataType) -> bool:
    if isinstance(wanted, ArrayType):
        inner = given.elementType if isinstance(given, ArrayType) else None
        return isinstance(inner, StructType) and all(
            name in inner.names and isinstance(inner[name].dataType, StringType) for name in TRIPLE.names
        )
    if isinstance(wanted, StringType):
        return isinstance(given, StringType)
    return not isinstance(wanted, TimestampType) or isinstance(given, TimestampType | TimestampNTZType)


def _as_instant(frame: DataFrame, name: str) -> Column:
    """Read times without a zone in that of the session, as everywhere in Spark."""
    return frame[name].cast("timestamp") if name == "time" else frame[name]


def _group_quads(frame: DataFrame) -> DataFrame:
    """Group quads by graph, in the order of `quad` if there is such a column."""
    order = frame["quad"] if "quad" in frame.columns else F.lit(0)
    quad = F.struct(order.alias("quad"), *TRIPLE.names)
    heads = [F.first(name, ignorenulls=True).alias(name) for name in _OPTIONAL if name in frame.columns]
    found = frame.groupBy("graph").agg(F.array_sort(F.collect_list(quad)).alias("quads"), *heads)
    event = F.regexp_replace("graph", "^<(.*)>$", "$1").alias("event")
    return found.select(event, "quads", *(each for each in _OPTIONAL if each in found.columns))


def _publish_task(publisher: TaskPublisher) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        report = asdict(publisher.publish(batches))
        yield pa.RecordBatch.from_pylist([report], _REPORT_ARROW)

    return run


def _row_to_report(row: dict[str, object]) -> PublishReport:
    examples = row.pop("examples")
    assert isinstance(examples, list)
    return PublishReport(**row, examples=tuple(PublishFailure(**each) for each in examples))  # type: ignore[arg-type]
