"""Outbound calls to addresses that users chose, guarded against server-side request forgery, with a concurrency
limit
per target.

The addresses of a host name are checked when it is called, and the connection is made to an address that was
checked:
DNS rebinding makes no difference. Targets that answer never wait for targets that do not: a target that timed out
gets
one call at a time until it answers.
"""

from __future__ import annotations

import asyncio
import random
import socket
from asyncio import Semaphore
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Final

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from triplewire.model.clock import Clock
from triplewire.security.webhooks import AllowedNetworks, refusal_detail

WEBHOOK_SECONDS: Final = 15.0
"""How long a call of a hook may take, from the search for its address to the last byte of the answer. What takes longer
is to be answered before it is done."""

WEBHOOK_CONNECT_SECONDS: Final = 5.0
"""Of these, how long the connection may take to be made."""

WEBHOOK_CALLS: Final = 512
"""Calls of hooks under way at a time to targets that answer, each a socket and some 30 kB."""

WEBHOOK_CALLS_FAILING: Final = 128
"""The same to targets that did not answer the last time, apart from the others, who therefore never wait for them."""

WEBHOOK_CALLS_TARGET: Final = 16
"""Calls under way at a time to one host and port, so that nobody is overrun by us."""

WEBHOOK_ATTEMPTS: Final = 15
"""How often a message is tried before it is parked: over some four hours, with the pauses below."""

WEBHOOK_PAUSE_FIRST: Final = 1.0
"""Seconds at most before a message is tried again the first time; twice as long each time."""

WEBHOOK_PAUSE_LONGEST: Final = 3_600.0
"""Seconds at most between two attempts, unless the target asks for more."""

WEBHOOK_RETRY_AFTER: Final = 86_400.0
"""Seconds that a target may ask for at most: longer ones would be a way to make us remember for ever."""

WEBHOOK_ANSWER_BYTES: Final = 65_536
"""Read of what a target answers, so that the connection can be used again. Nothing of it is kept."""


# Retry schedule of webhooks: exponential back-off with jitter, `Retry-After`, and when to give up.


@dataclass(frozen=True)
class RetrySchedule:
    """Chance is given, so that a test needs none."""

    attempts: int = WEBHOOK_ATTEMPTS
    first: float = WEBHOOK_PAUSE_FIRST
    longest: float = WEBHOOK_PAUSE_LONGEST
    chance: Callable[[], float] = random.random

    def pause(self, failures: int, asked: float | None = None) -> float:
        """Seconds after so many failures in a row, from 1 on: between half and the whole of what doubles each time, and
        not less than the target asked for."""
        whole: float = min(self.longest, self.first * 2 ** min(failures - 1, 30))
        return max(whole * (1 + self.chance()) / 2, min(asked or 0.0, WEBHOOK_RETRY_AFTER))

    def over(self, failures: int) -> bool:
        """Whether that was the last attempt."""
        return failures >= self.attempts


def parse_retry_after(value: str | None, now: int) -> float | None:
    """The seconds that a header `Retry-After` asks for, a number or a date, at a time in microseconds; None where it
    asks for nothing that we understand."""
    text = (value or "").strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        moment = parsedate_to_datetime(text)
        return max(0.0, moment.timestamp() - now / 1_000_000)
    except (ValueError, TypeError, OverflowError):
        return None


# The addresses that a name leads to are looked at when it is called, and the connection is made to one that was looked
# at: what the name leads to a moment later makes no difference.

_RESOLVERS = 16
"""Threads that look names up. The search for one name is under way once at a time, however many hooks wait for it."""


@dataclass(frozen=True)
class CallResult:
    """What became of a call. `status` is None where there was no answer, and `reason` then says why."""

    status: int | None
    reason: str
    retry_after: float | None = None
    body: bytes = b""

    @property
    def taken(self) -> bool:
        return self.status is not None and 200 <= self.status < 300

    @property
    def gone(self) -> bool:
        return self.status == 410

    @property
    def hung(self) -> bool:
        """Nobody answered: whoever calls the same machine next will wait in vain, too."""
        return self.status is None


class ForbiddenAddress(OSError):
    """An address that is not to be called."""


