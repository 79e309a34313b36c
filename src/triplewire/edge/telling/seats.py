"""Seats: connections of listeners, taken over from the web framework once the head of the answer was sent.

What is left of a connection then is a transport and a small object: no request, no parser, no task. Live messages go
straight to the transport.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial

from aiohttp import web

from triplewire.config import limits
from triplewire.edge.clients.allowances import kept


class Seat(asyncio.Protocol):
    """The wire of one connection. What the other side says is not listened to."""

    __slots__ = ("_behind", "_call", "_leave", "_timer", "gone", "transport", "waiting", "write")

    def __init__(self, transport: asyncio.Transport, leave: Callable[[Seat], None]) -> None:
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
            self._timer = asyncio.get_running_loop().call_later(limits.FAREWELL_SECONDS, self.transport.abort)
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


class Seats:
    """All that are taken."""

    def __init__(self) -> None:
        self._taken: set[Seat] = set()
        self._empty: asyncio.Event = asyncio.Event()

    def __len__(self) -> int:
        return len(self._taken)

    async def take(self, request: web.Request, headers: Mapping[str, str]) -> tuple[web.StreamResponse, Seat]:
        """Send the head of an answer without an end, and take over. The handler returns the response, and is done with
        it. From here on no problem document can be sent."""
        response = _Head(headers=headers)
        response.force_close()
        await response.prepare(request)
        protocol, transport = request.protocol, request.transport
        if transport is None or transport.is_closing():
            raise ConnectionResetError("gone before the answer began")
        over = kept(request)
        seat = Seat(transport, self._leave if over is None else partial(self._leave, over=over))
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
        async with asyncio.timeout(2 * limits.FAREWELL_SECONDS):
            while self._taken:
                self._empty.clear()
                await self._empty.wait()

    def _leave(self, seat: Seat, over: Callable[[], None] | None = None) -> None:
        self._taken.discard(seat)
        self._empty.set()
        if over is not None:
            over()


class _Head(web.StreamResponse):
    """The head of an answer; the rest is somebody else's."""

    async def write_eof(self, data: bytes = b"") -> None:
        assert not data


def chunked(response: web.StreamResponse) -> bool:
    return response.headers.get("Transfer-Encoding") == "chunked"
