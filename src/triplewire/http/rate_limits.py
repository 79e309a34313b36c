"""Limits per client: connections, requests and bytes per second (token buckets), and time for slow clients.

Clients are told apart by address, an IPv6 network of 64 bits being one client; `X-Forwarded-For` is believed only from
trusted proxies, and clients on this machine are not limited. A head, a body, or the reading of a response that
trickles costs a client nothing, but a connection and memory here, so each has a timeout. Connections that are kept
open on purpose have none: listeners, WebSockets, streaming publishers.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from triplewire.config import Settings
from triplewire.model.cache import BoundedCache
from triplewire.model.clock import Clock
from triplewire.model.errors import BadRequest, TooManyRequests

CLIENT_BURST_SECONDS: Final = 2.0
"""Burst of a client that was quiet, in seconds of its rate."""

REMEMBERED_CLIENTS: Final = 20_000
"""Clients whose buckets an edge remembers: some 300 bytes each. Others have full buckets."""

HEAD_SECONDS: Final = 30.0
"""Time from the first byte of a request, or from the opening of a connection, to the end of the head: a client that
lets it trickle holds a connection. Any real one sends it at once."""

BODY_SECONDS: Final = 30.0
"""Time for a body, beside that for its length; streaming publishers, of which there are few, have no limit."""

BODY_RATE: Final = 1024
"""Least average bytes of a body in a second: slower than any line in use. The longest body may take some four hours."""

READING_SECONDS: Final = 60.0
"""Time for which a client may read nothing of a response, which takes a page of 8 MiB and more for each of its
connections at worst. Listeners have a limit of their own in bytes."""

_SHORTEST_SECONDS = 0.001
"""Least time that a client is told to wait."""


class TokenBucket:
    """A token bucket for each client. A client may take more tokens than its bucket has, unless it is empty, and then
    waits until the debt has flowed in: so large bodies pass, and the rate holds."""

    def __init__(
        self, rate: float, clock: Clock, *, seconds: float = CLIENT_BURST_SECONDS, limit: int = REMEMBERED_CLIENTS
    ) -> None:
        """`rate` is the number of tokens that flow in in a second; 0 is no limit. A bucket holds those of `seconds`.
        The buckets of the last `limit` clients are remembered."""
        self._rate = rate
        self._full = rate * seconds
        self._clock = clock
        self._levels: BoundedCache[str, tuple[float, float]] = BoundedCache(limit)

    def __len__(self) -> int:
        return len(self._levels)

    def take(self, client: str, amount: float = 1.0) -> float:
        """Take tokens and return 0, or return the seconds after which to try again."""
        if not self._rate:
            return 0.0
        now = self._clock.ticks()
        level, at = self._levels.get(client) or (self._full, now)
        level = min(self._full, level + (now - at) * self._rate)
        allowed = level > 0
        self._levels.put(client, (level - amount if allowed else level, now))
        return 0.0 if allowed else max(-level / self._rate, _SHORTEST_SECONDS)


FORWARDED_FOR = "X-Forwarded-For"

_IPV6_PREFIX_BITS = 64
"""Prefix of an IPv6 address that one customer gets, with 2^64 addresses."""


@dataclass(frozen=True)
class ClientAddresses:
    """Tells clients apart by address. `X-Forwarded-For` counts only from trusted proxies."""

    proxies: tuple[IPv4Network | IPv6Network, ...] = ()

    @classmethod
    def parsed(cls, proxies: Iterable[str]) -> ClientAddresses:
        """Parse addresses and networks, such as `10.0.0.0/8`. Raises BadRequest."""
        try:
            return cls(tuple(ip_network(each) for each in proxies))
        except ValueError as error:
            raise BadRequest(f"a trusted proxy must be an address or a network: {error}") from None

    def client(self, request: web.Request) -> str | None:
        """Return the key of a client; None for one on this machine, which is not limited."""
        address = self.address(request)
        return None if address is None else client_key(address)

    def address(self, request: web.Request) -> str | None:
        """Return the address of a client, as far as it is known."""
        peer = request.transport.get_extra_info("peername") if request.transport else None
        if not isinstance(peer, tuple):
            return None
        headers = request.headers.getall(FORWARDED_FOR, ()) if self.proxies else ()
        return self._behind_proxies(str(peer[0]), [each.strip() for text in headers for each in text.split(",")])

    def _behind_proxies(self, peer: str, forwarded: Sequence[str]) -> str:
        """Return the last address that is not of a trusted proxy: those before it may be forged."""
        address = peer
        for each in reversed(forwarded):
            if not self._trusts(address) or not _is_address(each):
                break
            address = each
        return address

    def _trusts(self, address: str) -> bool:
        return any(ip_address(_bare(address)) in network for network in self.proxies)


@lru_cache(4096)
def client_key(address: str) -> str | None:
    """Return the key of the client with an address; None on this machine."""
    parsed = ip_address(_bare(address))
    mapped = parsed.ipv4_mapped if isinstance(parsed, IPv6Address) else None
    parsed = mapped or parsed
    if parsed.is_loopback:
        return None
    return str(parsed) if parsed.version == 4 else str(ip_network(f"{parsed}/{_IPV6_PREFIX_BITS}", strict=False))


def _bare(address: str) -> str:
    return address.partition("%")[0]


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


_RETRY_SECONDS = 1.0
"""Seconds after which a client with too many connections may try again."""


class ConnectionHold:
    """A connection of a client that is in use: until its request is answered, or as long as it is kept."""

    __slots__ = ("_kept", "_release", "charge")

    def __init__(self, release: Callable[[], None], charge: Callable[[int], float]) -> None:
        """`charge` counts bytes, or returns the seconds after which to try again."""
        self._release: Callable[[], None] | None = release
        self._kept = False
        self.charge = charge

    def keep(self) -> Callable[[], None]:
        """Keep it in use after the request, until the returned function is called."""
        self._kept = True
        return self._end

    def answered(self) -> None:
        if not self._kept:
            self._end()

    def _end(self) -> None:
        release, self._release = self._release, None
        if release is not None:
            release()


_HOLD = web.RequestKey("hold", ConnectionHold)


class RateLimits:
    """Limits of each client at this edge. Clients on this machine have none."""

    def __init__(
        self, clients: ClientAddresses, clock: Clock, *, connections: int, requests: float, bytes: float
    ) -> None:
        """Requests and bytes are those of a second; 0 is no limit."""
        self._clients = clients
        self._connections = connections
        self._used: Counter[str] = Counter()
        self._requests = TokenBucket(requests, clock)
        self._bytes = TokenBucket(bytes, clock)

    @classmethod
    def from_settings(cls, settings: Settings, clock: Clock) -> RateLimits:
        """Raises BadRequest if the proxies are not addresses."""
        return cls(
            ClientAddresses.parsed(settings.proxies),
            clock,
            connections=settings.client_connections,
            requests=settings.client_requests,
            bytes=settings.client_bytes,
        )

    def middleware(self) -> Middleware:
        """Return a middleware that raises TooManyRequests before the body is read."""

        @web.middleware
        async def limit(request: web.Request, handler: Handler) -> web.StreamResponse:
            client = self._clients.client(request)
            if client is None:
                return await handler(request)
            self._check(client, request.content_length or 0)
            hold = request[_HOLD] = self._hold(client)
            try:
                return await handler(request)
            finally:
                hold.answered()

        return limit

    def _check(self, client: str, size: int) -> None:
        if self._connections and self._used[client] >= self._connections:
            message = f"{client} has {self._connections} connections in use, which is the limit"
            raise TooManyRequests(message, _RETRY_SECONDS)
        if wait := self._requests.take(client):
            raise TooManyRequests(f"{client} sends more requests than its rate limit", wait)
        if size and (wait := self._bytes.take(client, size)):
            raise TooManyRequests(f"{client} sends more bytes than its rate limit", wait)

    def _hold(self, client: str) -> ConnectionHold:
        self._used[client] += 1
        return ConnectionHold(lambda: self._let_go(client), lambda size: self._bytes.take(client, size))

    def _let_go(self, client: str) -> None:
        self._used[client] -= 1
        if not self._used[client]:
            del self._used[client]


def keep_connection(request: web.Request) -> Callable[[], None] | None:
    """Keep the connection of a request in use after its response; return the function that ends that, or None for a
    client without limits."""
    hold = request.get(_HOLD)
    return None if hold is None else hold.keep()


async def pace_upload(
    request: web.Request, size: int, sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
) -> None:
    """Wait while a client that sends a body of unknown length is over its rate. Its bytes meanwhile fill the buffers of
    the connection, and so the client waits, too."""
    hold = request.get(_HOLD)
    if hold is None or request.content_length is not None:
        return
    while seconds := hold.charge(size):
        await sleep(seconds)


UNBOUNDED_BODY = web.RequestKey("lasting", bool)
"""Marks a request whose body may take any time."""


class SlowClientTimeout(Enum):
    """The part of a request or response that took too long."""

    HEAD = f"the head of the request did not arrive within {HEAD_SECONDS:g} seconds"
    BODY = (
        f"the body of the request arrived too slowly: it has {BODY_SECONDS:g} seconds, and one more for each "
        f"{BODY_RATE} bytes"
    )
    READING = f"nothing of the response was read for {READING_SECONDS:g} seconds"


@dataclass(frozen=True)
class ConnectionProgress:
    """The state of a connection at one moment."""

    heads: int
    """Number of requests so far."""
    head: bool
    """Whether the head of a request is awaited that was begun, or is the first."""
    body: int | None
    """Bytes of a body so far; None if none is awaited."""
    written: int
    """Bytes of the response so far."""
    waiting: int
    """Bytes of the response that the client has not read."""


NO_PROGRESS = ConnectionProgress(0, False, None, 0, 0)


class SlowClientTimer:
    """Detects that the client of one connection is too slow, from its state at each check."""

    __slots__ = ("_changed", "_last", "_moved")

    def __init__(self, now: float) -> None:
        self._last = NO_PROGRESS
        self._changed = now
        self._moved = now

    def check(self, seen: ConnectionProgress, now: float) -> SlowClientTimeout | None:
        """Return the part that has taken too long by now; None if there is none."""
        before, self._last = self._last, seen
        if (seen.heads, seen.head, seen.body is None) != (before.heads, before.head, before.body is None):
            self._changed = now
        if (seen.written, seen.waiting) != (before.written, before.waiting):
            self._moved = now
        if seen.head and now - self._changed > HEAD_SECONDS:
            return SlowClientTimeout.HEAD
        if seen.body is not None and now - self._changed > BODY_SECONDS + seen.body / BODY_RATE:
            return SlowClientTimeout.BODY
        return SlowClientTimeout.READING if seen.waiting and now - self._moved > READING_SECONDS else None
