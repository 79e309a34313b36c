"""Referrals: listeners who are led to a repeater, at the door or later, and those who come from another edge.

A position is one of this edge alone. What another edge understands is the id of the last event that a listener has
had:
it begins after that one, wherever it lies there. An edge that does not have the event yet waits a little for it; if
it
does not come, the listener is refused, and goes back to where it was, where its position still holds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from urllib.parse import urlencode

from aiohttp import web

from triplewire.config import limits
from triplewire.config.metrics import Metrics
from triplewire.edge.company.latest import Latest
from triplewire.edge.company.pressures import Pressure
from triplewire.edge.company.repeaters import Repeaters
from triplewire.edge.door.credentials import PARAMETER
from triplewire.edge.formats import SSE, format_of
from triplewire.edge.intake.doors import said
from triplewire.edge.ports import Entries
from triplewire.edge.telling.manners import MOVED, RELAY
from triplewire.edge.telling.sockets import upgrades
from triplewire.edge.workers import Workers
from triplewire.model import parse_position
from triplewire.model.errors import NotFound

LINK = web.RequestKey("link", str)
"""What the answer to a request names."""
STAY = "stay"
"""A parameter: the listener was elsewhere already, and wants to stay."""


class Referrals:
    """Says where a listener goes."""

    def __init__(
        self,
        repeaters: Repeaters,
        pressure: Pressure,
        latest: Latest,
        log: Entries,
        workers: Workers,
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
        strained = self._pressure.look() and _follows(request)
        address = self._repeaters.of(stream) if strained else self._repeaters.any(stream)
        if address is None:
            return
        request[LINK] = f'<{address}>; rel="alternate"'
        if strained and (location := await self._location(request, stream, address)):
            self._metrics.referred.labels("redirect").inc()
            raise web.HTTPTemporaryRedirect(location, headers={"Link": request[LINK], "Cache-Control": "no-store"})

    async def _location(self, request: web.Request, stream: str, address: str) -> str | None:
        """The address with what was asked for, as it is said there; None for what cannot be said there."""
        asked = said(request)
        if asked is None or asked == "now":
            return located(address, _others(request), self._latest.of(stream))
        event = asked if ":" in asked else await self._workers.run(self._event_at, stream, asked)
        return None if event is None else located(address, _others(request), event)

    def _event_at(self, stream: str, asked: str) -> str | None:
        """The id of the event at a position, if it is one of the stream."""
        rows = self._log.entries([parse_position(asked)]).to_pylist()
        return next((str(row["event"]) for row in rows if row["stream"] == stream), None)

    async def arrived(self, request: web.Request, stream: str) -> int | None:
        """The position here of the event after which a listener wants to go on; None for one who says another place.
        One who was moved waits until the event is here. Raises NotFound if it does not come."""
        event = said(request)
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
        for _ in range(limits.ARRIVAL_LOOKS):
            await self.sleep(limits.ARRIVAL_SECONDS / limits.ARRIVAL_LOOKS)
            found = await self._workers.run(self._log.find, event, stream)
            if found is not None:
                return found
        return None


def located(address: str, parameters: list[tuple[str, str]], event: str | None) -> str:
    """The address of a stream at another edge, for a listener that has had everything up to an event."""
    after = [] if event is None else [("after", event)]
    return f"{address}?{urlencode([*parameters, *after, (MOVED, '1')])}"


def _follows(request: web.Request) -> bool:
    """Whether the client comes to its place again by the ids of events: event streams tell them there. Whoever is told
    positions in another format might take one to the wrong edge."""
    accepted = format_of(request.headers.get("Accept"), request.query.get("format"))
    return accepted is SSE and request.query.get("mode", "stream") == "stream" and not upgrades(request)


def _others(request: web.Request) -> list[tuple[str, str]]:
    """What else was asked for, but a token: that is for this edge, and for no other to see."""
    return [(name, value) for name, value in request.query.items() if name not in ("after", MOVED, PARAMETER)]


def link(app: web.Application) -> None:
    """Let the answers of an application name the repeater that was found for them."""

    async def name(request: web.Request, response: web.StreamResponse) -> None:
        if (found := request.get(LINK)) is not None:
            response.headers.add("Link", found)

    app.on_response_prepare.append(name)
