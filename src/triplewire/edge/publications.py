"""`POST /streams/{stream}`: publish."""

from __future__ import annotations

import time
from collections.abc import Callable

import orjson
from aiohttp import web

from triplewire.clock import Clock
from triplewire.codec import decode
from triplewire.config import limits
from triplewire.edge.doors import Arrival, arrival
from triplewire.edge.ports import Commits
from triplewire.edge.workers import Workers
from triplewire.errors import BodyTooLarge
from triplewire.log.ports import Publication
from triplewire.model import Event, token
from triplewire.telemetry.metrics import Metrics


class Publications:
    """Takes bodies in, and answers when their events are durable."""

    def __init__(
        self, commits: Commits, workers: Workers, metrics: Metrics, clock: Clock, published: Callable[[], None]
    ) -> None:
        """`published` is called after each commit, so that those who listen here need not wait for the next look."""
        self._commits = commits
        self._workers = workers
        self._metrics = metrics
        self._clock = clock
        self._published = published

    def routes(self) -> list[web.RouteDef]:
        return [web.post("/streams/{stream}", self.publish)]

    async def publish(self, request: web.Request) -> web.Response:
        """201 with the positions of the events. Nothing of a body is stored when any of it is refused."""
        said = arrival(request)
        body = await _body(request)
        began = self._clock.ticks()
        positions = await self._commits.append(Publication(said.stream, await self._events(body, said)))
        self._published()
        self._metrics.publish_seconds.observe(self._clock.ticks() - began)
        self._metrics.events.inc(len(positions))
        self._metrics.bytes.inc(len(body))
        return web.Response(status=201, body=_receipt(said.stream, positions), content_type="application/json")

    async def _events(self, body: bytes, said: Arrival) -> list[Event]:
        if len(body) <= limits.INLINE_BYTES:
            return self._decoded(body, said)
        return await self._workers.run(self._decoded, body, said)

    def _decoded(self, body: bytes, said: Arrival) -> list[Event]:
        began = time.thread_time()
        events = decode(body, said.syntax, said.headers, event_id=said.event_id)
        self._metrics.cpu.labels("door").inc(time.thread_time() - began)
        return events


async def _body(request: web.Request) -> bytes:
    try:
        return await request.read()
    except web.HTTPRequestEntityTooLarge:
        raise BodyTooLarge("the body", limits.BODY_BYTES) from None


def _receipt(stream: str, positions: range) -> bytes:
    first, last = token(positions[0]), token(positions[-1])
    return orjson.dumps({"stream": stream, "events": len(positions), "first": first, "last": last, "position": last})
