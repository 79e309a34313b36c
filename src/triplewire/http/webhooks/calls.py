"""Outbound calls to addresses that users chose, guarded against server-side request forgery, with a concurrency
limit per target.

The addresses of a host name are checked when it is called, and the connection is made to an address that was checked:
DNS rebinding makes no difference. Targets that answer never wait for targets that do not: a target that timed out gets
one call at a time until it answers.
"""

from __future__ import annotations

import asyncio
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

from triplewire.model.clock import Backoff, Clock
from triplewire.security.webhooks import AllowedNetworks, refusal_detail

WEBHOOK_SECONDS: Final = 15.0
"""Time limit of a call to a webhook, from the DNS look-up to the last byte of the response. A target with longer work
should respond before it."""

WEBHOOK_CONNECT_SECONDS: Final = 5.0
"""Time limit of the connection, which is part of that."""

WEBHOOK_CALLS: Final = 512
"""Concurrent calls to targets that respond, each a socket and some 30 kB."""

WEBHOOK_CALLS_FAILING: Final = 128
"""Concurrent calls to targets that did not respond the last time; the others never wait for them."""

WEBHOOK_CALLS_TARGET: Final = 16
"""Concurrent calls to one host and port, so that no target is overrun."""

WEBHOOK_ATTEMPTS: Final = 15
"""Attempts to deliver a message before it becomes a dead letter: over some four hours, with the pauses below."""

WEBHOOK_PAUSE_FIRST: Final = 1.0
"""Seconds before the second attempt, at most; twice as long each time."""

WEBHOOK_PAUSE_LONGEST: Final = 3_600.0
"""Seconds at most between two attempts, unless the target asks for more."""

WEBHOOK_RETRY_AFTER: Final = 86_400.0
"""Seconds that a target may request by `Retry-After`, at most: a longer pause would keep state for ever."""

WEBHOOK_ANSWER_BYTES: Final = 65_536
"""Bytes read of a response, so that the connection can be reused. Nothing of it is kept."""


@dataclass(frozen=True)
class RetrySchedule:
    """Pauses between attempts to deliver a message, and their number."""

    attempts: int = WEBHOOK_ATTEMPTS
    backoff: Backoff = field(default_factory=lambda: Backoff(WEBHOOK_PAUSE_FIRST, WEBHOOK_PAUSE_LONGEST))

    def pause(self, failures: int, requested: float | None = None) -> float:
        """Seconds after so many failures in a row, from 1 on, and not less than the target requested."""
        return max(self.backoff.seconds(failures), min(requested or 0.0, WEBHOOK_RETRY_AFTER))

    def is_over(self, failures: int) -> bool:
        """Whether that was the last attempt."""
        return failures >= self.attempts


def parse_retry_after(value: str | None, now: int) -> float | None:
    """The seconds of a header `Retry-After`, a number or a date; `now` is in microseconds. None if it is neither."""
    text = (value or "").strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - now / 1_000_000)
    except (ValueError, TypeError, OverflowError):
        return None


_RESOLVERS = 16
"""Threads for DNS look-ups. One name is looked up once at a time, however many webhooks wait for it."""


@dataclass(frozen=True)
class CallResult:
    """The result of a call. `status` is None if there was no response; `reason` then says why."""

    status: int | None
    reason: str
    retry_after: float | None = None
    body: bytes = b""

    @property
    def accepted(self) -> bool:
        return self.status is not None and 200 <= self.status < 300

    @property
    def gone(self) -> bool:
        return self.status == 410

    @property
    def unanswered(self) -> bool:
        """There was no response, so that the next call to the target is likely to have none either."""
        return self.status is None


class ForbiddenAddress(OSError):
    """An address that must not be called."""


