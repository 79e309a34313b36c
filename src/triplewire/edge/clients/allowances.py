"""Allowances: how many connections, requests and bytes one client may have, so that there is room for the others."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from triplewire.config import Settings
from triplewire.edge.clients.buckets import Buckets
from triplewire.edge.clients.clients import Clients
from triplewire.model.clock import Clock
from triplewire.model.errors import TooManyRequests

_LATER = 1.0
"""Seconds after which who has too many connections may try again."""


class Hold:
    """One connection of a client that is in use: until its request is answered, or for as long as somebody keeps it."""

    __slots__ = ("_kept", "_release", "charge")

    def __init__(self, release: Callable[[], None], charge: Callable[[int], float]) -> None:
        """`charge` counts bytes, or tells in how many seconds to try again."""
        self._release: Callable[[], None] | None = release
        self._kept = False
        self.charge = charge

    def keep(self) -> Callable[[], None]:
        """It stays when the request is over, until what is returned is called."""
        self._kept = True
        return self._end

    def answered(self) -> None:
        if not self._kept:
            self._end()

    def _end(self) -> None:
        release, self._release = self._release, None
        if release is not None:
            release()


_HOLD = web.RequestKey("hold", Hold)


class Allowances:
    """What each client may have at this edge. Those on this machine may have everything."""

    def __init__(self, clients: Clients, clock: Clock, *, connections: int, requests: float, bytes: float) -> None:
        """0 of something is as much as they want; requests and bytes are those of a second."""
        self._clients = clients
        self._most = connections
        self._used: Counter[str] = Counter()
        self._requests = Buckets(requests, clock)
        self._bytes = Buckets(bytes, clock)

    @classmethod
    def from_settings(cls, settings: Settings, clock: Clock) -> Allowances:
        """Raises BadRequest where the proxies are no addresses."""
        return cls(
            Clients.parsed(settings.proxies),
            clock,
            connections=settings.client_connections,
            requests=settings.client_requests,
            bytes=settings.client_bytes,
        )

    def middleware(self) -> Middleware:
        """Refuses what is too much with TooMany, before anything of it is read."""

        @web.middleware
        async def allow(request: web.Request, handler: Handler) -> web.StreamResponse:
            client = self._clients.of(request)
            if client is None:
                return await handler(request)
            self._check(client, request.content_length or 0)
            hold = request[_HOLD] = self._hold(client)
            try:
                return await handler(request)
            finally:
                hold.answered()

        return allow

    def _check(self, client: str, size: int) -> None:
        if self._most and self._used[client] >= self._most:
            raise TooManyRequests(f"{client} has {self._most} connections in use, which is the most", _LATER)
        if wait := self._requests.take(client):
            raise TooManyRequests(f"{client} sends more requests than it may", wait)
        if size and (wait := self._bytes.take(client, size)):
            raise TooManyRequests(f"{client} sends more bytes than it may", wait)

    def _hold(self, client: str) -> Hold:
        self._used[client] += 1
        return Hold(lambda: self._let_go(client), lambda size: self._bytes.take(client, size))

    def _let_go(self, client: str) -> None:
        self._used[client] -= 1
        if not self._used[client]:
            del self._used[client]


def kept(request: web.Request) -> Callable[[], None] | None:
    """To be called by whoever keeps the connection of a request after its answer; what is returned, when that is over.
    None where the client may have any number."""
    hold = request.get(_HOLD)
    return None if hold is None else hold.keep()


async def paced(request: web.Request, size: int, sleep: Callable[[float], Awaitable[object]] = asyncio.sleep) -> None:
    """To be awaited by whoever has read some of what a client sends without having told how much it will be. It waits
    while the client is over its rate: what is sent meanwhile fills the connection, and so the client waits, too."""
    hold = request.get(_HOLD)
    if hold is None or request.content_length is not None:
        return
    while seconds := hold.charge(size):
        await sleep(seconds)
