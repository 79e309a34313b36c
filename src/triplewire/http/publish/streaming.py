"""Streaming publish: requests and WebSockets that keep publishing, with an acknowledgement for each item as soon as
it is durable.

```
body ─▶ items ─▶ decoded ─▶ commit (in order, a bounded number in flight) ─▶ acknowledgements, in order
```
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import orjson
from aiohttp import WSCloseCode, WSMsgType, hdrs, web

from triplewire.http.auth import caller
from triplewire.http.cors import Origins
from triplewire.http.delivery.merger import COMMENT_SECONDS
from triplewire.http.openapi import routes_of, serves, stream_operations
from triplewire.http.publish.endpoint import PublishEndpoint, is_heavy
from triplewire.http.publish.items import EventIds, ItemReader, ItemResult, PublishItem
from triplewire.http.publish.requests import parse_event_headers, read_pieces
from triplewire.http.rate_limits import UNBOUNDED_BODY, pace_upload
from triplewire.model import EventHeaders
from triplewire.model.errors import InputError, TriplewireError, Unavailable
from triplewire.rdf.checks import BODY_BYTES
from triplewire.rdf.envelopes import ENVELOPES, Envelope, decode_body, find_envelope, find_streaming_envelope
from triplewire.security import Principal
from triplewire.storage.log.ports import Publication
from triplewire.storage.registry.streams import check_stream_name

PUBLISHERS: Final = 2_000
"""Streaming publishers, by request or WebSocket, of one edge process: some 100 kB each."""

PUBLISH_IN_FLIGHT: Final = 8
"""Pieces of one streaming publisher, up to 256 KiB each, that wait for the disk. At the limit its connection is not
read."""


MEDIA_TYPE = "application/x-ndjson"

SendAcknowledgements = Callable[[Sequence[dict[str, Any]]], Awaitable[None]]


@dataclass
class PublishCounts:
    """Counts of the acknowledgements of one publisher."""

    items: int = 0
    events: int = 0
    repeated: int = 0
    refused: int = 0

    def add(self, results: Sequence[ItemResult]) -> None:
        self.items += len(results)
        self.events += sum(len(each.positions) for each in results)
        self.repeated += sum(each.repeated for each in results)
        self.refused += sum(not each.positions for each in results)


@dataclass
class PublishProgress:
    """Items of one publisher on their way to the disk, in order. `submit` waits while too many are in flight, so that
    the connection is not read and the publisher is slowed down."""

    publications: PublishEndpoint
    by: Principal
    send: SendAcknowledgements
    counts: PublishCounts = field(default_factory=PublishCounts)
    _in_flight: asyncio.Queue[asyncio.Task[list[ItemResult]] | None] = field(
        default_factory=lambda: asyncio.Queue(PUBLISH_IN_FLIGHT)
    )

    async def submit(self, items: Sequence[PublishItem]) -> None:
        if items:
            task = asyncio.create_task(_store(self.publications, items, self.by))
            # A publisher that has left gets no acknowledgement, but the commit is completed.
            task.add_done_callback(_retrieve_exception)
            await self._in_flight.put(task)

    async def finish(self) -> None:
        await self._in_flight.put(None)

    async def acknowledge(self) -> None:
        """Acknowledge everything that was submitted, until the end."""
        while (task := await self._in_flight.get()) is not None:
            results = await task
            self.counts.add(results)
            await self.send([each.to_json() for each in results])


class StreamingPublish:
    """Endpoints for publishers that keep a request or a WebSocket open."""

    def __init__(self, publications: PublishEndpoint, origins: Origins, most: int = PUBLISHERS) -> None:
        self._publications = publications
        self._origins = origins
        self._most = most
        self._open: set[asyncio.Event] = set()

    def routes(self) -> list[web.RouteDef]:
        return routes_of(self.publish, self.publish_by_socket)

    def close(self) -> None:
        """End every publisher: what it sent is acknowledged, and nothing more is read."""
        for closing in self._open:
            closing.set()

    @serves(stream_operations.PUBLISH)
    async def publish(self, request: web.Request) -> web.StreamResponse:
        """Acknowledge items one by one if the client requests that; otherwise publish an ordinary body."""
        if request.query.get("ack") != "each" and MEDIA_TYPE not in request.headers.get(hdrs.ACCEPT, ""):
            return await self._publications.publish(request)
        stream, headers = check_stream_name(request.match_info["stream"]), parse_event_headers(request)
        reader = ItemReader(find_streaming_envelope(request.headers.get(hdrs.CONTENT_TYPE)), stream, headers)
        pieces = read_pieces(request)
        with self._publisher() as closing:
            request[UNBOUNDED_BODY] = True
            response = web.StreamResponse(headers={hdrs.CONTENT_TYPE: MEDIA_TYPE})
            await response.prepare(request)
            # The first line sends the headers: a client may wait for them before it sends more.
            await _write_lines(response, [{"begin": {"stream": stream}}])
            progress = PublishProgress(self._publications, caller(request), partial(_write_lines, response))
            await _read_and_acknowledge(progress, self._submit_pieces(pieces, reader, progress, closing))
            await _write_lines(response, [{"end": vars(progress.counts)}])
            if closing.is_set() or reader.lost:
                response.force_close()
        return response

    @serves(stream_operations.PUBLISH_BY_SOCKET)
    async def publish_by_socket(self, request: web.Request) -> web.WebSocketResponse:
        """Each message is a body of the media type in `?type=`, by default a line of JSON."""
        self._origins.check(request)
        stream, headers = check_stream_name(request.match_info["stream"]), parse_event_headers(request)
        reader = MessageReader(request.query.get("type", MEDIA_TYPE), stream, headers)
        with self._publisher() as closing:
            socket = web.WebSocketResponse(max_msg_size=BODY_BYTES, heartbeat=COMMENT_SECONDS)
            await socket.prepare(request)
            progress = PublishProgress(self._publications, caller(request), partial(_send_each, socket))
            messages = _pace_messages(request, _messages(socket))
            await _read_and_acknowledge(progress, self._submit_messages(messages, reader, progress, closing))
            if not socket.closed:
                code = WSCloseCode.GOING_AWAY if closing.is_set() else WSCloseCode.OK
                await socket.close(code=code, message=b"the edge is closing" if closing.is_set() else b"")
        return socket

    async def _submit_pieces(
        self, pieces: AsyncIterator[bytes], reader: ItemReader, progress: PublishProgress, closing: asyncio.Event
    ) -> None:
        async with aclosing(_until(pieces, closing)) as read:  # type: ignore[type-var]
            try:
                async for piece in read:
                    await progress.submit(await self._decode(partial(_feed, reader, piece), piece, reader.wrapping))
                    if reader.lost:
                        return
            except InputError as error:
                await progress.submit([PublishItem(reader.count + 1, 0, error)])
                return
        if not closing.is_set():
            await progress.submit(await self._decode(lambda: list(reader.end()), b"", reader.wrapping))

    async def _submit_messages(
        self, messages: AsyncIterator[bytes], reader: MessageReader, progress: PublishProgress, closing: asyncio.Event
    ) -> None:
        async with aclosing(_until(messages, closing)) as read:  # type: ignore[type-var]
            async for data in read:
                await progress.submit(await self._decode(partial(reader.items, data), data, reader.wrapping))

    async def _decode(
        self, decoding: Callable[[], list[PublishItem]], data: bytes, wrapping: Envelope | None
    ) -> list[PublishItem]:
        return await self._publications.decode(decoding, len(data), heavy=is_heavy(wrapping))

    @contextmanager
    def _publisher(self) -> Iterator[asyncio.Event]:
        """Count as an open publisher while the block lasts; the event is set when the edge closes."""
        if len(self._open) >= self._most:
            message = f"there are {self._most} streaming publishers already; publish single bodies, or try later"
            raise Unavailable(message)
        closing = asyncio.Event()
        self._open.add(closing)
        try:
            yield closing
        finally:
            self._open.discard(closing)


class MessageReader:
    """Reads messages of a WebSocket, each of which is a body of one media type."""

    def __init__(self, media_type: str, stream: str, headers: EventHeaders) -> None:
        self.wrapping: Envelope | None = find_envelope(media_type, ENVELOPES)
        self._media_type = media_type
        self._stream = stream
        self._headers = headers
        self._count = 0

    def items(self, data: bytes) -> list[PublishItem]:
        if self.wrapping is not None:
            reader = ItemReader(self.wrapping, self._stream, self._headers, self._count)
            items = [*reader.feed(data), *reader.end()]
            self._count = reader.count
            return items
        self._count += 1
        return [PublishItem(self._count, 0, self._read(data))]

    def _read(self, data: bytes) -> Publication | InputError:
        ids = EventIds()
        try:
            events = decode_body(data, self._media_type, self._headers, None, ids)
        except InputError as error:
            return error
        return Publication(self._stream, events, given=ids.given(events))


async def _pace_messages(request: web.Request, messages: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield messages no faster than the client may send."""
    async for data in messages:
        await pace_upload(request, len(data))
        yield data


