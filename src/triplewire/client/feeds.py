"""Feeds: listening that goes on when a connection breaks, from the last id that came."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import orjson

from triplewire.client.problems import error_of
from triplewire.client.sse import Message, Parser
from triplewire.errors import NotFound, TooMany, Unavailable

_PATIENCE = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=45)
"""A server that is there sends a comment every 15 seconds."""
_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 5.0
_LAST = ("slow", "closing")
"""After which a client comes back."""
_BROKEN = (aiohttp.ClientError, ConnectionError, TimeoutError, TooMany, Unavailable)


@dataclass(frozen=True)
class Heard:
    """One message of a feed. `event` is `event`, `notification`, `gap` or `end`; `data` is what its JSON says."""

    event: str
    position: str | None
    data: dict[str, Any]


@dataclass(frozen=True)
class Feed:
    """One address that is listened to. `attempts` broken connections in a row are borne; None means any number."""

    session: aiohttp.ClientSession
    url: str
    after: str | None = None
    attempts: int | None = None
    parameters: tuple[tuple[str, str], ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)

    async def messages(self) -> AsyncGenerator[Heard, None]:
        """Every message once, in order. Ends after `end`; raises what the server refuses with, such as NotFound."""
        parser, failures = Parser(), 0
        while True:
            reason: object = "the connection was closed"
            try:
                async with aclosing(self._connection(parser)) as connection:
                    async for message in connection:
                        failures = 0
                        yield _heard(message)
                        if message.event == "end":
                            return
            except _BROKEN as error:
                reason = error
            except NotFound:
                if parser.last_id is None:
                    raise
                # It ended while the connection was broken, and the edge no longer knows it.
                return
            failures += 1
            if self.attempts is not None and failures > self.attempts:
                raise Unavailable(f"{self.url} does not answer: {reason}")
            await asyncio.sleep(min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** min(failures - 1, 10)))

    async def _connection(self, parser: Parser) -> AsyncGenerator[Message, None]:
        """The messages of one connection. It ends when the server says that it is the last."""
        parser.restart()
        parameters, headers = self._parameters(parser), {**self.headers, **_headers(parser)}
        async with self.session.get(self.url, params=parameters, headers=headers, timeout=_PATIENCE) as response:
            if response.status != 200:
                raise error_of(response.status, await response.read())
            async for piece in response.content.iter_any():
                for message in parser.feed(piece):
                    if message.event in _LAST:
                        return
                    if message.event != "position":
                        yield message

    def _parameters(self, parser: Parser) -> list[tuple[str, str]]:
        fresh = self.after is not None and parser.last_id is None
        return [*self.parameters, *([("after", self.after or "")] if fresh else [])]


def _headers(parser: Parser) -> dict[str, str]:
    return {"Accept": "text/event-stream"} | ({"Last-Event-ID": parser.last_id} if parser.last_id else {})


def _heard(message: Message) -> Heard:
    return Heard(message.event, message.id, orjson.loads(message.data))
