"""Client connections: the port to one client, and its twins for HTTP streams, WebSockets and memory.

An HTTP connection is taken over from the web framework once the head of the response was sent: a transport and a small
object remain, no request, parser or task, and messages go straight to the transport. Over a WebSocket the framework
still reads what a client sends; messages go to the transport in frames that are made once for all clients.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final, Protocol

import orjson
from aiohttp import WSMsgType, hdrs, web
from aiohttp.abc import AbstractStreamWriter

from triplewire.http.formats.sse import WEBSOCKET
from triplewire.http.rate_limits import keep_connection
from triplewire.http.server import FAREWELL_SECONDS
from triplewire.model.errors import BadRequest, TriplewireError
from triplewire.model.problems import describe_error
from triplewire.rdf.checks import check_nesting

SOCKET_BYTES: Final = 64 * 1024
"""Size of a client's message over a WebSocket."""

JsonObject = dict[str, Any]
MessageHandler = Callable[[JsonObject], Awaitable[None]]


class ClientConnection(Protocol):
    """Carries bytes to one client. Its maker gives it a function that it calls once, when the client is gone."""

    @property
    def write(self) -> Callable[[bytes], object]:
        """Writes without waiting, into a buffer where the client is behind. Does nothing when the client is gone."""

    @property
    def pending(self) -> Callable[[], int]:
        """Returns the size of the buffer in bytes."""

    @property
    def gone(self) -> bool:
        """Whether the client has closed the connection."""

    async def drained(self) -> None:
        """Wait while the client is behind. Raises ConnectionError when it is gone."""

    def close(self) -> None:
        """Let the client read the rest for a short while, then end the connection whatever happens."""


OnLost = Callable[[ClientConnection], None]


def _ignore(connection: ClientConnection) -> None:
    """Do nothing about a client that is gone."""


class MemoryConnection:
    """Keeps all bytes. `reader` returns how many of them count as read by the client: all, unless given."""

    def __init__(self, reader: Callable[[int], int] = lambda written: written, on_lost: OnLost = _ignore) -> None:
        self.data = bytearray()
        self.gone = False
        self._reader = reader
        self._on_lost = on_lost

    def write(self, data: bytes) -> None:
        if not self.gone:
            self.data += data

    def pending(self) -> int:
        return len(self.data) - self._reader(len(self.data))

    async def drained(self) -> None:
        if self.gone:
            raise ConnectionResetError("closed")
        await asyncio.sleep(0)

    def close(self) -> None:
        if not self.gone:
            self.gone = True
            self._on_lost(self)


class HttpConnection(asyncio.Protocol):
    """The connection of an endless HTTP response. Bytes from the client are ignored."""

    __slots__ = ("_behind", "_leave", "_on_lost", "_timer", "gone", "pending", "transport", "write")

    def __init__(self, transport: asyncio.Transport, leave: Callable[[HttpConnection], None], on_lost: OnLost) -> None:
        self.transport = transport
        self.write: Callable[[bytes], object] = transport.write
        self.pending: Callable[[], int] = transport.get_write_buffer_size
        self.gone = transport.is_closing()
        self._leave = leave
        self._on_lost = on_lost
        self._behind: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    async def drained(self) -> None:
        if self._behind is not None:
            await self._behind
        if self.gone:
            raise ConnectionResetError("the client is gone")

    def close(self) -> None:
        if not self.gone and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(FAREWELL_SECONDS, self.transport.abort)
            self.transport.close()

    def pause_writing(self) -> None:
        self._behind = asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        behind, self._behind = self._behind, None
        if behind is not None and not behind.done():
            behind.set_result(None)

    def connection_lost(self, error: Exception | None) -> None:
        self.gone = True
        self.resume_writing()
        if self._timer is not None:
            self._timer.cancel()
        self._leave(self)
        self._on_lost(self)


