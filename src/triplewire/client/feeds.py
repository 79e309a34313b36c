"""Feeds: SSE and WebSocket subscriptions that reconnect and resume after the last id.

Every message is delivered once, in order. The server may redirect a feed to another edge; positions belong to one
edge, so that away from home messages carry event ids, which every edge understands. Over a WebSocket each message is
acknowledged when the next one is asked for.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Literal

import aiohttp
import orjson
from yarl import URL

from triplewire.client.problems import parse_problem
from triplewire.model.errors import NotFound, TooManyRequests, TriplewireError, Unavailable

# Courses: where a feed listens now. At home, or at another edge that it was sent to, after the same event.
#
# Positions are those of one edge. Away, messages have the ids of events, which every edge understands: whatever the
# last id is, it is right at home.

_HOPS = 5
"""Redirections in a row before a feed goes home, and asks to stay."""
_ENDING = ("subscription", "query")
"""What is listened to that may end."""


@dataclass
class FeedLocation:
    """One feed's way. `after` counts until there is a last id."""

    home: URL
    parameters: tuple[tuple[str, str], ...] = ()
    after: str | None = None
    away: URL | None = None
    _hops: int = 0
    _stay: bool = False

    def url(self, last: str | None) -> URL:
        """What to ask for."""
        if self.away is not None:
            return self.away
        after = [("after", self.after)] if self.after is not None and last is None else []
        return self.home.extend_query([*self.parameters, *after, *([("stay", "1")] if self._stay else [])])

    def headers(self, last: str | None) -> Mapping[str, str]:
        """From where. The place to begin at another edge is in its address, until something was heard there."""
        known = last is not None and (self.away is None or ":" in last)
        return {"Last-Event-ID": last} if known and last else {}

    def go(self, location: str) -> None:
        """Sent elsewhere; back home if that goes on and on."""
        self._hops += 1
        if self._hops > _HOPS:
            self.back()
        else:
            self.away = (self.away or self.home).join(URL(location, encoded=True))

    def heard(self) -> None:
        """It is somewhere where it is told something."""
        self._hops = 0

    def over(self, end: Mapping[str, str]) -> bool:
        """A subscription, or a query, has ended, and is not asked for again; whether none is left."""
        ended = [(name, end[name]) for name in _ENDING if name in end]
        self.parameters = tuple(each for each in self.parameters if each not in ended)
        return not any(name in _ENDING for name, _ in self.parameters)

    def back(self) -> bool:
        """Go home, and stay there; whether it was away."""
        was = self.away is not None
        self.away, self._stay, self._hops = None, self._stay or was, 0
        return was


# Event streams (SSE) as a client reads them.


@dataclass(frozen=True)
class SseMessage:
    """One message. `id` is that of the message or of the last one before it that had one, as browsers do it."""

    event: str
    data: bytes
    id: str | None = None


class SseParser:
    """Takes bytes in whatever pieces they come and gives whole messages. Comments are dropped."""

    def __init__(self) -> None:
        self.last_id: str | None = None
        self._rest = b""

    def restart(self) -> None:
        """A new connection begins; the last id stays."""
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[SseMessage]:
        """The messages that are complete now. The iterator must be used up before the next call."""
        text = self._rest + data
        if b"\r" in text:
            text = text.replace(b"\r\n", b"\n")
        *blocks, self._rest = text.split(b"\n\n")
        for block in blocks:
            found = self._message(block)
            if found is not None:
                yield found

    def _message(self, block: bytes) -> SseMessage | None:
        event, data = b"message", []
        for line in block.split(b"\n"):
            name, _, value = line.partition(b":")
            value = value.removeprefix(b" ")
            if name == b"data":
                data.append(value)
            elif name == b"event":
                event = value
            elif name == b"id":
                self.last_id = value.decode()
        return SseMessage(event.decode(), b"\n".join(data), self.last_id) if data else None


# WebSockets as a client reads them: each message is acknowledged when the one after it is wanted.

_MOVING = ("position", "event", "notification")
"""What moves a client: it resumes from there."""
_HEARTBEAT = 20.0
"""Seconds after which a server that says nothing is asked whether it is there."""


