"""Feeds: SSE and WebSocket subscriptions that reconnect and resume after the last id.

Every message is delivered once, in order. The server may redirect a feed to another edge; positions belong to one
edge, so that away from its first edge a feed resumes after event ids, which every edge understands. Over a WebSocket
each message is acknowledged when the next one is requested.
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

from triplewire.model.clock import Backoff
from triplewire.model.errors import NotFound, TooManyRequests, TriplewireError, Unavailable
from triplewire.model.problems import parse_problem

_HOPS = 5
"""Redirects in a row before a feed returns to its first edge, and requests to stay there."""
_ENDING = ("subscription", "query")
"""Parameters that name feeds which may end."""


@dataclass
class FeedLocation:
    """The edge that a feed reads from: `home`, or the one that it was redirected to. `after` holds until there is a
    last id."""

    home: URL
    parameters: tuple[tuple[str, str], ...] = ()
    after: str | None = None
    away: URL | None = None
    _hops: int = 0
    _stay: bool = False

    def url(self, last: str | None) -> URL:
        if self.away is not None:
            return self.away
        after = [("after", self.after)] if self.after is not None and last is None else []
        return self.home.extend_query([*self.parameters, *after, *([("stay", "1")] if self._stay else [])])

    def headers(self, last: str | None) -> Mapping[str, str]:
        """Return the resume header. At another edge the position is in the address until a message has arrived."""
        known = last is not None and (self.away is None or ":" in last)
        return {"Last-Event-ID": last} if known and last else {}

    def redirect(self, location: str) -> None:
        """Go to another edge, or home after too many redirects in a row."""
        self._hops += 1
        if self._hops > _HOPS:
            self.return_home()
        else:
            self.away = (self.away or self.home).join(URL(location, encoded=True))

    def settle(self) -> None:
        """Forget the redirects: this edge delivers."""
        self._hops = 0

    def drop_ended(self, end: Mapping[str, str]) -> bool:
        """Drop the parameter of a subscription or query that has ended; return whether none is left."""
        ended = [(name, end[name]) for name in _ENDING if name in end]
        self.parameters = tuple(each for each in self.parameters if each not in ended)
        return not any(name in _ENDING for name, _ in self.parameters)

    def return_home(self) -> bool:
        """Return to the first edge and stay there; return whether the feed was away."""
        was_away = self.away is not None
        self.away, self._stay, self._hops = None, self._stay or was_away, 0
        return was_away


@dataclass(frozen=True)
class SseMessage:
    """A message. `id` is its own or that of the last message before it that had one, as in browsers."""

    event: str
    data: bytes
    id: str | None = None


class SseParser:
    """An incremental parser of event streams: pieces in, complete messages out. Comments are dropped."""

    def __init__(self) -> None:
        self.last_id: str | None = None
        self._rest = b""

    def restart(self) -> None:
        """Begin a new connection; the last id stays."""
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[SseMessage]:
        """Yield the messages that are complete now. The iterator must be exhausted before the next call."""
        text = self._rest + data
        if b"\r" in text:
            text = text.replace(b"\r\n", b"\n")
        *blocks, self._rest = text.split(b"\n\n")
        for block in blocks:
            message = self._parse(block)
            if message is not None:
                yield message

    def _parse(self, block: bytes) -> SseMessage | None:
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


_MOVING = ("position", "event", "notification")
"""Messages that move the resume position."""
_HEARTBEAT = 20.0
"""Seconds between two pings."""


async def read_websocket(
    session: aiohttp.ClientSession, url: URL, headers: Mapping[str, str]
) -> AsyncGenerator[SseMessage, None]:
    """Yield the messages of one connection, those about the connection too; each is acknowledged when the next one is
    requested. Messages to resume from have an `id`. Raises the error of the server."""
    try:
        socket = await session.ws_connect(
            url.update_query(ack="1"), headers=headers, heartbeat=_HEARTBEAT, max_msg_size=0
        )
    except aiohttp.WSServerHandshakeError as error:
        raise parse_problem(error.status, b"") from error
    async with socket:
        async for frame in socket:
            document = orjson.loads(frame.data)
            name = document.pop("type")
            id = document.get("id", document.get("position")) if name in _MOVING else None
            yield SseMessage(name, orjson.dumps(document), id)
            if id is not None and "missed" not in document:
                await socket.send_str(orjson.dumps({"ack": id}).decode())


Transport = Literal["sse", "websocket"]

_FEED_TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=45)
"""A live server sends a comment every 15 seconds."""
_BACKOFF = Backoff(first=0.1, longest=5.0, jitter=0)
_REDIRECTING = ("closing", "move")
"""Messages that say where to continue, and when."""
_CLOSING = ("slow",)
"""Messages after which the client reconnects."""
_BROKEN = (aiohttp.ClientError, ConnectionError, TimeoutError, TooManyRequests, Unavailable)
_REDIRECTS = (301, 302, 303, 307, 308)


class _Redirected(Exception):
    """The server says where to continue, or to reconnect, and when."""

    def __init__(self, location: str | None, seconds: float = 0.0) -> None:
        super().__init__(location)
        self.location = location
        self.seconds = seconds


@dataclass(frozen=True)
class FeedMessage:
    """A message of a feed. `event` is `event`, `notification`, `gap`, `end` or `failed`; `data` is its JSON."""

    event: str
    position: str | None
    data: dict[str, Any]


@dataclass(frozen=True)
class Feed:
    """A feed over one address. `attempts` limits the failed connections in a row; None means any number."""

    session: aiohttp.ClientSession
    url: str
    after: str | None = None
    attempts: int | None = None
    parameters: tuple[tuple[str, str], ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    transport: Transport = "sse"
    positions: bool = False
    """Whether progress is a message too, `position`, also where there is no event."""

    async def messages(self) -> AsyncGenerator[FeedMessage, None]:
        """Yield every message once, in order, until `end` or `failed`. Raises the server's error, such as NotFound."""
        parser, failures = SseParser(), 0
        location = FeedLocation(URL(self.url), self.parameters, self.after)
        while True:
            reason: object = "the connection was closed"
            try:
                async with aclosing(self._connection(parser, location)) as connection:
                    async for message in connection:
                        failures = 0
                        location.settle()
                        parsed = FeedMessage(message.event, message.id, orjson.loads(message.data))
                        yield parsed
                        if parsed.event == "failed" or (parsed.event == "end" and location.drop_ended(parsed.data)):
                            return
            except _Redirected as redirect:
                if redirect.location is not None:
                    location.redirect(redirect.location)
                await asyncio.sleep(redirect.seconds)
                continue
            except (*_BROKEN, TriplewireError) as error:
                # The other edge may refuse the feed; the first one knows it.
                if not location.return_home() and not isinstance(error, _BROKEN):
                    if _has_ended(error, parser):
                        return
                    raise
                reason = error
            failures += 1
            if self.attempts is not None and failures > self.attempts:
                raise Unavailable(f"{self.url} does not answer: {reason}")
            await asyncio.sleep(_BACKOFF.seconds(failures))

    async def _connection(self, parser: SseParser, location: FeedLocation) -> AsyncGenerator[SseMessage, None]:
        """Yield the messages of one connection."""
        parser.restart()
        url, last = location.url(parser.last_id), location.headers(parser.last_id)
        if self.transport == "websocket":
            async for message in self._websocket(parser, url, last):
                yield message
            return
        headers = {"Accept": "text/event-stream", **self.headers, **last}
        async with self.session.get(url, headers=headers, timeout=_FEED_TIMEOUT, allow_redirects=False) as response:
            if response.status in _REDIRECTS and "Location" in response.headers:
                raise _Redirected(response.headers["Location"])
            if response.status != 200:
                raise parse_problem(response.status, await response.read())
            async for piece in response.content.iter_any():
                for message in parser.feed(piece):
                    if message.event in _REDIRECTING:
                        document = orjson.loads(message.data)
                        raise _Redirected(document.get("location"), document["retry"] / 1_000)
                    if message.event in _CLOSING:
                        return
                    if message.event != "position":
                        yield message
                if self.positions and parser.last_id is not None:
                    yield SseMessage("position", orjson.dumps({"position": parser.last_id}), parser.last_id)

    async def _websocket(
        self, parser: SseParser, url: URL, last: Mapping[str, str]
    ) -> AsyncGenerator[SseMessage, None]:
        """Yield the same over a WebSocket. It never moves to another edge, where its positions would mean nothing."""
        async with aclosing(read_websocket(self.session, url, {**self.headers, **last})) as connection:
            async for message in connection:
                parser.last_id = message.id or parser.last_id
                if message.event in (*_CLOSING, "move"):
                    return
                if message.event == "problem":
                    raise Unavailable(orjson.loads(message.data)["problem"]["detail"])
                if message.event != "position":
                    yield message


def _has_ended(error: Exception, parser: SseParser) -> bool:
    """Return whether the subscription or query ended while the connection was broken: the edge no longer knows it."""
    return isinstance(error, NotFound) and parser.last_id is not None