class CheckedResolver(AbstractResolver):
    """Looks names up in threads of its own: some take long, and the loop's own threads have other things to do."""

    def __init__(self, networks: AllowedNetworks) -> None:
        self._networks = networks
        self._threads = ThreadPoolExecutor(_RESOLVERS, thread_name_prefix="edge-resolve")

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """All addresses, if all of them may be called. Raises OSError."""
        search = partial(socket.getaddrinfo, host, port, family, socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
        found = await asyncio.get_running_loop().run_in_executor(self._threads, search)
        addresses = [(each[0], str(each[4][0])) for each in found]
        for _, address in addresses:
            if not self._networks.permit(address):
                raise ForbiddenAddress(f"{host} leads to {address}: {refusal_detail(address)}")
        return [_resolve_result(host, port, each, address) for each, address in addresses]

    async def close(self) -> None:
        # A search that takes long is not waited for.
        self._threads.shutdown(wait=False, cancel_futures=True)


class OutboundCaller:
    """Calls one address at a time, follows no redirect, and keeps nothing of what it is answered."""

    def __init__(self, networks: AllowedNetworks, clock: Clock, seconds: float = WEBHOOK_SECONDS) -> None:
        self._networks = networks
        self._clock = clock
        self._timeout = aiohttp.ClientTimeout(total=seconds, sock_connect=WEBHOOK_CONNECT_SECONDS)
        self._session: aiohttp.ClientSession | None = None
        self._resolver: CheckedResolver | None = None

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> CallResult:
        return await self._call("POST", url, body, headers)

    async def get(self, url: str) -> CallResult:
        """With the first bytes of the body."""
        return await self._call("GET", url, None, {})

    async def close(self) -> None:
        if self._session is not None and self._resolver is not None:
            await self._session.close()
            await self._resolver.close()
            self._session = self._resolver = None

    async def _call(self, method: str, url: str, body: bytes | None, headers: Mapping[str, str]) -> CallResult:
        try:
            async with self._opened().request(
                method, url, data=body, headers={**_DEFAULT_HEADERS, **headers}, allow_redirects=False
            ) as response:
                asked = parse_retry_after(response.headers.get("Retry-After"), self._clock.now())
                return CallResult(
                    response.status, f"answered {response.status}", asked, await _read_beginning(response.content)
                )
        except TimeoutError:
            return CallResult(None, "did not answer in time")
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return CallResult(None, _describe_failure(error))

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._resolver = CheckedResolver(self._networks)
            connector = aiohttp.TCPConnector(
                resolver=self._resolver, limit=0, ttl_dns_cache=10, socket_factory=self._socket
            )
            self._session = aiohttp.ClientSession(
                connector=connector,
                timeout=self._timeout,
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                trust_env=False,
            )
        return self._session

    def _socket(self, info: aiohttp.AddrInfoType) -> socket.socket:
        """For the address that is connected to, of whichever way it was found: one that is written as such in a URL is
        not looked up."""
        family, type, protocol, _, address = info
        if not self._networks.permit(str(address[0])):
            raise ForbiddenAddress(refusal_detail(str(address[0])))
        made = socket.socket(family, type, protocol)
        made.setblocking(False)
        return made


_DEFAULT_HEADERS = {"User-Agent": "Triplewire"}


async def _read_beginning(content: aiohttp.StreamReader) -> bytes:
    """Of an answer. What is not read to its end costs the connection."""
    found = b""
    while len(found) < WEBHOOK_ANSWER_BYTES and (piece := await content.readany()):
        found += piece
    return found


def _resolve_result(host: str, port: int, family: int, address: str) -> ResolveResult:
    flags = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
    return ResolveResult(hostname=host, host=address, port=port, family=family, proto=0, flags=flags)


def _describe_failure(error: BaseException) -> str:
    """What went wrong, without the address, in which something may be secret."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ForbiddenAddress):
            return str(cause)
        cause = cause.__cause__ or cause.__context__
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"cannot be reached: {error.os_error.strerror or type(error.os_error).__name__}"
    return f"did not answer as HTTP has it: {type(error).__name__}"


# Gates: how many calls are under way at a time, so that those who answer never wait for those who do not.


@dataclass
class TargetLimit:
    """Of one host and port. Once it did not answer, it is ill until it does: one call at a time finds out."""

    many: Semaphore = field(default_factory=lambda: Semaphore(WEBHOOK_CALLS_TARGET))
    one: Semaphore = field(default_factory=lambda: Semaphore(1))
    ill: bool = False
    users: int = 0


class ConcurrencyLimit:
    """All of them, and the room that those who are well have together, and that those who are ill have."""

    def __init__(self, well: int = WEBHOOK_CALLS, ill: int = WEBHOOK_CALLS_FAILING) -> None:
        self._well = Semaphore(well)
        self._ill = Semaphore(ill)
        self._gates: dict[str, TargetLimit] = {}

    def __len__(self) -> int:
        """How many are known: those that are waited for, and those that are ill."""
        return len(self._gates)

    @asynccontextmanager
    async def through(self, place: str) -> AsyncIterator[TargetLimit]:
        """A call goes on inside. Who is inside says of the gate whether it is ill."""
        gate = self._gates.setdefault(place, TargetLimit())
        gate.users += 1
        try:
            while True:
                ill = gate.ill
                async with gate.one if ill else gate.many, self._ill if ill else self._well:
                    if gate.ill == ill:
                        yield gate
                        return
        finally:
            gate.users -= 1
            if not gate.users and not gate.ill:
                self._gates.pop(place, None)
