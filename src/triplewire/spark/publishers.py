"""Publishers: what a task does with its events. They go to a broker many at a time, and what is refused is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from triplewire.config import limits
from triplewire.errors import InputError, Unavailable

if TYPE_CHECKING:
    from triplewire.client import AsyncClient

HEADERS = ("source", "application", "time")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PAUSE = 0.1


@dataclass(frozen=True)
class Failure:
    """An event that was refused, and why."""

    event: str
    reason: str


@dataclass(frozen=True)
class Tally:
    """What became of some events. `examples` are the first failures."""

    events: int = 0
    quads: int = 0
    bytes: int = 0
    failures: int = 0
    examples: tuple[Failure, ...] = ()

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.events + other.events,
            self.quads + other.quads,
            self.bytes + other.bytes,
            self.failures + other.failures,
            (self.examples + other.examples)[: limits.SPARK_FAILURES],
        )

    @classmethod
    def of_failure(cls, event: object, reason: object) -> Tally:
        return cls(failures=1, examples=(Failure(str(event), str(reason)),))


@dataclass(frozen=True)
class Item:
    """One event on its way: its id, its N-Quads, how many, and to which stream it goes with which headers."""

    event: str
    body: bytes
    quads: int
    stream: str
    headers: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Publisher:
    """Publishes to one broker; to one stream, or to that which each event names."""

    url: str
    stream: str | None = None

    def publish(self, batches: Iterable[pa.RecordBatch]) -> Tally:
        """Returns when all are durable or refused. Raises Unavailable if the broker does not answer; then some may be
        stored already, and are stored again by who tries again."""
        return asyncio.run(self._publish(batches))

    async def _publish(self, batches: Iterable[pa.RecordBatch]) -> Tally:
        told = Tally()
        async with _client(self.url) as client:
            for batch in batches:
                items, wrong = _items(batch, self.stream)
                gate = asyncio.Semaphore(limits.SPARK_REQUESTS)
                sent = await asyncio.gather(*(_send(client, gate, each) for each in _bodies(items)))
                told = sum((*wrong, *sent), told)
        return told


@asynccontextmanager
async def _client(url: str) -> AsyncIterator[AsyncClient]:
    # Whoever only reads files does without the client and what it loads.
    from triplewire.client import AsyncClient

    async with AsyncClient(url) as client:
        yield client


def _items(batch: pa.RecordBatch, stream: str | None) -> tuple[list[Item], list[Tally]]:
    """The events of a batch, and those that cannot be sent."""
    items: list[Item] = []
    wrong: list[Tally] = []
    for row in _rows(batch):
        try:
            items.append(_item(row, stream))
        except ValueError as error:
            wrong.append(Tally.of_failure(row.get("event"), error))
    return items, wrong


def _rows(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """Times as microseconds: not every time that Spark has is one of Python's."""
    columns = {name: batch.column(name) for name in batch.schema.names}
    if "time" in columns:
        columns["time"] = columns["time"].cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    rows: list[dict[str, Any]] = pa.table(columns).to_pylist()
    return rows


def _item(row: dict[str, Any], stream: str | None) -> Item:
    event, quads = row["event"], row["quads"]
    if not event or not quads:
        raise ValueError("an event must have an id, an absolute IRI in the column event, and at least one quad")
    target = stream or row.get("stream")
    if not target:
        raise ValueError("the column stream is null; an event must go to a stream")
    lines = [_line(quad, event) for quad in quads]
    headers = [(name, row.get(name)) for name in HEADERS]
    given = tuple((name, _moment(value) if name == "time" else value) for name, value in headers if value is not None)
    return Item(event, "".join(lines).encode(), len(lines), target, given)


def _line(quad: dict[str, str | None], event: str) -> str:
    terms = [quad[name] for name in ("subject", "predicate", "object")]
    if any(term is None or "\n" in term for term in terms):
        raise ValueError(f"a quad must have three terms as N-Triples text, each on one line, not {quad}")
    return f"{' '.join(filter(None, terms))} <{event}> .\n"


def _moment(microseconds: int) -> str:
    try:
        return (_EPOCH + timedelta(microseconds=microseconds)).isoformat()
    except OverflowError:
        raise ValueError(f"the time is {microseconds} µs from 1970, which no header can say") from None


def _bodies(items: Iterable[Item]) -> Iterator[list[Item]]:
    """Events that can share a request: of one stream, with the same headers, no id twice, and not too many."""
    open_: dict[tuple[object, ...], list[Item]] = {}
    for item in items:
        key = (item.stream, item.headers)
        body = open_.setdefault(key, [])
        full = len(body) >= limits.SPARK_BODY_EVENTS or sum(len(each.body) for each in body) > limits.SPARK_BODY_BYTES
        if full or any(each.event == item.event for each in body):
            yield body
            body = open_[key] = []
        body.append(item)
    yield from open_.values()


async def _send(client: AsyncClient, gate: asyncio.Semaphore, items: list[Item]) -> Tally:
    """One request; where it is refused, halves of it, until the event is found that is to blame."""
    try:
        async with gate:
            size = await _try(client, items)
        return Tally(len(items), sum(each.quads for each in items), size)
    except InputError as error:
        if len(items) == 1:
            return Tally.of_failure(items[0].event, error)
    half = len(items) // 2
    return await _send(client, gate, items[:half]) + await _send(client, gate, items[half:])


async def _try(client: AsyncClient, items: list[Item]) -> int:
    body = b"".join(each.body for each in items)
    for attempt in range(limits.SPARK_ATTEMPTS):
        try:
            await client.publish(items[0].stream, body, **dict(items[0].headers))
            return len(body)
        except Unavailable:
            if attempt + 1 == limits.SPARK_ATTEMPTS:
                raise
            await asyncio.sleep(_PAUSE * 2**attempt)
    return 0