class HttpConnections:
    """All HTTP connections that were taken over."""

    def __init__(self) -> None:
        self._open: set[HttpConnection] = set()
        self._closed: asyncio.Event = asyncio.Event()

    def __len__(self) -> int:
        return len(self._open)

    async def take_over(
        self, request: web.Request, headers: Mapping[str, str], on_lost: OnLost
    ) -> tuple[web.StreamResponse, HttpConnection]:
        """Send the head of an endless response and take the connection over. The handler returns the response and is
        done with it; a problem document cannot be sent any more."""
        response = _HeadResponse(headers=headers)
        response.force_close()
        await response.prepare(request)
        protocol, transport = request.protocol, request.transport
        if transport is None or transport.is_closing():
            raise ConnectionResetError("the client was gone before the response began")
        release = keep_connection(request)
        connection = HttpConnection(transport, partial(self._leave, release=release), on_lost)
        # The framework closes the transport that it still holds when the handler returns.
        protocol.transport = None
        manager = protocol._manager
        if manager is not None:
            manager.connection_lost(protocol)
        transport.set_protocol(connection)
        if protocol.writing_paused:
            connection.pause_writing()
        self._open.add(connection)
        return response, connection

    async def wait_until_closed(self) -> None:
        """Wait until all connections are closed. Raises TimeoutError when clients take too long to read the rest."""
        async with asyncio.timeout(2 * FAREWELL_SECONDS):
            while self._open:
                self._closed.clear()
                await self._closed.wait()

    def _leave(self, connection: HttpConnection, release: Callable[[], None] | None) -> None:
        self._open.discard(connection)
        self._closed.set()
        if release is not None:
            release()


class _HeadResponse(web.StreamResponse):
    """The head of a response whose body is written past the framework."""

    async def write_eof(self, data: bytes = b"") -> None:
        assert not data


def is_chunked(response: web.StreamResponse) -> bool:
    return response.headers.get("Transfer-Encoding") == "chunked"


def wants_websocket(request: web.Request) -> bool:
    return request.headers.get(hdrs.UPGRADE, "").lower() == "websocket"


class WebSocketConnection:
    """A WebSocket, to which whole frames are written."""

    def __init__(
        self, socket: web.WebSocketResponse, writer: AbstractStreamWriter, transport: asyncio.Transport, on_lost: OnLost
    ) -> None:
        self.write = transport.write
        self.pending = transport.get_write_buffer_size
        self.response = socket
        self._writer = writer
        self._transport = transport
        self._on_lost = on_lost
        self._closing = asyncio.Event()

    @classmethod
    async def open(cls, request: web.Request, on_lost: OnLost = _ignore) -> WebSocketConnection:
        """Shake hands; a problem document cannot be sent any more."""
        socket = web.WebSocketResponse(timeout=FAREWELL_SECONDS, compress=False, max_msg_size=SOCKET_BYTES)
        writer = await socket.prepare(request)
        if writer is None or request.transport is None:
            raise ConnectionResetError("the client was gone before the response began")
        return cls(socket, writer, request.transport, on_lost)

    @property
    def gone(self) -> bool:
        return self._transport.is_closing()

    async def drained(self) -> None:
        await self._writer.drain()
        if self.gone:
            raise ConnectionResetError("the client is gone")

    def close(self) -> None:
        self._closing.set()

    async def serve(self, handle: MessageHandler) -> None:
        """Handle messages of the client until it goes or the connection is closed. A TriplewireError that a handler
        raises is sent to the client as a problem."""
        tasks = [asyncio.ensure_future(self._closing.wait()), asyncio.ensure_future(self._receive(handle))]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            self._on_lost(self)
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.response.close()

    async def _receive(self, handle: MessageHandler) -> None:
        async for message in self.response:
            try:
                await handle(_parse_object(message.type, message.data))
            except TriplewireError as error:
                self.write(WEBSOCKET.notice("problem", problem=describe_error(error)))


def _parse_object(kind: WSMsgType, data: object) -> JsonObject:
    if kind is not WSMsgType.TEXT or not isinstance(data, str):
        raise BadRequest("messages must be text, with a JSON object each")
    check_nesting(data.encode())
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise BadRequest(f"a message is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise BadRequest("a message must be a JSON object")
    return value
