"""Limits per client: connections, requests and bytes per second (token buckets), and time for slow clients.

Clients are told apart by address, an IPv6 network of 64 bits being one client; `X-Forwarded-For` is believed only from
trusted proxies, and clients on this machine are not limited. A head, a body, or the reading of a response that
trickles costs a client nothing, but a connection and memory here, so each has a timeout. Connections that are kept
open on purpose have none: listeners, WebSockets, streaming publishers.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from triplewire.config import Settings
from triplewire.model.clock import Clock
from triplewire.model.errors import BadRequest, TooManyRequests

CLIENT_BURST_SECONDS: Final = 2.0
"""For how long a client that was quiet may have all of its rate at once."""

REMEMBERED_CLIENTS: Final = 20_000
"""Clients of which an edge remembers how much they took: some 300 bytes each. The others count as if they were new."""

HEAD_SECONDS: Final = 30.0
"""From the first byte of a request, or from the opening of a connection, to the end of the first head: a client that
lets it trickle holds a connection. Any real one sends it at once."""

BODY_SECONDS: Final = 30.0
"""For a body, beside what it has for its length; not for those who keep publishing, of whom there are few."""

BODY_RATE: Final = 1024
"""Bytes of a body in a second, at least, on the average: slower than any line that is in use. The longest body may take
some four hours then, of which it sends all the time."""

READING_SECONDS: Final = 60.0
"""For how long a client need not take a byte of an answer that waits for it: at worst a page of 8 MiB and more for
each of its connections. Listeners have a limit of their own in bytes."""


# Buckets: how much each client may take of something that flows in again as time goes by.

_SHORTEST_SECONDS = 0.001
"""That anybody is told to wait: a bucket that is just empty has something in it soon."""


class TokenBucket:
    """One bucket for each client. It holds what flows in within some seconds; who finds something in it may take more
    than there is, and then waits until the debt has flowed in. So large bodies pass, and the rate holds."""

    def __init__(
        self,
        rate: float,
        clock: Clock,
        *,
        seconds: float = CLIENT_BURST_SECONDS,
        most: int = REMEMBERED_CLIENTS,
    ) -> None:
        """`rate` is what flows in in a second; 0 lets everybody take what they want. The clients that took last are
        remembered, the others have full buckets."""
        self._rate = rate
        self._full = rate * seconds
        self._clock = clock
        self._most = most
        self._levels: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._levels)

    def take(self, client: str, amount: float = 1.0) -> float:
        """Take, or else the seconds after which to try again."""
        if not self._rate:
            return 0.0
        now = self._clock.ticks()
        level, at = self._levels.pop(client, (self._full, now))
        level = min(self._full, level + (now - at) * self._rate)
        allowed = level > 0
        self._levels[client] = (level - amount if allowed else level, now)
        if len(self._levels) > self._most:
            self._levels.popitem(last=False)
        return 0.0 if allowed else max(-level / self._rate, _SHORTEST_SECONDS)


# Clients: who sends a request, as far as addresses tell.

FORWARDED_FOR = "X-Forwarded-For"

_IPV6_PREFIX_BITS = 64
"""Bits of an IPv6 address that are given to one customer; who has them has 2^64 addresses to send from."""


@dataclass(frozen=True)
class ClientAddresses:
    """Tells clients apart. Only proxies that are trusted are believed when they say for whom they ask."""

    proxies: tuple[IPv4Network | IPv6Network, ...] = ()

    @classmethod
    def parsed(cls, proxies: Iterable[str]) -> ClientAddresses:
        """From addresses and networks, such as `10.0.0.0/8`. Raises BadRequest."""
        try:
            return cls(tuple(ip_network(each) for each in proxies))
        except ValueError as error:
            raise BadRequest(f"a trusted proxy must be an address or a network: {error}") from None

    def of(self, request: web.Request) -> str | None:
        """The client, or None for one on this machine, which is not limited."""
        address = self.address(request)
        return None if address is None else client_key(address)

    def address(self, request: web.Request) -> str | None:
        """From where a request comes, as far as that is known."""
        peer = request.transport.get_extra_info("peername") if request.transport else None
        if not isinstance(peer, tuple):
            return None
        said = request.headers.getall(FORWARDED_FOR, ()) if self.proxies else ()
        return self._beyond(str(peer[0]), [each.strip() for text in said for each in text.split(",")])

    def _beyond(self, peer: str, said: Sequence[str]) -> str:
        """The last address that is not of a trusted proxy: what stands before it may be made up."""
        found = peer
        for each in reversed(said):
            if not self._trusts(found) or not _is_address(each):
                break
            found = each
        return found

    def _trusts(self, address: str) -> bool:
        return any(ip_address(_bare(address)) in network for network in self.proxies)


@lru_cache(4096)
def client_key(address: str) -> str | None:
    """What a client with that address is known by; None on this machine."""
    found = ip_address(_bare(address))
    mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
    found = mapped or found
    if found.is_loopback:
        return None
    return str(found) if found.version == 4 else str(ip_network(f"{found}/{_IPV6_PREFIX_BITS}", strict=False))


def _bare(address: str) -> str:
    return address.partition("%")[0]


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


_RETRY_SECONDS = 1.0
"""Seconds after which who has too many connections may try again."""


class ConnectionHold:
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


_HOLD = web.RequestKey("hold", ConnectionHold)


class RateLimits:
    """What each client may have at this edge. Those on this machine may have everything."""

    def __init__(
        self, clients: ClientAddresses, clock: Clock, *, connections: int, requests: float, bytes: float
    ) -> None:
        """0 of something is as much as they want; requests and bytes are those of a second."""
        self._clients = clients
        self._most = connections
        self._used: Counter[str] = Counter()
        self._requests = TokenBucket(requests, clock)
        self._bytes = TokenBucket(bytes, clock)

    @classmethod
    def from_settings(cls, settings: Settings, clock: Clock) -> RateLimits:
        """Raises BadRequest where the proxies are no addresses."""
        return cls(
            ClientAddresses.parsed(settings.proxies),
            clock,
            connections=settings.client_connections,
            requests=settings.client_requests,
            bytes=settings.client_bytes,
        )

    def middleware(self) -> Middleware:
        """Refuses what is too much with TooManyRequests, before anything of it is read."""

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
            raise TooManyRequests(f"{client} has {self._most} connections in use, which is the most", _RETRY_SECONDS)
        if wait := self._requests.take(client):
            raise TooManyRequests(f"{client} sends more requests than it may", wait)
        if size and (wait := self._bytes.take(client, size)):
            raise TooManyRequests(f"{client} sends more bytes than it may", wait)

    def _hold(self, client: str) -> ConnectionHold:
        self._used[client] += 1
        return ConnectionHold(lambda: self._let_go(client), lambda size: self._bytes.take(client, size))

    def _let_go(self, client: str) -> None:
        self._used[client] -= 1
        if not self._used[client]:
            del self._used[client]


def keep_connection(request: web.Request) -> Callable[[], None] | None:
    """To be called by whoever keeps the connection of a request after its answer; what is returned, when that is over.
    None where the client may have any number."""
    hold = request.get(_HOLD)
    return None if hold is None else hold.keep()


async def pace_upload(
    request: web.Request, size: int, sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
) -> None:
    """To be awaited by whoever has read some of what a client sends without having told how much it will be. It waits
    while the client is over its rate: what is sent meanwhile fills the connection, and so the client waits, too."""
    hold = request.get(_HOLD)
    if hold is None or request.content_length is not None:
        return
    while seconds := hold.charge(size):
        await sleep(seconds)


# Patience: how long a client may keep an edge waiting that has begun to say something, or to be told something.
#
# A head, a body and the reading of an answer cost a client nothing when they trickle, but a connection and its memory
# here. What is kept open on purpose is not waited for: listeners, WebSockets and those who keep publishing.

UNBOUNDED_BODY = web.RequestKey("lasting", bool)
"""Of a request whose body may take as long as its client likes."""


class SlowClientTimeout(Enum):
    """What did not come in time."""

    HEAD = f"the head of the request did not come within {HEAD_SECONDS:g} seconds"
    BODY = (
        f"the body of the request came too slowly: it has {BODY_SECONDS:g} seconds, and one more for each "
        f"{BODY_RATE} bytes"
    )
    READING = f"nothing of the answer was read for {READING_SECONDS:g} seconds"


@dataclass(frozen=True)
class ConnectionProgress:
    """What can be seen of a connection at one moment."""

    heads: int
    """Requests that came by it so far."""
    head: bool
    """The head of another is waited for, and was begun, or is the first."""
    body: int | None
    """Bytes of a body that came so far; None where none is waited for."""
    written: int
    """Bytes of the answer that were made so far."""
    waiting: int
    """Those of them that the other side has not taken."""


NO_PROGRESS = ConnectionProgress(0, False, None, 0, 0)


class SlowClientTimer:
    """Of one connection. It is asked from time to time, and knows no more than what it saw then."""

    __slots__ = ("_asked", "_moved", "_seen")

    def __init__(self, now: float) -> None:
        self._seen = NO_PROGRESS
        self._asked = now
        self._moved = now

    def check(self, seen: ConnectionProgress, now: float) -> SlowClientTimeout | None:
        """What has taken too long by now, if anything has."""
        before, self._seen = self._seen, seen
        if (seen.heads, seen.head, seen.body is None) != (before.heads, before.head, before.body is None):
            self._asked = now
        if (seen.written, seen.waiting) != (before.written, before.waiting):
            self._moved = now
        if seen.head and now - self._asked > HEAD_SECONDS:
            return SlowClientTimeout.HEAD
        if seen.body is not None and now - self._asked > BODY_SECONDS + seen.body / BODY_RATE:
            return SlowClientTimeout.BODY
        return SlowClientTimeout.READING if seen.waiting and now - self._moved > READING_SECONDS else None
