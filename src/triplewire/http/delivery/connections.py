"""Client connections: the port to one client, and its twins for HTTP streams, WebSockets and memory.

An HTTP connection is taken over from the web framework once the head of the response was sent: what is left is a
transport and a small object, no request, parser or task.
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
from triplewire.http.problems import describe_error
from triplewire.http.rate_limits import keep_connection
from triplewire.http.server import FAREWELL_SECONDS
from triplewire.model.errors import BadRequest, TriplewireError
from triplewire.rdf.checks import check_nesting

SOCKET_BYTES: Final = 64 * 1024
"""A message of a client over a WebSocket, which says little."""


class ClientConnection(Protocol):
    """Carries bytes to one listener."""

    @property
    def write(self) -> Callable[[bytes], object]:
        """Writes without waiting; what the other side does not take yet is kept. Does nothing when it is gone."""

    @property
    def waiting(self) -> Callable[[], int]:
        """Tells how many bytes are kept for the other side."""

    @property
    def gone(self) -> bool:
        """The other side is gone."""

    def lost(self, call: Callable[[], None]) -> None:
        """Have it called when the other side is gone, at once if it is."""

    async def drained(self) -> None:
        """Wait while the other side is behind. Raises ConnectionError when it is gone."""

    def close(self) -> None:
        """Let the other side read the rest for a short while, then end the connection whatever happens."""


class MemoryConnection:
    """Keeps what it is given. `reader` tells how much of it counts as read by the other side: all, unless set."""

    def __init__(self, reader: Callable[[int], int] | None = None) -> None:
        self.data = bytearray()
        self.gone = False
        self._reader = reader or (lambda written: written)
        self._call: Callable[[], None] = lambda: None

    def write(self, data: bytes) -> None:
        if not self.gone:
            self.data += data

    def waiting(self) -> int:
        return len(self.data) - self._reader(len(self.data))

    def lost(self, call: Callable[[], None]) -> None:
        self._call = call
        if self.gone:
            call()

    async def drained(self) -> None:
        if self.gone:
            raise ConnectionResetError("closed")
        await asyncio.sleep(0)

    def close(self) -> None:
        if not self.gone:
            self.gone = True
            self._call()


# Seats: connections of listeners, taken over from the web framework once the head of the answer was sent.
#
# What is left of a connection then is a transport and a small object: no request, no parser, no task. Live messages go
# straight to the transport.


class HttpConnection(asyncio.Protocol):
    """The wire of one connection. What the other side says is not listened to."""

    __slots__ = ("_behind", "_call", "_leave", "_timer", "gone", "transport", "waiting", "write")

    def __init__(self, transport: asyncio.Transport, leave: Callable[[HttpConnection], None]) -> None:
        self.transport = transport
        self.write: Callable[[bytes], object] = transport.write
        self.waiting: Callable[[], int] = transport.get_write_buffer_size
        self.gone = transport.is_closing()
        self._leave = leave
        self._call: Callable[[], None] | None = None
        self._behind: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    def lost(self, call: Callable[[], None]) -> None:
        self._call = call
        if self.gone:
            call()

    async def drained(self) -> None:
        if self._behind is not None:
            await self._behind
        if self.gone:
            raise ConnectionResetError("the listener is gone")

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
        if self._call is not None:
            self._call()


class HttpConnections:
    """All that are taken."""

    def __init__(self) -> None:
        self._taken: set[HttpConnection] = set()
        self._empty: asyncio.Event = asyncio.Event()

    def __len__(self) -> int:
        return len(self._taken)

    async def take(self, request: web.Request, headers: Mapping[str, str]) -> tuple[web.StreamResponse, HttpConnection]:
        """Send the head of an answer without an end, and take over. The handler returns the response, and is done with
        it. From here on no problem document can be sent."""
        response = _HeadResponse(headers=headers)
        response.force_close()
        await response.prepare(request)
        protocol, transport = request.protocol, request.transport
        if transport is None or transport.is_closing():
            raise ConnectionResetError("gone before the answer began")
        over = keep_connection(request)
        seat = HttpConnection(transport, self._leave if over is None else partial(self._leave, over=over))
        # The framework closes what it still holds when the handler returns.
        protocol.transport = None
        manager = protocol._manager
        if manager is not None:
            manager.connection_lost(protocol)
        transport.set_protocol(seat)
        if protocol.writing_paused:
            seat.pause_writing()
        self._taken.add(seat)
        return response, seat

    async def emptied(self) -> None:
        """Wait until all are gone, for as long as they have to read the rest."""
        async with asyncio.timeout(2 * FAREWELL_SECONDS):
            while self._taken:
                self._empty.clear()
                await self._empty.wait()

    def _leave(self, seat: HttpConnection, over: Callable[[], None] | None = None) -> None:
        self._taken.discard(seat)
        self._empty.set()
        if over is not None:
            over()


class _HeadResponse(web.StreamResponse):
    """The head of an answer; the rest is somebody else's."""

    async def write_eof(self, data: bytes = b"") -> None:
        assert not data


