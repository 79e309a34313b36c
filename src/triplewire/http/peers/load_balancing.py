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
from triplewire.http.delivery.requests import resume_parameter
from triplewire.http.delivery.topics import LiveTopic
from triplewire.http.formats.messages import closing_notice, move_notice
from triplewire.http.formats.sse import NDJSON, SSE, SSE_BY_EVENT
from triplewire.http.peers.repeaters import Repeaters
from triplewire.http.ports import EdgeLog, ThreadPool
from triplewire.http.stream_filters.parameters import StreamView
from triplewire.model import parse_position
from triplewire.model.errors import NotFound

BALANCE_MARGIN: Final = 0.2
"""How much more listeners than the mean of the edges on its port an edge may have, as a share of the mean."""

BALANCE_LEAST: Final = 100
"""And how many more at least before any of them is sent away: fewer are no load."""

BALANCE_SECONDS: Final = 10.0
"""How long that must have been so. Listeners that come back after a restart need some seconds."""

BALANCE_SHARE: Final = 0.05
"""Of its listeners, how many it sends away in a second at most: they come to the others together."""

PRESSURE_SEATS: Final = 0.8
"""Share of the seats from which on newcomers are sent to repeaters, and some listeners are moved."""

PRESSURE_WORK: Final = 0.85
"""Share of its time in which the event loop works, from which on the same is done; the rest is for peaks."""

PRESSURE_SECONDS: Final = 5.0
"""How long it must have been so: a peak is no reason to send anybody away."""

MOVE_SHARE: Final = 0.05
"""Of the listeners of a stream that are moved at once: they come to another edge together."""

MOVE_SPREAD_MILLISECONDS: Final = 1_000
"""Over which they are to come there, each at a time of its own."""

ARRIVAL_SECONDS: Final = 5.0
"""How long an edge waits for the event after which a moved listener goes on; relays are behind by milliseconds."""

ARRIVAL_LOOKS: Final = 10
"""How often it looks meanwhile."""


# Pressures: whether an edge is near its limits, so that others should take some of those who listen.

Share = Callable[[], float]
"""A reading from 0 to 1."""


class OverloadDetector:
    """Of seats and of the event loop. Readings are given, so that a test strains an edge without load."""

    def __init__(self, seats: Share, work: Share, ticks: Callable[[], float]) -> None:
        """`seats` is the share that is taken, `work` that of the loop's time in which it worked, of late."""
        self._seats = seats
        self._work = work
        self._ticks = ticks
        self._since: float | None = None

    @property
    def load(self) -> float:
        """How busy it is: the share of what is scarcest."""
        return max(self._seats(), self._work())

    def look(self) -> bool:
        """Whether it is near its limits: too many seats are taken, or it has been too busy at every look for a while.
        To be called again and again."""
        now = self._ticks()
        if self._work() < PRESSURE_WORK:
            self._since = None
        elif self._since is None:
            self._since = now
        busy = self._since is not None and now - self._since >= PRESSURE_SECONDS
        return busy or self._seats() >= PRESSURE_SEATS


# A position is one of this edge alone. What another edge understands is the id of the last event that a listener has
# had: it begins after that one, wherever it lies there. An edge that does not have the event yet waits a little for
# it; if it does not come, the listener is refused, and goes back to where it was, where its position still holds.

LINK = web.RequestKey("link", str)
"""What the answer to a request names."""
STAY = "stay"
"""A parameter: the listener was elsewhere already, and wants to stay."""


