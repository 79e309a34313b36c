"""Drains: how an edge leaves so that nobody loses anything."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from socket import socket

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from triplewire.config import limits
from triplewire.sockets import queued

_LOOK_SECONDS = 0.02


class Drain:
    """Whether the edge is leaving. Each answer then is the last of its connection, so that the client opens another,
    to another process."""

    def __init__(self) -> None:
        self.begun = False

    def middleware(self) -> Middleware:
        @web.middleware
        async def leave(request: web.Request, handler: Handler) -> web.StreamResponse:
            response = await handler(request)
            if self.begun and not response.prepared:
                response.force_close()
            return response

        return leave


DRAIN = web.AppKey("drain", Drain)


async def accepted(sockets: Sequence[socket]) -> None:
    """Until no connection waits to be accepted: those that do are reset when the last process closes the socket."""
    while queued(sockets):
        await asyncio.sleep(0)


async def emptied(runner: web.BaseRunner, seconds: float = limits.LEAVE_SECONDS) -> None:
    """Until every connection was closed, or for so long. Whoever sends a request meanwhile, on a connection that was
    accepted or kept open, is answered."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while runner.server is not None and runner.server.connections and loop.time() < end:
        await asyncio.sleep(_LOOK_SECONDS)
