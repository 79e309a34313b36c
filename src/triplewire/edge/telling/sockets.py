"""Sockets: listeners over WebSockets. The framework shakes hands and reads what a client says; what it is told goes
to
the transport in frames that are made once for all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import orjson
from aiohttp import WSMsgType, hdrs, web
from aiohttp.abc import AbstractStreamWriter

from triplewire.config import limits
from triplewire.edge.formats import MESSAGES
from triplewire.model.errors import BadRequest, TriplewireError
from triplewire.problems import described
from triplewire.rdf.checks import check_nesting

Json = dict[str, Any]
Hear = Callable[[Json], Awaitable[None]]


def upgrades(request: web.Request) -> bool:
    """Whether the client wants a WebSocket."""
    return request.headers.get(hdrs.UPGRADE, "").lower() == "websocket"


class SocketWire:
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
    async def open(cls, request: web.Request) -> SocketWire:
        """Shake hands; from here on no problem document can be sent."""
        socket = web.WebSocketResponse(
            timeout=limits.FAREWELL_SECONDS, compress=False, max_msg_size=limits.SOCKET_BYTES
        )
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

    async def serve(self, hear: Hear) -> None:
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

    async def _listen(self, hear: Hear) -> None:
        async for message in self._socket:
            try:
                await hear(_object(message.type, message.data))
            except TriplewireError as error:
                self.write(MESSAGES.notice("problem", problem=described(error)))


def _object(kind: WSMsgType, data: object) -> Json:
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
