"""HTTP requests to one edge, and the credentials that they carry.

The token is sent to this edge alone, never to one that a feed is redirected to; neither token nor certificates appear
in an error, a log or a repr. Errors are those of `triplewire.errors`.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import aiohttp
import orjson
from aiohttp import ClientHandlerType, hdrs
from yarl import URL

from triplewire.client.feeds import Transport
from triplewire.client.problems import parse_problem
from triplewire.config.settings import CACERT, TOKEN, TOKEN_FILE
from triplewire.model.errors import BadRequest, Unavailable

# Credentials: what a client shows to be let in, and whom it believes. Neither is ever in an error, a log or a repr.


@dataclass(frozen=True)
class Credentials:
    """A token for one edge, and a file with the certificates of those whom it may be signed by (PEM)."""

    token: str | None = field(default=None, repr=False)
    cacert: str | None = None

    @classmethod
    def given(
        cls, token: str | None = None, cacert: str | None = None, environment: Mapping[str, str] = os.environ
    ) -> Credentials:
        """What is given, or else what the environment says: a token, or the name of a file with one. An empty token is
        none. Raises BadRequest for a file that cannot be read, or for a text that is no token."""
        said = token if token is not None else environment.get(TOKEN) or read_token_file(environment.get(TOKEN_FILE))
        if said and not (said.isascii() and said.isprintable() and " " not in said):
            raise BadRequest("the token is none: it has characters that no token has")
        return cls(said or None, cacert or environment.get(CACERT))

    def connector(self) -> aiohttp.TCPConnector:
        """Feeds stay open, and must not use up the connections that calls need. Raises BadRequest."""
        if self.cacert is None:
            return aiohttp.TCPConnector(limit=0)
        try:
            return aiohttp.TCPConnector(limit=0, ssl=ssl.create_default_context(cafile=self.cacert))
        except OSError as error:
            raise BadRequest(f"{self.cacert} has no certificates to go by: {error.strerror or error}") from None

    def shown_to(self, url: str) -> tuple[aiohttp.ClientMiddlewareType, ...]:
        """Shows the token to one edge alone: listeners are sent elsewhere, and may be by somebody else."""
        if self.token is None:
            return ()
        home, header = URL(url).origin(), f"Bearer {self.token}"

        async def show(request: aiohttp.ClientRequest, handler: ClientHandlerType) -> aiohttp.ClientResponse:
            if request.url.origin() == home:
                request.headers[hdrs.AUTHORIZATION] = header
            return await handler(request)

        return (show,)


def read_token_file(path: str | Path | None) -> str | None:
    """The token that a file holds, if it holds one. Raises BadRequest."""
    if path is None:
        return None
    try:
        return Path(path).read_text().strip() or None
    except (OSError, UnicodeDecodeError) as error:
        raise BadRequest(f"the file {path} with the token cannot be read: {error}") from None


_TIMEOUT = aiohttp.ClientTimeout(total=60, sock_connect=10)

Json = dict[str, Any]


class BaseClient:
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
            raise parse_problem(response.status, body)
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
