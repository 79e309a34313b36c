"""Wires: the connection to one listener, over HTTP or in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter

from triplewire.config import limits

_HEADERS = {
    "Content-Type": "text/event-stream",
    "Cache-Control": "no-cache",
    "X-Accel-Buffering": "no",
}


class Wire(Protocol):
    """Carries bytes to one listener."""

    async def send(self, data: bytes) -> None:
        """Write, and wait while the other side is behind. Raises ConnectionError when it is gone."""

    def push(self, data: bytes) -> None:
        """Write without waiting; what the other side does not take yet is kept. Does nothing when it is gone."""

    def waiting(self) -> int | None:
        """How many bytes are kept for the other side; None when it is gone."""

    async def close(self) -> None:
        """Let the other side read the rest for a short while, then end the connection whatever happens."""


class HttpWire:
    """A response of unknown length. Live messages skip the framework and go to the transport, framed by hand."""

    def __init__(
        self, response: web.StreamResponse, writer: AbstractStreamWriter, transport: asyncio.Transport
    ) -> None:
        self.response = response
        self._writer = writer
        self._transport = transport
        self._chunked = response.headers.get("Transfer-Encoding") == "chunked"

    @classmethod
    async def open(cls, request: web.Request) -> HttpWire:
        """Send the head of the answer; from here on no problem document can be sent."""
        response = web.StreamResponse(headers=_HEADERS)
        response.force_close()
        writer = await response.prepare(request)
        if writer is None or request.transport is None:
            raise ConnectionResetError("gone before the answer began")
        return cls(response, writer, request.transport)

    async def send(self, data: bytes) -> None:
        if data:
            await self._writer.write(data)
            await self._writer.drain()

    def push(self, data: bytes) -> None:
        if self._transport.is_closing():
            return
        if self._chunked:
            self._transport.writelines((b"%x\r\n" % len(data), data, b"\r\n"))
        else:
            self._transport.write(data)

    def waiting(self) -> int | None:
        return None if self._transport.is_closing() else self._transport.get_write_buffer_size()

    async def close(self) -> None:
        try:
            async with asyncio.timeout(limits.FAREWELL_SECONDS):
                await self._writer.write_eof()
        except (TimeoutError, ConnectionError):
            self._transport.abort()


class MemoryWire:
    """Keeps what it is given. `taken` bytes of it count as read by the other side: all, unless a reader is set."""

    def __init__(self, reader: Callable[[int], int] | None = None) -> None:
        self.data = bytearray()
        self.closed = False
        self._reader = reader or (lambda written: written)

    async def send(self, data: bytes) -> None:
        if self.closed:
            raise ConnectionResetError("closed")
        self.data += data
        await asyncio.sleep(0)

    def push(self, data: bytes) -> None:
        if not self.closed:
            self.data += data

    def waiting(self) -> int | None:
        return None if self.closed else len(self.data) - self._reader(len(self.data))

    async def close(self) -> None:
        self.closed = True
