"""HTTP requests to one edge, and the credentials that they carry.

The token is sent to this edge alone, never to one that a feed is redirected to; neither token nor certificates appear
in an error, a log or a repr. Errors are those of `triplewire.model.errors`.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import aiohttp
import orjson
from aiohttp import ClientHandlerType, hdrs
from yarl import URL

from triplewire.client.feeds import Transport
from triplewire.config.settings import CACERT, TOKEN, TOKEN_FILE
from triplewire.model.errors import BadRequest, Unavailable
from triplewire.model.problems import parse_problem


@dataclass(frozen=True)
class Credentials:
    """A token for one edge, and a PEM file with the certificate authorities that may sign the edge's certificate."""

    token: str | None = field(default=None, repr=False)
    cacert: str | None = None

    @classmethod
    def resolve(
        cls, token: str | None = None, cacert: str | None = None, environment: Mapping[str, str] = os.environ
    ) -> Credentials:
        """Return the arguments, or else the values of the environment: a token, or the name of a file with one.

        An empty token is none. Raises BadRequest for an unreadable file and for a text that is not a token.
        """
        text = token if token is not None else environment.get(TOKEN) or read_token_file(environment.get(TOKEN_FILE))
        if text and not (text.isascii() and text.isprintable() and " " not in text):
            raise BadRequest("the token has characters that no token has; it is printable ASCII without spaces")
        return cls(text or None, cacert or environment.get(CACERT))

    def connector(self) -> aiohttp.TCPConnector:
        """Return a connector without a limit: feeds stay open and must not use up connections. Raises BadRequest."""
        if self.cacert is None:
            return aiohttp.TCPConnector(limit=0)
        try:
            return aiohttp.TCPConnector(limit=0, ssl=ssl.create_default_context(cafile=self.cacert))
        except OSError as error:
            raise BadRequest(f"{self.cacert} has no certificates that can be read: {error.strerror or error}") from None

    def middlewares(self, url: str) -> tuple[aiohttp.ClientMiddlewareType, ...]:
        """Send the token to the edge of `url` alone: feeds may be redirected to edges of others."""
        if self.token is None:
            return ()
        home, header = URL(url).origin(), f"Bearer {self.token}"

        async def show(request: aiohttp.ClientRequest, handler: ClientHandlerType) -> aiohttp.ClientResponse:
            if request.url.origin() == home:
                request.headers[hdrs.AUTHORIZATION] = header
            return await handler(request)

        return (show,)


def read_token_file(path: str | Path | None) -> str | None:
    """Return the token in a file, None if it is empty. Raises BadRequest."""
    if path is None:
        return None
    try:
        return Path(path).read_text().strip() or None
    except (OSError, UnicodeDecodeError) as error:
        raise BadRequest(f"the file {path} with the token cannot be read: {error}") from None


_TIMEOUT = aiohttp.ClientTimeout(total=60, sock_connect=10)

Json = dict[str, Any]


class BaseClient:
    """Sends requests to one edge over connections that stay open. Errors are those of `triplewire.model.errors`."""

    def __init__(
        self,
        url: str = "http://localhost:8080",
        *,
        attempts: int | None = None,
        transport: Transport = "sse",
        token: str | None = None,
        cacert: str | None = None,
    ) -> None:
        """`attempts` limits the failed connections in a row of a feed; None means any number. Over the transport
        `websocket` each message is acknowledged when the next one is requested.

        `token` is sent to this edge alone; `cacert` is a PEM file of certificate authorities. Without them the
        environment decides: TRIPLEWIRE_TOKEN, TRIPLEWIRE_TOKEN_FILE, TRIPLEWIRE_CACERT. Raises BadRequest.
        """
        self._credentials = Credentials.resolve(token, cacert)
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

    async def _call(self, method: str, path: str, **options: Any) -> Json:  # noqa: ANN401
        document: Json = orjson.loads(await self._send(method, path, **options))
        return document

    async def _post_all(self, path: str, requests: Sequence[Mapping[str, Any]]) -> list[Json]:
        documents: list[Json] = orjson.loads(await self._send("POST", path, json=list(requests)))
        return documents

    async def _list(self, path: str, name: str) -> list[Json]:
        """Return the member `name` of a document that is a list of objects."""
        return list((await self._call("GET", path))[name])

    async def _list_pages(self, path: str, name: str) -> list[Json]:
        """Return the same over all pages, following their cursors."""
        items: list[Json] = []
        cursor: str | None = "earliest"
        while cursor is not None:
            page = await self._call("GET", path, params={"cursor": cursor})
            items += page[name]
            cursor = page["next"]
        return items

    async def _send(self, method: str, path: str, *, accept_failure: bool = False, **options: Any) -> bytes:  # noqa: ANN401
        try:
            async with self._open().request(method, self._url + path, timeout=_TIMEOUT, **options) as response:
                body = await response.read()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise self._unavailable(error) from error
        if response.status >= 400 and not (accept_failure and response.content_type == "application/json"):
            raise parse_problem(response.status, body)
        return body

    async def _stream(self, method: str, path: str, **options: Any) -> AsyncGenerator[bytes, None]:  # noqa: ANN401
        """Yield the body of a response as it arrives."""
        try:
            async with self._open().request(method, self._url + path, **options) as response:
                if response.status >= 400:
                    raise parse_problem(response.status, await response.read())
                async for piece in response.content.iter_any():
                    yield piece
        except (aiohttp.ClientError, TimeoutError) as error:
            raise self._unavailable(error) from error

    async def _stream_json_lines(
        self,
        path: str,
        body: AsyncIterator[bytes],
        **options: Any,  # noqa: ANN401
    ) -> AsyncGenerator[Json, None]:
        """Post a body and yield the objects of the response, one a line, as they arrive."""
        rest = b""
        async with aclosing(self._stream("POST", path, data=body, **options)) as pieces:
            async for piece in pieces:
                *lines, rest = (rest + piece).split(b"\n")
                for line in lines:
                    yield orjson.loads(line)

    def _unavailable(self, error: Exception) -> Unavailable:
        return Unavailable(f"{self._url} does not answer: {error}")

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=self._credentials.connector(),
                middlewares=self._credentials.middlewares(self._url),
                json_serialize=lambda value: orjson.dumps(value).decode(),
                read_bufsize=2**18,
            )
        return self._session
