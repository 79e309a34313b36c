"""Calls: requests to one edge, and what it answers or refuses with."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

import aiohttp
import orjson

from triplewire.client.credentials import Credentials
from triplewire.client.feeds import Transport
from triplewire.client.problems import error_of
from triplewire.model.errors import Unavailable

_TIMEOUT = aiohttp.ClientTimeout(total=60, sock_connect=10)

Json = dict[str, Any]


class Calls:
    """Talks to one edge over connections that it keeps open. Errors are those of `triplewire.model.errors`."""

    def __init__(
        self,
        url: str = "http://localhost:8080",
        *,
        attempts: int | None = None,
        transport: Transport = "sse",
        token: str | None = None,
        cacert: str | None = None,
    ) -> None:
        """`attempts` bounds how many broken connections in a row a feed bears; None means any number. Over the
        transport `websocket` each message is acknowledged when the next one is asked for.

        `token` is shown to this edge, and to no other; `cacert` is a file with the certificates to go by. Without them
        the environment is asked: TRIPLEWIRE_TOKEN, TRIPLEWIRE_TOKEN_FILE, TRIPLEWIRE_CACERT. Raises BadRequest.
        """
        self._credentials = Credentials.given(token, cacert)
        self._transport: Transport = transport
        self._url = url.rstrip("/")
        self._attempts = attempts
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _call(self, method: str, path: str, **options: Any) -> Any:  # noqa: ANN401
        body = await self._send(method, path, **options)
        return orjson.loads(body) if body else None

    async def _send(self, method: str, path: str, *, bad_is_fine: bool = False, **options: Any) -> bytes:  # noqa: ANN401
        try:
            async with self._open().request(method, self._url + path, timeout=_TIMEOUT, **options) as response:
                body = await response.read()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise Unavailable(f"{self._url} does not answer: {error}") from error
        if response.status >= 400 and not (bad_is_fine and response.content_type == "application/json"):
            raise error_of(response.status, body)
        return body

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=self._credentials.connector(),
                middlewares=self._credentials.shown_to(self._url),
                json_serialize=lambda value: orjson.dumps(value).decode(),
                read_bufsize=2**18,
            )
        return self._session