def is_chunked(response: web.StreamResponse) -> bool:
    return response.headers.get("Transfer-Encoding") == "chunked"


# Sockets: listeners over WebSockets. The framework shakes hands and reads what a client says; what it is told goes to
# the transport in frames that are made once for all.

JsonObject = dict[str, Any]
MessageHandler = Callable[[JsonObject], Awaitable[None]]


def wants_websocket(request: web.Request) -> bool:
    """Whether the client wants a WebSocket."""
    return request.headers.get(hdrs.UPGRADE, "").lower() == "websocket"


class WebSocketConnection:
    """One WebSocket. It is written to in whole frames."""

    def __init__(
        self, socket: web.WebSocketResponse, writer: AbstractStreamWriter, transport: asyncio.Transport
    ) -> None:
        self.write = transport.write
        self.waiting = transport.get_write_buffer_size
        self._socket = socket
        self._writer = writer
        self._transport = transport
        self._call: Callable[[], None] = lambda: None
        self._closing = asyncio.Event()

    @classmethod
    async def open(cls, request: web.Request) -> WebSocketConnection:
        """Shake hands; from here on no problem document can be sent."""
        socket = web.WebSocketResponse(timeout=FAREWELL_SECONDS, compress=False, max_msg_size=SOCKET_BYTES)
        writer = await socket.prepare(request)
        if writer is None or request.transport is None:
            raise ConnectionResetError("gone before the answer began")
        return cls(socket, writer, request.transport)

    @property
    def response(self) -> web.WebSocketResponse:
        return self._socket

    @property
    def gone(self) -> bool:
        return self._transport.is_closing()

    def lost(self, call: Callable[[], None]) -> None:
        self._call = call
        if self.gone:
            call()

    async def drained(self) -> None:
        await self._writer.drain()
        if self.gone:
            raise ConnectionResetError("the listener is gone")

    def close(self) -> None:
        self._closing.set()

    async def serve(self, hear: MessageHandler) -> None:
        """Hear what the client says until it goes or the wire is closed. A problem with what it says is told to it."""
        tasks = [asyncio.ensure_future(self._closing.wait()), asyncio.ensure_future(self._listen(hear))]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            self._call()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._socket.close()

    async def _listen(self, hear: MessageHandler) -> None:
        async for message in self._socket:
            try:
                await hear(_parse_object(message.type, message.data))
            except TriplewireError as error:
                self.write(WEBSOCKET.notice("problem", problem=describe_error(error)))


def _parse_object(kind: WSMsgType, data: object) -> JsonObject:
    if kind is not WSMsgType.TEXT or not isinstance(data, str):
        raise BadRequest("messages must be text, with a JSON object each")
    check_nesting(data.encode())
    try:
        found = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise BadRequest(f"a message is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise BadRequest("a message must be a JSON object")
    return found
