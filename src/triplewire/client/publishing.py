"""Streaming publish: many items over one request or one WebSocket, each acknowledged when it is durable."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Mapping
from typing import Any

import aiohttp
import orjson

from triplewire.client.problems import parse_problem
from triplewire.model import Event
from triplewire.model.errors import Unavailable
from triplewire.rdf import N_QUADS, to_nquads
from triplewire.rdf.headers import format_time

Item = Event | Mapping[str, Any] | bytes
"""An event; an object as lines of JSON tell events, or of JSON-LD; or bytes of the body, as they are."""
Items = Iterable[Item] | AsyncIterable[Item]

MEDIA_TYPE = "application/x-ndjson"
UNACKNOWLEDGED = 1_000
"""Items that are sent over one WebSocket before the first of them is acknowledged."""


def encode_line(item: Item) -> bytes:
    """An item as a line of JSON."""
    if isinstance(item, bytes):
        return item
    return orjson.dumps(_event_document(item) if isinstance(item, Event) else dict(item)) + b"\n"


def _event_document(event: Event) -> dict[str, Any]:
    headers = event.headers
    said = {
        "event": event.id,
        "time": None if headers.time is None else format_time(headers.time),
        "source": headers.source,
        "application": headers.application,
        "headers": dict(headers.extensions) or None,
        "format": N_QUADS.media_type,
        "body": to_nquads(event.id, event.text),
    }
    return {name: value for name, value in said.items() if value is not None}


async def stream_body(items: Items, *, packed: bool) -> AsyncIterator[bytes]:
    """The items as the body of a request, each on its way as soon as it is there; with gzip, if they are `packed`."""
    packer = zlib.compressobj(wbits=31) if packed else None

    def piece(data: bytes) -> bytes:
        return data if packer is None else packer.compress(data) + packer.flush(zlib.Z_SYNC_FLUSH)

    # The head of a request goes out with the first of its body: an empty line is no item.
    yield piece(b"\n")
    async for item in _each(items):
        yield piece(encode_line(item))
    if packer is not None:
        yield packer.flush()


async def _each(items: Items) -> AsyncIterator[Item]:
    if isinstance(items, AsyncIterable):
        async for item in items:
            yield item
        return
    iterator = iter(items)
    # Whoever waits for a line of a terminal must not keep acknowledgements from being heard.
    while (found := await asyncio.to_thread(next, iterator, None)) is not None:
        yield found


class StreamingPublisher:
    """One WebSocket that publishes. An edge that goes away leaves items without an acknowledgement: those who wait for
    theirs get Unavailable, and may publish again: an event with an id of its own is stored once."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._count = 0
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._space = asyncio.Semaphore(UNACKNOWLEDGED)
        self._hearing = asyncio.create_task(self._hear())

    async def send(self, item: Item) -> asyncio.Future[dict[str, Any]]:
        """Send an item; what comes back is done when it is durable, with `position`, or raises why it is refused. Waits
        where too many are not acknowledged yet."""
        await self._space.acquire()
        if self._hearing.done():
            raise _connection_lost("it was closed")
        self._count += 1
        heard: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        heard.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._waiting[self._count] = heard
        try:
            await self._socket.send_str(encode_line(item).decode())
        except (ConnectionError, aiohttp.ClientError) as error:
            self._waiting.pop(self._count, None)
            raise _connection_lost(error) from error
        return heard

    async def publish(self, item: Item) -> dict[str, Any]:
        """Send an item and wait until it is durable."""
        return await (await self.send(item))

    async def close(self) -> None:
        """Wait for what was sent, then end."""
        waiting = list(self._waiting.values())
        if waiting:
            await asyncio.wait(waiting)
        await self._socket.close()
        await self._hearing

    async def _hear(self) -> None:
        async for message in self._socket:
            told = orjson.loads(message.data)
            _settle(self._waiting.pop(told["item"]), told)
            self._space.release()
        for heard in self._waiting.values():
            if not heard.done():
                heard.set_exception(_connection_lost("this was not acknowledged"))
            self._space.release()


def _connection_lost(why: object) -> Unavailable:
    return Unavailable(f"the connection is gone: {why}; publish again")


def _settle(heard: asyncio.Future[dict[str, Any]], told: dict[str, Any]) -> None:
    if heard.done():
        return
    if "problem" in told:
        heard.set_exception(parse_problem(told["problem"]["status"], orjson.dumps(told["problem"])))
    else:
        heard.set_result(told)
