"""Publishers: what a task does with its events. They go to a broker many at a time, and what is refused is told."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from triplewire.config import limits
from triplewire.model import Event, EventHeaders, StreamEvent
from triplewire.model.errors import DuplicateId, InputError, Unavailable

if TYPE_CHECKING:
    from triplewire.client import AsyncClient


_NO_IRI = re.compile(r'[\s<>"]')
_TIMES = range(-62_135_596_800_000_000, 253_402_300_800_000_000)
_PAUSE = 0.1
"""Seconds before the second attempt; twice as long before each further one."""


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
class Publisher:
    """Publishes to one broker; to one stream, or to that which each event names. What goes under the same `key` in the
    same requests goes once."""

    url: str
    stream: str | None
    key: str
    token: str | None = field(default=None, repr=False)
    """What is shown to the broker; by default what the environment of the executor says."""

    def publish(self, batches: Iterable[pa.RecordBatch]) -> Tally:
        """Returns when all are durable or refused. Raises Unavailable if the broker does not answer; then some may be
        stored already."""
        return asyncio.run(self._publish(batches))

    async def _publish(self, batches: Iterable[pa.RecordBatch]) -> Tally:
        told = Tally()
        async with _sender(self.url, self.key, self.token) as sender:
            for batch in batches:
                events, wrong = _events(batch, self.stream)
                sent = await asyncio.gather(*(sender.send(each) for each in bodies(events)))
                told = sum((*wrong, *sent), told)
        return told


@dataclass(frozen=True)
class Sender:
    """What a task has open while it publishes."""

    client: AsyncClient
    key: str
    gate: asyncio.Semaphore

    async def send(self, events: Sequence[StreamEvent]) -> Tally:
        """One request; where it is refused, halves of it, until the event is found that is to blame."""
        try:
            async with self.gate:
                await self._try(events)
            return Tally(len(events), sum(map(_quads, events)), sum(map(_size, events)))
        except (InputError, DuplicateId) as error:
            if len(events) == 1:
                return Tally.of_failure(events[0].event.id, error)
        half = len(events) // 2
        return await self.send(events[:half]) + await self.send(events[half:])

    async def _try(self, events: Sequence[StreamEvent]) -> None:
        key = f"{self.key}/{sha256(repr(events).encode()).hexdigest()}"
        for attempt in range(1, limits.SPARK_ATTEMPTS):
            try:
                await self.client.publish_addressed(events, key)
                return
            except Unavailable:
                await asyncio.sleep(_PAUSE * 2 ** (attempt - 1))
        await self.client.publish_addressed(events, key)


@asynccontextmanager
async def _sender(url: str, key: str, token: str | None) -> AsyncIterator[Sender]:
    # Whoever only reads files does without the client and what it loads.
    from triplewire.client import AsyncClient

    async with AsyncClient(url, token=token) as client:
        yield Sender(client, key, asyncio.Semaphore(limits.SPARK_REQUESTS))


def bodies(events: Iterable[StreamEvent]) -> Iterator[list[StreamEvent]]:
    """Events that can share a request: not too many, and no id twice, which would be one event there."""
    body: list[StreamEvent] = []
    ids: set[str] = set()
    size = 0
    for each in events:
        if len(body) == limits.SPARK_BODY_EVENTS or size > limits.SPARK_BODY_BYTES or each.event.id in ids:
            yield body
            body, ids, size = [], set(), 0
        body.append(each)
        ids.add(each.event.id)
        size += _size(each)
    if body:
        yield body


def _quads(each: StreamEvent) -> int:
    return each.event.text.count("\n") + 1


def _size(each: StreamEvent) -> int:
    return len(each.event.text.encode())


def _events(batch: pa.RecordBatch, stream: str | None) -> tuple[list[StreamEvent], list[Tally]]:
    """Those of a batch, and those that cannot be sent."""
    found: list[StreamEvent] = []
    wrong: list[Tally] = []
    for row in _rows(batch):
        try:
            found.append(_event(row, stream))
        except (ValueError, InputError) as error:
            wrong.append(Tally.of_failure(row.get("event"), error))
    return found, wrong


def _rows(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """Times as microseconds: not every time that Spark has is one of Python's."""
    columns = {name: batch.column(name) for name in batch.schema.names}
    if "time" in columns:
        columns["time"] = columns["time"].cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    rows: list[dict[str, Any]] = pa.table(columns).to_pylist()
    return rows


def _event(row: dict[str, Any], stream: str | None) -> StreamEvent:
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
    headers = EventHeaders(row.get("source"), row.get("application"), time, extensions=_extensions(row))
    return StreamEvent(target, Event(event, "\n".join(map(_line, quads)), headers))


def _extensions(row: dict[str, Any]) -> dict[str, str]:
    if row.get("extensions") is None:
        return {}
    # Whoever only reads files does without the codec and what it loads.
    from triplewire.codec.extensions import from_json

    return from_json("the column extensions", row["extensions"])


def _line(quad: dict[str, str | None] | None) -> str:
    terms = [(quad or {}).get(name) for name in ("subject", "predicate", "object")]
    if any(term is None or "\n" in term or "\t" in term for term in terms):
        raise ValueError(f"a quad must have three terms as N-Triples text, each on one line, not {quad}")
    return "\t".join(filter(None, terms))