class Redirects:
    """Says where a listener goes."""

    def __init__(
        self,
        repeaters: Repeaters,
        pressure: OverloadDetector,
        latest: LatestEventIds,
        log: EdgeLog,
        workers: ThreadPool,
        metrics: Metrics,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._repeaters = repeaters
        self._latest = latest
        self._pressure = pressure
        self._log = log
        self._workers = workers
        self._metrics = metrics
        self.sleep = sleep
        self._awaited: dict[tuple[str, str], asyncio.Task[int | None]] = {}

    async def refer(self, request: web.Request, stream: str) -> None:
        """Where the edge is near its limits, raises a redirection to a repeater for whoever can go there without loss.
        Otherwise the answer will name one that there is. Raises NotAcceptable or BadRequest."""
        if RELAY in request.headers or STAY in request.query:
            return
        strained = self._pressure.look() and _can_follow(request)
        address = self._repeaters.of(stream) if strained else self._repeaters.any(stream)
        if address is None:
            return
        request[LINK] = f'<{address}>; rel="alternate"'
        if strained and (location := await self._location(request, stream, address)):
            self._metrics.referred.labels("redirect").inc()
            raise web.HTTPTemporaryRedirect(location, headers={"Link": request[LINK], "Cache-Control": "no-store"})

    async def _location(self, request: web.Request, stream: str, address: str) -> str | None:
        """The address with what was asked for, as it is said there; None for what cannot be said there."""
        asked = resume_parameter(request)
        if asked is None or asked == "now":
            return make_location(address, _other_parameters(request), self._latest.of(stream))
        event = asked if ":" in asked else await self._workers.run(self._event_at, stream, asked)
        return None if event is None else make_location(address, _other_parameters(request), event)

    def _event_at(self, stream: str, asked: str) -> str | None:
        """The id of the event at a position, if it is one of the stream."""
        rows = self._log.entries([parse_position(asked)]).to_pylist()
        return next((str(row["event"]) for row in rows if row["stream"] == stream), None)

    async def arrived(self, request: web.Request, stream: str) -> int | None:
        """The position here of the event after which a listener wants to go on; None for one who says another place.
        One who was moved waits until the event is here. Raises NotFound if it does not come."""
        event = resume_parameter(request)
        if event is None or ":" not in event:
            return None
        found = await self._workers.run(self._log.find, event, stream)
        if found is not None or MOVED not in request.query:
            return found
        # Many are moved after the same event: one of them looks for all.
        waiting = self._awaited.get((stream, event))
        if waiting is None:
            waiting = self._awaited[stream, event] = asyncio.create_task(self._await(stream, event))
            waiting.add_done_callback(lambda _: self._awaited.pop((stream, event), None))
        found = await asyncio.shield(waiting)
        if found is None:
            raise NotFound(f"{event} is not here, or not yet; go on where you were")
        return found

    async def _await(self, stream: str, event: str) -> int | None:
        for _ in range(ARRIVAL_LOOKS):
            await self.sleep(ARRIVAL_SECONDS / ARRIVAL_LOOKS)
            found = await self._workers.run(self._log.find, event, stream)
            if found is not None:
                return found
        return None


def make_location(address: str, parameters: list[tuple[str, str]], event: str | None) -> str:
    """The address of a stream at another edge, for a listener that has had everything up to an event."""
    after = [] if event is None else [("after", event)]
    return f"{address}?{urlencode([*parameters, *after, (MOVED, '1')])}"


def _can_follow(request: web.Request) -> bool:
    """Whether the client comes to its place again by the ids of events: event streams tell them there. Whoever is told
    positions in another format might take one to the wrong edge."""
    accepted = choose_format(request.headers.get("Accept"), request.query.get("format"))
    return accepted is SSE and request.query.get("mode", "stream") == "stream" and not wants_websocket(request)


def _other_parameters(request: web.Request) -> list[tuple[str, str]]:
    """What else was asked for, but a token: that is for this edge, and for no other to see."""
    return [(name, value) for name, value in request.query.items() if name not in ("after", MOVED, TOKEN_PARAMETER)]


def add_link_header(app: web.Application) -> None:
    """Let the answers of an application name the repeater that was found for them."""

    async def name(request: web.Request, response: web.StreamResponse) -> None:
        if (found := request.get(LINK)) is not None:
            response.headers.add("Link", found)

    app.on_response_prepare.append(name)


# Moves: an edge that is near its limits tells some of those who listen to go on at a repeater.

_MOVABLE_FORMATS = (SSE, SSE_BY_EVENT, NDJSON)
"""Formats whose readers see a message about the connection. A WebSocket of a browser follows nobody."""


class Migration:
    """Takes a step every second or so."""

    def __init__(
        self,
        events: EventSource,
        repeaters: Repeaters,
        pressure: OverloadDetector,
        metrics: Metrics,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._moved = metrics.referred.labels("move")
        self._events = events
        self._repeaters = repeaters
        self._pressure = pressure
        self.chance = chance

    def step(self) -> int:
        """Look how things stand, and move a share of the listeners if they are near the limits; how many."""
        self._events.latest.want(bool(self._repeaters.all()))
        if not self._pressure.look():
            return 0
        room = self._events.room
        return sum(self._channel(tap, channel) for tap in tuple(room) for channel in room.channels(tap))

    def _channel(self, tap: StreamView, channel: Channel) -> int:
        """Some of a channel. Relays stay, since others depend on them, and who listens through a sieve, which may
        remember what it has seen."""
        event = self._events.latest.of(tap.stream)
        if (
            channel.manner.priority
            or channel.manner.format not in _MOVABLE_FORMATS
            or tap.sieve is not None
            or event is None
        ):
            return 0
        channel.flush()
        listeners = list(channel)
        told = 0
        for listener in listeners[: ceil(MOVE_SHARE * len(listeners))]:
            if (address := self._repeaters.of(tap.stream)) is None:
                break
            self._tell(listener, make_location(address, [("format", listener.manner.format.name)], event))
            told += 1
        return told

    def _tell(self, listener: Listener, location: str) -> None:
        # All at once would be a load of its own, there.
        retry = int(MOVE_SPREAD_MILLISECONDS * self.chance())
        listener.cursor = max(listener.cursor, self._events.room.place)
        self._moved.inc()
        listener.finish(move_notice(listener.manner.format, listener.cursor, location, retry))


# Balances: edges that share a port share those who listen, too.
#
# The system spreads new connections evenly, but those of listeners stay: an edge that was just started has few of
# them. One that has many more than the others sends some away, who come back, to any of them.

_AGE = 3
"""Looks for which what others told may be old; a number of one's own that has just grown is no reason."""


class ConnectionBalancer:
    """Takes a step every second or so."""

    def __init__(
        self,
        rooms: Sequence[LiveTopic[Any]],
        others: Callable[[], Sequence[int]],
        ticks: Callable[[], float],
        chance: Callable[[], float] = random.random,
    ) -> None:
        """`others` tells how many listen to each of the other edges on the same port."""
        self._rooms = rooms
        self._others = others
        self._ticks = ticks
        self._chance = chance
        self._own: deque[int] = deque(maxlen=_AGE)
        self._since: float | None = None

    def step(self) -> int:
        """Look how things stand, and send some away if there have been too many for a while; how many."""
        here = sum(map(len, self._rooms))
        self._own.append(here)
        extra = count_surplus(min(self._own), self._others())
        now = self._ticks()
        if not extra:
            self._since = None
        elif self._since is None:
            self._since = now
        if self._since is None or now - self._since < BALANCE_SECONDS:
            return 0
        return self._send_away(min(extra, ceil(BALANCE_SHARE * here)))

    def _send_away(self, count: int) -> int:
        chosen = list(islice(self._listeners(), count))
        for channel, listener in chosen:
            channel.flush()
            listener.cursor = max(listener.cursor, channel.place)
            # All at once would be a load of its own.
            retry = int(MOVE_SPREAD_MILLISECONDS * self._chance())
            listener.finish(closing_notice(listener.manner.format, listener.cursor, retry))
        return len(chosen)

    def _listeners(self) -> Iterator[tuple[Channel, Listener]]:
        """Those who may be sent away. Relays stay, since others depend on them."""
        for room in self._rooms:
            for key in tuple(room):
                for channel in room.channels(key):
                    if not channel.manner.priority:
                        yield from ((channel, listener) for listener in channel)


def count_surplus(own: int, others: Sequence[int]) -> int:
    """How many more than its share an edge has; 0 where that is not worth the trouble, or there are no others."""
    mean = (own + sum(others)) / (1 + len(others))
    extra = own - mean
    return ceil(extra) if extra > max(BALANCE_LEAST, BALANCE_MARGIN * mean) else 0