async def read_websocket(
    session: aiohttp.ClientSession, url: URL, headers: Mapping[str, str]
) -> AsyncGenerator[SseMessage, None]:
    """The messages of one connection, those about the connection too. `id` stands on those from which to resume. Raises
    what the server refuses with."""
    try:
        socket = await session.ws_connect(
            url.update_query(ack="1"), headers=headers, heartbeat=_HEARTBEAT, max_msg_size=0
        )
    except aiohttp.WSServerHandshakeError as error:
        raise parse_problem(error.status, b"") from error
    async with socket:
        async for frame in socket:
            told = orjson.loads(frame.data)
            name = told.pop("type")
            id = told.get("id", told.get("position")) if name in _MOVING else None
            yield SseMessage(name, orjson.dumps(told), id)
            if id is not None and "missed" not in told:
                await socket.send_str(orjson.dumps({"ack": id}).decode())


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


class _Redirected(Exception):
    """The server says where to go on, or to come back, and when."""

    def __init__(self, location: str | None, seconds: float = 0.0) -> None:
        super().__init__(location)
        self.location = location
        self.seconds = seconds


@dataclass(frozen=True)
class FeedMessage:
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

    async def messages(self) -> AsyncGenerator[FeedMessage, None]:
        """Every message once, in order. Ends after `end` or `failed`; raises what the server refuses with, such as
        NotFound."""
        parser, failures = SseParser(), 0
        course = FeedLocation(URL(self.url), self.parameters, self.after)
        while True:
            reason: object = "the connection was closed"
            try:
                async with aclosing(self._connection(parser, course)) as connection:
                    async for message in connection:
                        failures = 0
                        course.heard()
                        heard = _parse_message(message)
                        yield heard
                        if heard.event == "failed" or (heard.event == "end" and course.over(heard.data)):
                            return
            except _Redirected as sent:
                if sent.location is not None:
                    course.go(sent.location)
                await asyncio.sleep(sent.seconds)
                continue
            except (*_BROKEN, TriplewireError) as error:
                # Where it was sent to it may be refused: at home everything is as it was.
                if not course.back() and not isinstance(error, _BROKEN):
                    if _has_ended(error, parser):
                        return
                    raise
                reason = error
            failures += 1
            await self._pause(failures, reason)

    async def _pause(self, failures: int, reason: object) -> None:
        if self.attempts is not None and failures > self.attempts:
            raise Unavailable(f"{self.url} does not answer: {reason}")
        await asyncio.sleep(min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** min(failures - 1, 10)))

    async def _connection(self, parser: SseParser, course: FeedLocation) -> AsyncGenerator[SseMessage, None]:
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
                raise _Redirected(response.headers["Location"])
            if response.status != 200:
                raise parse_problem(response.status, await response.read())
            async for piece in response.content.iter_any():
                for message in parser.feed(piece):
                    if message.event in _SENT:
                        told = orjson.loads(message.data)
                        raise _Redirected(told.get("location"), told["retry"] / 1_000)
                    if message.event in _LAST:
                        return
                    if message.event != "position":
                        yield message
                if self.positions and parser.last_id is not None:
                    yield SseMessage("position", orjson.dumps({"position": parser.last_id}), parser.last_id)

    async def _conversation(
        self, parser: SseParser, url: URL, last: Mapping[str, str]
    ) -> AsyncGenerator[SseMessage, None]:
        """The same over a WebSocket. One that is told to move comes back here: elsewhere its positions mean nothing."""
        async with aclosing(read_websocket(self.session, url, {**self.headers, **last})) as connection:
            async for message in connection:
                parser.last_id = message.id or parser.last_id
                if message.event in (*_LAST, "move"):
                    return
                if message.event == "problem":
                    raise Unavailable(orjson.loads(message.data)["problem"]["detail"])
                if message.event != "position":
                    yield message


def _has_ended(error: Exception, parser: SseParser) -> bool:
    """What was listened to ended while the connection was broken, and the edge no longer knows it."""
    return isinstance(error, NotFound) and parser.last_id is not None


def _parse_message(message: SseMessage) -> FeedMessage:
    return FeedMessage(message.event, message.id, orjson.loads(message.data))
