"""`POST /streams/{stream}` and `POST /events`: publish."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

import orjson
from aiohttp import web

from triplewire.clock import Clock
from triplewire.codec import decode, decode_addressed
from triplewire.codec.headers import Said
from triplewire.config import limits
from triplewire.edge.doors import arrival, delivery
from triplewire.edge.ports import Commits
from triplewire.edge.workers import Workers
from triplewire.errors import BadRequest, BodyTooLarge
from triplewire.log.ports import Publication
from triplewire.model import Event, token
from triplewire.registry.streams import stream_name
from triplewire.telemetry.metrics import Metrics

Found = TypeVar("Found")


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
        return [web.post("/streams/{stream}", self.publish), web.post("/events", self.publish_addressed)]

    async def publish(self, request: web.Request) -> web.Response:
        """201 with the positions of the events. Nothing of a body is stored when any of it is refused."""
        said = arrival(request)
        body = await _body(request)
        began = self._clock.ticks()
        events = await self._run(partial(decode, body, said.syntax, said.headers, event_id=said.event_id), body)
        positions = await self._stored(Publication(said.stream, events, said.key), body, began)
        return _created({"stream": said.stream}, positions)

    async def publish_addressed(self, request: web.Request) -> web.Response:
        """The same for events that say their streams and headers themselves, by triples outside of their graphs."""
        said = delivery(request)
        body = await _body(request)
        began = self._clock.ticks()
        found = await self._run(partial(decode_addressed, body, said.syntax), body)
        streams = [_stream(each, event) for each, event in found]
        positions = await self._stored(Publication(streams, [event for _, event in found], said.key), body, began)
        return _created({}, positions)

    async def _stored(self, publication: Publication, body: bytes, began: float) -> Sequence[int]:
        positions = await self._commits.append(publication)
        self._published()
        self._metrics.publish_seconds.observe(self._clock.ticks() - began)
        self._metrics.events.inc(len(positions))
        self._metrics.bytes.inc(len(body))
        return positions

    async def _run(self, decoding: Callable[[], list[Found]], body: bytes) -> list[Found]:
        if len(body) <= limits.INLINE_BYTES:
            return self._decoded(decoding)
        return await self._workers.run(self._decoded, decoding)

    def _decoded(self, decoding: Callable[[], list[Found]]) -> list[Found]:
        began = time.thread_time()
        found = decoding()
        self._metrics.cpu.labels("door").inc(time.thread_time() - began)
        return found


async def _body(request: web.Request) -> bytes:
    try:
        return await request.read()
    except web.HTTPRequestEntityTooLarge:
        raise BodyTooLarge("the body", limits.BODY_BYTES) from None


def _stream(said: Said, event: Event) -> str:
    if said.stream is None:
        raise BadRequest(f"the stream of {event.id} is not said; say it with tw:stream, outside of its graph")
    return stream_name(said.stream)


def _created(told: dict[str, str], positions: Sequence[int]) -> web.Response:
    first, last = token(positions[0]), token(positions[-1])
    receipt = {**told, "events": len(positions), "first": first, "last": last, "position": last}
    return web.Response(status=201, body=orjson.dumps(receipt), content_type="application/json")
