"""Callers: requests to addresses that somebody else chose.

The addresses that a name leads to are looked at when it is called, and the connection is made to one that was looked
at: what the name leads to a moment later makes no difference.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from triplewire.config import limits
from triplewire.http.webhooks.calls import parse_retry_after
from triplewire.model.clock import Clock
from triplewire.security.webhooks import AllowedNetworks, refusal_detail

_RESOLVERS = 16
"""Threads that look names up. The search for one name is under way once at a time, however many hooks wait for it."""


@dataclass(frozen=True)
class Answer:
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


class Forbidden(OSError):
    """An address that is not to be called."""


class Resolver(AbstractResolver):
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
                raise Forbidden(f"{host} leads to {address}: {refusal_detail(address)}")
        return [_result(host, port, each, address) for each, address in addresses]

    async def close(self) -> None:
        # A search that takes long is not waited for.
        self._threads.shutdown(wait=False, cancel_futures=True)


class Caller:
    """Calls one address at a time, follows no redirect, and keeps nothing of what it is answered."""

    def __init__(self, networks: AllowedNetworks, clock: Clock, seconds: float = limits.HOOK_SECONDS) -> None:
        self._networks = networks
        self._clock = clock
        self._timeout = aiohttp.ClientTimeout(total=seconds, sock_connect=limits.HOOK_CONNECT_SECONDS)
        self._session: aiohttp.ClientSession | None = None
        self._resolver: Resolver | None = None

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        return await self._call("POST", url, body, headers)

    async def get(self, url: str) -> Answer:
        """With the first bytes of the body."""
        return await self._call("GET", url, None, {})

    async def close(self) -> None:
        if self._session is not None and self._resolver is not None:
            await self._session.close()
            await self._resolver.close()
            self._session = self._resolver = None

    async def _call(self, method: str, url: str, body: bytes | None, headers: Mapping[str, str]) -> Answer:
        try:
            async with self._opened().request(
                method, url, data=body, headers={**_OURS, **headers}, allow_redirects=False
            ) as response:
                asked = parse_retry_after(response.headers.get("Retry-After"), self._clock.now())
                return Answer(response.status, f"answered {response.status}", asked, await _first(response.content))
        except TimeoutError:
            return Answer(None, "did not answer in time")
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return Answer(None, _words(error))

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._resolver = Resolver(self._networks)
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
            raise Forbidden(refusal_detail(str(address[0])))
        made = socket.socket(family, type, protocol)
        made.setblocking(False)
        return made


_OURS = {"User-Agent": "Triplewire"}


async def _first(content: aiohttp.StreamReader) -> bytes:
    """Of an answer. What is not read to its end costs the connection."""
    found = b""
    while len(found) < limits.HOOK_ANSWER_BYTES and (piece := await content.readany()):
        found += piece
    return found


def _result(host: str, port: int, family: int, address: str) -> ResolveResult:
    flags = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
    return ResolveResult(hostname=host, host=address, port=port, family=family, proto=0, flags=flags)


def _words(error: BaseException) -> str:
    """What went wrong, without the address, in which something may be secret."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, Forbidden):
            return str(cause)
        cause = cause.__cause__ or cause.__context__
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"cannot be reached: {error.os_error.strerror or type(error.os_error).__name__}"
    return f"did not answer as HTTP has it: {type(error).__name__}"
