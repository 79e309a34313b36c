"""Streaming publish: many items over one request or one WebSocket, each acknowledged when it is durable."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Mapping
from typing import Any

import aiohttp
import orjson

from triplewire.model import Event
from triplewire.model.clock import format_timestamp
from triplewire.model.errors import Unavailable
from triplewire.model.problems import parse_problem
from triplewire.rdf import N_QUADS, to_nquads

Item = Event | Mapping[str, Any] | bytes
"""An event; an object of the JSON lines format, or of JSON-LD; or bytes of the body, sent unchanged."""
Items = Iterable[Item] | AsyncIterable[Item]

MEDIA_TYPE = "application/x-ndjson"
UNACKNOWLEDGED = 1_000
"""Items in flight over one WebSocket before the first of them is acknowledged."""


def encode_line(item: Item) -> bytes:
    if isinstance(item, bytes):
        return item
    return orjson.dumps(_event_document(item) if isinstance(item, Event) else dict(item)) + b"\n"


def _event_document(event: Event) -> dict[str, Any]:
    headers = event.headers
    document = {
        "event": event.id,
        "time": None if headers.time is None else format_timestamp(headers.time),
        "source": headers.source,
        "application": headers.application,
        "headers": dict(headers.extensions) or None,
        "format": N_QUADS.media_type,
        "body": to_nquads(event.id, event.text),
    }
    return {name: value for name, value in document.items() if value is not None}


async def stream_body(items: Items, *, compress: bool) -> AsyncIterator[bytes]:
    """Yield the items as the body of a request, each as soon as it is there; with gzip if `compress` is set."""
    compressor = zlib.compressobj(wbits=31) if compress else None

    def piece(data: bytes) -> bytes:
        return data if compressor is None else compressor.compress(data) + compressor.flush(zlib.Z_SYNC_FLUSH)

    # The head of a request leaves with the first bytes of its body: an empty line is not an item.
    yield piece(b"\n")
    async for item in _each(items):
        yield piece(encode_line(item))
    if compressor is not None:
        yield compressor.flush()


async def _each(items: Items) -> AsyncIterator[Item]:
    if isinstance(items, AsyncIterable):
        async for item in items:
            yield item
        return
    iterator = iter(items)
    # An iterator may wait for a terminal, and must not block the loop, which reads acknowledgements.
    while (following := await asyncio.to_thread(next, iterator, None)) is not None:
        yield following


class StreamingPublisher:
    """A WebSocket for publishing.

    When the edge goes away, items that were not acknowledged fail with Unavailable and may be published again: an event
    with an id of its own is stored once.
    """

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._count = 0
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._slots = asyncio.Semaphore(UNACKNOWLEDGED)
        self._reading = asyncio.create_task(self._read())

    async def send(self, item: Item) -> asyncio.Future[dict[str, Any]]:
        """Send an item; return a future of its acknowledgement, with `position`, or of the error that refuses it.

        Waits while too many items are not acknowledged.
        """
        await self._slots.acquire()
        if self._reading.done():
            raise _connection_lost("it was closed")
        self._count += 1
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        future.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._waiting[self._count] = future
        try:
            await self._socket.send_str(encode_line(item).decode())
        except (ConnectionError, aiohttp.ClientError) as error:
            self._waiting.pop(self._count, None)
            raise _connection_lost(error) from error
        return future

    async def publish(self, item: Item) -> dict[str, Any]:
        """Send an item and wait until it is durable."""
        return await (await self.send(item))

    async def close(self) -> None:
        """Wait for the acknowledgements, then close the connection."""
        waiting = list(self._waiting.values())
        if waiting:
            await asyncio.wait(waiting)
        await self._socket.close()
        await self._reading

    async def _read(self) -> None:
        async for message in self._socket:
            answer = orjson.loads(message.data)
            _settle(self._waiting.pop(answer["item"]), answer)
            self._slots.release()
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(_connection_lost("this was not acknowledged"))
            self._slots.release()


def _connection_lost(why: object) -> Unavailable:
    return Unavailable(f"the connection was lost: {why}; publish again")


def _settle(future: asyncio.Future[dict[str, Any]], answer: dict[str, Any]) -> None:
    if future.done():
        return
    if "problem" in answer:
        future.set_exception(parse_problem(answer["problem"]["status"], orjson.dumps(answer["problem"])))
    else:
        future.set_result(answer)