class CheckedResolver(AbstractResolver):
    """Looks up host names and checks their addresses, in threads of its own, since some look-ups take long."""

    def __init__(self, networks: AllowedNetworks) -> None:
        self._networks = networks
        self._threads = ThreadPoolExecutor(_RESOLVERS, thread_name_prefix="edge-resolve")

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """All addresses of a name. Raises ForbiddenAddress if one of them must not be called, or OSError."""
        search = partial(socket.getaddrinfo, host, port, family, socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
        infos = await asyncio.get_running_loop().run_in_executor(self._threads, search)
        addresses = [(each[0], str(each[4][0])) for each in infos]
        for _, address in addresses:
            if not self._networks.permit(address):
                raise ForbiddenAddress(f"{host} resolves to {address}: {refusal_detail(address)}")
        return [_resolve_result(host, port, each, address) for each, address in addresses]

    async def close(self) -> None:
        # A slow look-up is not waited for.
        self._threads.shutdown(wait=False, cancel_futures=True)


class OutboundCaller:
    """An HTTP client that follows no redirects, keeps no cookies, and connects only to allowed networks."""

    def __init__(
        self,
        networks: AllowedNetworks,
        clock: Clock,
        seconds: float = WEBHOOK_SECONDS,
        resolver: Callable[[AllowedNetworks], AbstractResolver] = CheckedResolver,
    ) -> None:
        self._networks = networks
        self._clock = clock
        self._make_resolver = resolver
        self._timeout = aiohttp.ClientTimeout(total=seconds, sock_connect=WEBHOOK_CONNECT_SECONDS)
        self._session: aiohttp.ClientSession | None = None
        self._resolver: AbstractResolver | None = None

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> CallResult:
        return await self._call("POST", url, body, headers)

    async def get(self, url: str) -> CallResult:
        """The result has the first bytes of the body."""
        return await self._call("GET", url, None, {})

    async def close(self) -> None:
        if self._session is not None and self._resolver is not None:
            await self._session.close()
            await self._resolver.close()
            self._session = self._resolver = None

    async def _call(self, method: str, url: str, body: bytes | None, headers: Mapping[str, str]) -> CallResult:
        try:
            async with self._open().request(
                method, url, data=body, headers={**_DEFAULT_HEADERS, **headers}, allow_redirects=False
            ) as response:
                pause = parse_retry_after(response.headers.get("Retry-After"), self._clock.now())
                return CallResult(
                    response.status, f"answered {response.status}", pause, await _read_beginning(response.content)
                )
        except TimeoutError:
            return CallResult(None, "did not answer in time")
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return CallResult(None, _describe_failure(error))

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._resolver = self._make_resolver(self._networks)
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
        """A socket for an address, checked again: an IP address in a URL is not resolved."""
        family, type, protocol, _, address = info
        if not self._networks.permit(str(address[0])):
            raise ForbiddenAddress(refusal_detail(str(address[0])))
        opened = socket.socket(family, type, protocol)
        opened.setblocking(False)
        return opened


_DEFAULT_HEADERS = {"User-Agent": "Triplewire"}


async def _read_beginning(content: aiohttp.StreamReader) -> bytes:
    """Read a response up to the limit. A longer one costs the connection."""
    beginning = b""
    while len(beginning) < WEBHOOK_ANSWER_BYTES and (piece := await content.readany()):
        beginning += piece
    return beginning


def _resolve_result(host: str, port: int, family: int, address: str) -> ResolveResult:
    flags = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
    return ResolveResult(hostname=host, host=address, port=port, family=family, proto=0, flags=flags)


def _describe_failure(error: BaseException) -> str:
    """Describe an error without the URL, which may contain a secret."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ForbiddenAddress):
            return str(cause)
        cause = cause.__cause__ or cause.__context__
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"cannot be reached: {error.os_error.strerror or type(error.os_error).__name__}"
    return f"did not respond by HTTP: {type(error).__name__}"


@dataclass
class TargetLimit:
    """The concurrency limit of one host and port. After a call without response it is failing, and gets one call
    at a time until it responds."""

    many: Semaphore = field(default_factory=lambda: Semaphore(WEBHOOK_CALLS_TARGET))
    one: Semaphore = field(default_factory=lambda: Semaphore(1))
    failing: bool = False
    users: int = 0


class ConcurrencyLimit:
    """Limits concurrent calls to each target, and to all healthy and all failing targets together."""

    def __init__(self, healthy: int = WEBHOOK_CALLS, failing: int = WEBHOOK_CALLS_FAILING) -> None:
        self._healthy = Semaphore(healthy)
        self._failing = Semaphore(failing)
        self._targets: dict[str, TargetLimit] = {}

    def __len__(self) -> int:
        """The targets that are called or failing."""
        return len(self._targets)

    @asynccontextmanager
    async def enter(self, address: str) -> AsyncIterator[TargetLimit]:
        """Wait for a free call to a target. The caller sets `failing` of the target inside."""
        target = self._targets.setdefault(address, TargetLimit())
        target.users += 1
        try:
            while True:
                failing = target.failing
                async with target.one if failing else target.many, self._failing if failing else self._healthy:
                    if target.failing == failing:
                        yield target
                        return
        finally:
            target.users -= 1
            if not target.users and not target.failing:
                self._targets.pop(address, None)
