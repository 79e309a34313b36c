"""Feeds: listening that goes on when a connection breaks, from the last id that came."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Literal

import aiohttp
import orjson
from yarl import URL

from triplewire.client import sockets
from triplewire.client.courses import Course
from triplewire.client.problems import error_of
from triplewire.client.sse import Message, Parser
from triplewire.model.errors import NotFound, TooManyRequests, TriplewireError, Unavailable

Transport = Literal["sse", "websocket"]

_PATIENCE = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=45)
"""A server that is there sends a comment every 15 seconds."""
_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 5.0
_SENT = ("closing", "move")
"""With which the server says where to go on, and when."""
_LAST = ("slow",)
"""After which a client comes back."""
_BROKEN = (aiohttp.ClientError, ConnectionError, TimeoutError, TooManyRequests, Unavailable)


_ELSEWHERE = (301, 302, 303, 307, 308)


class _Sent(Exception):
    """The server says where to go on, or to come back, and when."""

    def __init__(self, location: str | None, seconds: float = 0.0) -> None:
        super().__init__(location)
        self.location = location
        self.seconds = seconds


@dataclass(frozen=True)
class Heard:
    """One message of a feed. `event` is `event`, `notification`, `gap`, `end` or `failed`; `data` is what its JSON
    says."""

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
    transport: Transport = "sse"
    positions: bool = False
    """How far it is told is a message too, `position`, whether or not there is an event at that place."""

    async def messages(self) -> AsyncGenerator[Heard, None]:
        """Every message once, in order. Ends after `end` or `failed`; raises what the server refuses with, such as
        NotFound."""
        parser, failures = Parser(), 0
        course = Course(URL(self.url), self.parameters, self.after)
        while True:
            reason: object = "the connection was closed"
            try:
                async with aclosing(self._connection(parser, course)) as connection:
                    async for message in connection:
                        failures = 0
                        course.heard()
                        heard = _heard(message)
                        yield heard
                        if heard.event == "failed" or (heard.event == "end" and course.over(heard.data)):
                            return
            except _Sent as sent:
                if sent.location is not None:
                    course.go(sent.location)
                await asyncio.sleep(sent.seconds)
                continue
            except (*_BROKEN, TriplewireError) as error:
                # Where it was sent to it may be refused: at home everything is as it was.
                if not course.back() and not isinstance(error, _BROKEN):
                    if _ended(error, parser):
                        return
                    raise
                reason = error
            failures += 1
            await self._pause(failures, reason)

    async def _pause(self, failures: int, reason: object) -> None:
        if self.attempts is not None and failures > self.attempts:
            raise Unavailable(f"{self.url} does not answer: {reason}")
        await asyncio.sleep(min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** min(failures - 1, 10)))

    async def _connection(self, parser: Parser, course: Course) -> AsyncGenerator[Message, None]:
        """The messages of one connection. It ends when the server says that it is the last."""
        parser.restart()
        url, last = course.url(parser.last_id), course.headers(parser.last_id)
        if self.transport == "websocket":
            async for message in self._conversation(parser, url, last):
                yield message
            return
        headers = {"Accept": "text/event-stream", **self.headers, **last}
        async with self.session.get(url, headers=headers, timeout=_PATIENCE, allow_redirects=False) as response:
            if response.status in _ELSEWHERE and "Location" in response.headers:
                raise _Sent(response.headers["Location"])
            if response.status != 200:
                raise error_of(response.status, await response.read())
            async for piece in response.content.iter_any():
                for message in parser.feed(piece):
                    if message.event in _SENT:
                        told = orjson.loads(message.data)
                        raise _Sent(told.get("location"), told["retry"] / 1_000)
                    if message.event in _LAST:
                        return
                    if message.event != "position":
                        yield message
                if self.positions and parser.last_id is not None:
                    yield Message("position", orjson.dumps({"position": parser.last_id}), parser.last_id)

    async def _conversation(self, parser: Parser, url: URL, last: Mapping[str, str]) -> AsyncGenerator[Message, None]:
        """The same over a WebSocket. One that is told to move comes back here: elsewhere its positions mean nothing."""
        async with aclosing(sockets.messages(self.session, url, {**self.headers, **last})) as connection:
            async for message in connection:
                parser.last_id = message.id or parser.last_id
                if message.event in (*_LAST, "move"):
                    return
                if message.event == "problem":
                    raise Unavailable(orjson.loads(message.data)["problem"]["detail"])
                if message.event != "position":
                    yield message


def _ended(error: Exception, parser: Parser) -> bool:
    """What was listened to ended while the connection was broken, and the edge no longer knows it."""
    return isinstance(error, NotFound) and parser.last_id is not None


def _heard(message: Message) -> Heard:
    return Heard(message.event, message.id, orjson.loads(message.data))
