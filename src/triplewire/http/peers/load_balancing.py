"""Load balancing between edges: overload detection, redirects of new clients to a repeater, migration of connected
ones, and an even spread over edges that share a port.

A position is one of this edge alone. Another edge understands the id of the last event that a client received: the
client resumes after it there. An edge that does not have the event yet waits a little for it, then refuses, and the
client goes back to where its position still holds. Relays are never moved, since others depend on them.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from math import ceil
from typing import Any, Final
from urllib.parse import urlencode

from aiohttp import web

from triplewire.config.metrics import Metrics
from triplewire.http.auth import TOKEN_PARAMETER
from triplewire.http.delivery.channels import Channel, Listener
from triplewire.http.delivery.connections import wants_websocket
from triplewire.http.delivery.events import EventSource, LatestEventIds
from triplewire.http.delivery.options import MOVED, RELAY, choose_format
from triplewire.http.delivery.replay import resume_parameter
from triplewire.http.delivery.topics import LiveTopic
from triplewire.http.formats.messages import ClosingMessage, closing_message, move_message
from triplewire.http.formats.sse import NDJSON, SSE, SSE_BY_EVENT
from triplewire.http.peers.repeaters import Repeaters
from triplewire.http.ports import ThreadPool
from triplewire.http.stream_filters.parameters import StreamView
from triplewire.model import parse_position
from triplewire.model.errors import NotFound
from triplewire.storage.log.ports import EdgeLog

BALANCE_MARGIN: Final = 0.2
"""Surplus of listeners over the mean of the edges on its port that an edge may have, as a share of the mean."""

BALANCE_LEAST: Final = 100
"""Least surplus for which listeners are sent away: fewer are no load."""

BALANCE_SECONDS: Final = 10.0
"""How long the surplus must have lasted. Clients that reconnect after a restart need some seconds."""

BALANCE_SHARE: Final = 0.05
"""Share of its listeners that an edge sends away in a second at most: they come to the others together."""

OVERLOAD_LISTENERS: Final = 0.8
"""Share of the greatest number of listeners from which on new clients are redirected, and some listeners are moved."""

OVERLOAD_WORK: Final = 0.85
"""Load of the event loop from which on the same is done; the rest is for peaks."""

OVERLOAD_SECONDS: Final = 5.0
"""How long that load must have lasted: a peak is no reason to send clients away."""

MOVE_SHARE: Final = 0.05
"""Share of the listeners of a stream that are moved at once: they come to another edge together."""

MOVE_SPREAD_MILLISECONDS: Final = 1_000
"""Time over which they arrive there, each at a random moment."""

ARRIVAL_SECONDS: Final = 5.0
"""How long an edge waits for the event after which a moved client resumes; relays lag by milliseconds."""

ARRIVAL_LOOKS: Final = 10
"""How often it looks for the event meanwhile."""


Share = Callable[[], float]
"""Returns a reading from 0 to 1."""


class OverloadDetector:
    """Detects that an edge is near its limits. Readings are given, so that a test needs no load."""

    def __init__(self, listeners: Share, work: Share, ticks: Callable[[], float]) -> None:
        """`listeners` reads the share of the greatest number of listeners, `work` the load of the event loop."""
        self._listeners = listeners
        self._work = work
        self._busy = _Debounce(OVERLOAD_SECONDS, ticks)

    @property
    def load(self) -> float:
        """The share of the scarcest resource that is used."""
        return max(self._listeners(), self._work())

    def is_overloaded(self) -> bool:
        """Return whether there are too many listeners, or the loop was too busy at every call for a while. Must be
        called again and again."""
        busy = self._busy.lasts(self._work() >= OVERLOAD_WORK)
        return busy or self._listeners() >= OVERLOAD_LISTENERS


class _Debounce:
    """Returns whether a condition has held for some time, at every call."""

    def __init__(self, seconds: float, ticks: Callable[[], float]) -> None:
        self._seconds = seconds
        self._ticks = ticks
        self._since: float | None = None

    def lasts(self, holds: bool) -> bool:
        now = self._ticks()
        if not holds:
            self._since = None
        elif self._since is None:
            self._since = now
        return self._since is not None and now - self._since >= self._seconds


LINK = web.RequestKey("link", str)
"""The Link header of the response."""
STAY = "stay"
"""Parameter of a client that was at another edge already, and stays here."""


@dataclass(frozen=True)
class Redirects:
    """Redirects new clients to repeaters, and receives those of other edges."""

    repeaters: Repeaters
    overload: OverloadDetector
    latest: LatestEventIds
    log: EdgeLog
    threads: ThreadPool
    metrics: Metrics
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    _awaited: dict[tuple[str, str], asyncio.Task[int | None]] = field(default_factory=dict)

    async def redirect(self, request: web.Request, stream: str) -> None:
        """Raises a redirect to a repeater if the edge is overloaded and the client can go there without loss. Otherwise
        the response will name a repeater, if there is one. Raises NotAcceptable or BadRequest."""
        if RELAY in request.headers or STAY in request.query:
            return
        redirects = self.overload.is_overloaded() and _can_follow(request)
        address = self.repeaters.assign(stream) if redirects else self.repeaters.find(stream)
        if address is None:
            return
        request[LINK] = f'<{address}>; rel="alternate"'
        if redirects and (location := await self._location(request, stream, address)):
            self.metrics.referred.labels("redirect").inc()
            raise web.HTTPTemporaryRedirect(location, headers={"Link": request[LINK], "Cache-Control": "no-store"})

    async def _location(self, request: web.Request, stream: str, address: str) -> str | None:
        """Return the address at the repeater with the same parameters; None for a position that it would not know."""
        asked = resume_parameter(request)
        if asked is None or asked == "now":
            return make_location(address, _other_parameters(request), self.latest.get(stream))
        event = asked if ":" in asked else await self.threads.run(self._event_at, stream, asked)
        return None if event is None else make_location(address, _other_parameters(request), event)

    def _event_at(self, stream: str, asked: str) -> str | None:
        """Return the id of the event at a position, if it is one of the stream."""
        rows = self.log.entries([parse_position(asked)]).to_pylist()
        return next((str(row["event"]) for row in rows if row["stream"] == stream), None)

    async def find_arrival(self, request: web.Request, stream: str) -> int | None:
        """Return the position here of the event after which a client resumes; None for one that gives another point.
        A client that was moved waits for the event. Raises NotFound if it does not come."""
        event = resume_parameter(request)
        if event is None or ":" not in event:
            return None
        position = await self.threads.run(self.log.find, event, stream)
        if position is not None or MOVED not in request.query:
            return position
        # Many clients are moved after the same event: one task looks for all.
        waiting = self._awaited.get((stream, event))
        if waiting is None:
            waiting = self._awaited[stream, event] = asyncio.create_task(self._await(stream, event))
            waiting.add_done_callback(lambda _: self._awaited.pop((stream, event), None))
        position = await asyncio.shield(waiting)
        if position is None:
            raise NotFound(f"the event {event} is not here, or not yet; continue at the edge that you came from")
        return position

    async def _await(self, stream: str, event: str) -> int | None:
        for _ in range(ARRIVAL_LOOKS):
            await self.sleep(ARRIVAL_SECONDS / ARRIVAL_LOOKS)
            position = await self.threads.run(self.log.find, event, stream)
            if position is not None:
                return position
        return None


def make_location(address: str, parameters: list[tuple[str, str]], event: str | None) -> str:
    """Return the address of a stream at another edge, for a client that has everything up to an event."""
    after = [] if event is None else [("after", event)]
    return f"{address}?{urlencode([*parameters, *after, (MOVED, '1')])}"


def _can_follow(request: web.Request) -> bool:
    """Return whether the client resumes by ids of events, which server-sent events have at the other edge. A client
    with another format might take a position to the wrong edge."""
    accepted = choose_format(request.headers.get("Accept"), request.query.get("format"))
    return accepted is SSE and request.query.get("mode", "stream") == "stream" and not wants_websocket(request)


def _other_parameters(request: web.Request) -> list[tuple[str, str]]:
    """Return the other parameters, without a token: that is for this edge only."""
    return [(name, value) for name, value in request.query.items() if name not in ("after", MOVED, TOKEN_PARAMETER)]


def add_link_header(app: web.Application) -> None:
    """Add the repeater of a stream to responses as a Link header."""

    async def add_link(request: web.Request, response: web.StreamResponse) -> None:
        if (link := request.get(LINK)) is not None:
            response.headers.add("Link", link)

    app.on_response_prepare.append(add_link)


_MOVABLE_FORMATS = (SSE, SSE_BY_EVENT, NDJSON)
"""Formats whose clients see notices about the connection. A WebSocket of a browser follows no redirect."""


class Migration:
    """Moves listeners of an overloaded edge to repeaters."""

    def __init__(
        self,
        events: EventSource,
        repeaters: Repeaters,
        overload: OverloadDetector,
        metrics: Metrics,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._moved = metrics.referred.labels("move")
        self._events = events
        self._repeaters = repeaters
        self._overload = overload
        self._chance = chance

    def step(self) -> int:
        """Move a share of the listeners if the edge is overloaded; return how many."""
        self._events.latest.enable(bool(self._repeaters.all()))
        if not self._overload.is_overloaded():
            return 0
        topic = self._events.topic
        return sum(self._move_some(view, channel) for view in tuple(topic) for channel in topic.channels(view))

    def _move_some(self, view: StreamView, channel: Channel) -> int:
        """Move some listeners of a channel. Relays stay, since others depend on them."""
        event, format = self._events.latest.get(view.stream), channel.options.format
        if channel.options.priority or format not in _MOVABLE_FORMATS or event is None:
            return 0
        channel.flush()
        listeners, moved = list(channel), 0
        for listener in listeners[: ceil(MOVE_SHARE * len(listeners))]:
            if (address := self._repeaters.assign(view.stream)) is None:
                break
            location = make_location(address, [("format", format.name)], event)
            _send_away(listener, self._events.topic.position, move_message(location, _spread(self._chance)))
            moved += 1
        self._moved.inc(moved)
        return moved


def _spread(chance: Callable[[], float]) -> int:
    """Return a random delay in milliseconds: all clients at once would be a load of its own."""
    return int(MOVE_SPREAD_MILLISECONDS * chance())


def _send_away(listener: Listener, position: int, last: ClosingMessage) -> None:
    """Close the connection of a listener that has everything up to a position."""
    listener.cursor = max(listener.cursor, position)
    listener.finish(last)


_STALE_STEPS = 3
"""Steps for which the figures of others may be old; a number of listeners that has just grown is no reason."""


class ConnectionBalancer:
    """Spreads listeners over the edges that share a port. The system spreads new connections evenly, but those of
    listeners stay, so that an edge that was just started has few: one with many more sends some away, which reconnect
    to any of them."""

    def __init__(
        self,
        topics: Sequence[LiveTopic[Any]],
        others: Callable[[], Sequence[int]],
        ticks: Callable[[], float],
        chance: Callable[[], float] = random.random,
    ) -> None:
        """`others` returns the number of listeners of each of the other edges on the same port."""
        self._topics = topics
        self._others = others
        self._chance = chance
        self._own: deque[int] = deque(maxlen=_STALE_STEPS)
        self._surplus = _Debounce(BALANCE_SECONDS, ticks)

    def step(self) -> int:
        """Send some listeners away if there have been too many for a while; return how many."""
        here = sum(map(len, self._topics))
        self._own.append(here)
        surplus = count_surplus(min(self._own), self._others())
        if not self._surplus.lasts(surplus > 0):
            return 0
        chosen = list(islice(self._listeners(), min(surplus, ceil(BALANCE_SHARE * here))))
        for channel, listener in chosen:
            channel.flush()
            _send_away(listener, channel.position, closing_message("this edge stops", _spread(self._chance)))
        return len(chosen)

    def _listeners(self) -> Iterator[tuple[Channel, Listener]]:
        """Yield the listeners that may be sent away. Relays stay, since others depend on them."""
        for topic in self._topics:
            for key in tuple(topic):
                for channel in topic.channels(key):
                    if not channel.options.priority:
                        yield from ((channel, listener) for listener in channel)


def count_surplus(own: int, others: Sequence[int]) -> int:
    """Return how many listeners an edge has above its share; 0 for a small surplus, or without other edges."""
    mean = (own + sum(others)) / (1 + len(others))
    extra = own - mean
    return ceil(extra) if extra > max(BALANCE_LEAST, BALANCE_MARGIN * mean) else 0