def _feed(reader: ItemReader, piece: bytes) -> list[PublishItem]:
    return list(reader.feed(piece))


async def _store(publications: PublishEndpoint, items: Sequence[PublishItem], by: Principal) -> list[ItemResult]:
    """Store items. If the log fails, each has that error as its result."""
    try:
        return await publications.store(items, by)
    except TriplewireError as error:
        return [ItemResult(each, error if each.publication is not None else each.content) for each in items]  # type: ignore[arg-type]


async def _read_and_acknowledge(progress: PublishProgress, reading: Awaitable[None]) -> None:
    """Read and acknowledge at the same time, until all that was read is acknowledged."""

    async def read() -> None:
        await reading
        await progress.finish()

    try:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(read())
            tasks.create_task(progress.acknowledge())
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None


async def _until(pieces: AsyncIterator[bytes], closing: asyncio.Event) -> AsyncIterator[bytes]:
    """Yield pieces until there are no more or the edge is closing."""
    ended = asyncio.ensure_future(closing.wait())
    try:
        while True:
            following = asyncio.ensure_future(anext(pieces, None))
            following.add_done_callback(_retrieve_exception)
            await asyncio.wait((following, ended), return_when=asyncio.FIRST_COMPLETED)
            if not following.done():
                following.cancel()
                with suppress(asyncio.CancelledError):
                    await following
                return
            piece = following.result()
            if piece is None:
                return
            yield piece
            if ended.done():
                return
    finally:
        ended.cancel()


def _retrieve_exception(task: asyncio.Future[Any]) -> None:
    """Mark the exception of a task as retrieved: nothing waits for it any more."""
    if not task.cancelled():
        task.exception()


async def _messages(socket: web.WebSocketResponse) -> AsyncIterator[bytes]:
    async for message in socket:
        if message.type is WSMsgType.TEXT:
            yield message.data.encode()
        elif message.type is WSMsgType.BINARY:
            yield message.data


async def _write_lines(response: web.StreamResponse, documents: Sequence[dict[str, Any]]) -> None:
    await response.write(b"".join(orjson.dumps(each) + b"\n" for each in documents))


async def _send_each(socket: web.WebSocketResponse, documents: Sequence[dict[str, Any]]) -> None:
    for each in documents:
        if not socket.closed:
            await socket.send_str(orjson.dumps(each).decode())
