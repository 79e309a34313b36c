"""Health, metrics and traces of an edge: `/health`, `/metrics`, the flow out of each stream, and spans for requests,
commits and deliveries.

`/health` answers 200 while what is published gets matched, be it late, and 503 otherwise; publishing works in both
cases. Spans exist only where a collector is configured. A request's span is the parent of its events, unless an event
carries a `traceparent` of its own.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import pstdev
from typing import Any, Final, Protocol, TypeVar

import orjson
from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from triplewire.config.metrics import (
    CONTENT_TYPE,
    Metrics,
    StreamTraffic,
    merge_expositions,
    select_busiest,
    sum_by_stream,
)
from triplewire.config.status import Heartbeat
from triplewire.config.tracing import HEADER, TraceParent, Tracer, current_span, now_ns, parse_parents
from triplewire.http.auth import caller
from triplewire.http.delivery.connections import ClientConnection
from triplewire.http.delivery.topics import LiveTopic
from triplewire.http.openapi import operation_of, resource_operations, serves
from triplewire.http.peers.status import EdgeStatusReporter
from triplewire.http.ports import CommitQueue, EdgeLog, ThreadPool
from triplewire.model import Event, LimitReached, format_position
from triplewire.model.clock import Clock
from triplewire.security import Verb
from triplewire.storage.log.ports import Publication
from triplewire.storage.outbox import Outbox, OutboxLane

TRACED_EVENTS: Final = 128
"""Events of one batch, or of one pass of a feed, of which spans are told: a collector is told of examples. A batch of
20,000 traced events would be 20,000 spans at once, of which the queue of the exporter holds 2,048."""

LAGGING_SECONDS: Final = 5.0
"""An unmatched event that is older than this makes health say `lagging`."""

REMEMBERED_STREAMS: Final = 1_000
"""Streams that nobody listens to any more of which an edge remembers what flowed out: some 300 bytes each."""

METRICS_STREAMS: Final = 50
"""Streams that metrics tell apart, those with the most clients; the others are told together. Each is seven samples."""


@dataclass(frozen=True)
class LaneLag:
    """How far a lane is: up to where it has matched, how many positions wait, and the age of the oldest event of them,
    in seconds."""

    matched: int
    lag: int
    age: float


@dataclass(frozen=True)
class HealthReport:
    """What was read at one moment. `age` is that of the oldest event not yet matched, in seconds."""

    head: int
    matched: int
    stored: int | None
    waiting: bool
    age: float
    pipeline: str
    limits: Mapping[str, int] = field(default_factory=dict)
    """How often subscriptions reached each limit."""
    lanes: Mapping[str, LaneLag] = field(default_factory=dict)
    """Those beside the main one."""
    lake: Mapping[str, Any] = field(default_factory=dict)
    """What the housekeeper last told."""
    queries: Mapping[str, float] = field(default_factory=dict)
    """What was last told of continuous queries."""

    @property
    def lag(self) -> int:
        return self.head - self.matched if self.waiting else 0

    @property
    def status(self) -> str:
        if self.pipeline == "starting":
            return "starting"
        if self.pipeline != "ready":
            return "down"
        return "lagging" if self.age > LAGGING_SECONDS else "ok"


@dataclass(frozen=True)
class HealthSources:
    """Where health is read from. `stored` gives the position up to which the lake holds everything."""

    log: EdgeLog
    outbox: Outbox
    heartbeat: Callable[[], Heartbeat]
    stored: Callable[[], int] | None
    clock: Clock

    def read(self) -> HealthReport:
        matched, slow, head = self.outbox.head(), self.outbox.head(OutboxLane.SLOW), self.log.head()
        age = self._age(matched, head)
        stored = self.stored() if self.stored else None
        beat = self.heartbeat()
        ongoing = beat.detail.get("ongoing", {})
        lanes = {"slow": self._behind(slow, head)} if slow else {}
        lanes |= {"ongoing": self._behind(self.outbox.head(OutboxLane.CONTINUOUS), head)} if ongoing else {}
        lake = beat.detail.get("lake", {})
        reached = {of.value: int(beat.detail.get("limits", {}).get(of, 0)) for of in LimitReached}
        pipeline, told = self._pipeline(beat), _summarize_queries(ongoing)
        return HealthReport(head, matched, stored, age is not None, age or 0.0, pipeline, reached, lanes, lake, told)

    def _behind(self, matched: int, head: int) -> LaneLag:
        age = self._age(matched, head)
        return LaneLag(matched, 0 if age is None else head - matched, age or 0.0)

    def _age(self, matched: int, head: int) -> float | None:
        """Of the oldest event not yet matched; None if there is none."""
        oldest = self.log.read(matched, head, 1)
        if not oldest.num_rows:
            return None
        received: int = oldest.column("received")[0].as_py()
        return max(0.0, (self.clock.now() - received) / 1_000_000)

    def _pipeline(self, beat: Heartbeat) -> str:
        lively = beat.state not in ("starting", "ready") or beat.alive(self.clock)
        return beat.state if lively else "stale"


class HealthEndpoint:
    """Answers those who ask how it goes."""

    def __init__(
        self,
        sources: HealthSources,
        workers: ThreadPool,
        metrics: Metrics,
        listeners: Callable[[], dict[str, int]],
        who: Callable[[], dict[str, Any]],
        standings: EdgeStatusReporter,
    ) -> None:
        self._sources = sources
        self._workers = workers
        self._metrics = metrics
        self._listeners = listeners
        self._who = who
        self._standings = standings

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/health", self.health), web.get("/metrics", self.metrics)]

    @serves(resource_operations.HEALTH)
    async def health(self, request: web.Request) -> web.Response:
        """200 while what is published gets matched, be it late; 503 otherwise. Publishing works in both cases. How much
        there is, and who listens, is not for everyone."""
        reading = await self._workers.run(self._sources.read)
        status = 200 if reading.status in ("ok", "lagging") else 503
        document = {**self._who(), **_document(reading)}
        if caller(request).may(Verb.ADMIN):
            document |= _admin_fields(reading, self._listeners())
        body = orjson.dumps(document)
        return web.Response(status=status, body=body, content_type="application/json")

    @serves(resource_operations.METRICS)
    async def metrics(self, request: web.Request) -> web.Response:
        reading = await self._workers.run(self._sources.read)
        self._metrics.head.set(reading.head)
        self._metrics.matched.set(reading.matched)
        self._metrics.lag.set(reading.lag)
        self._metrics.lag_seconds.set(reading.age)
        for name, behind in reading.lanes.items():
            self._metrics.lane_lag.labels(name).set(behind.lag)
            self._metrics.lane_lag_seconds.labels(name).set(behind.age)
        for of, count in reading.limits.items():
            self._metrics.limits.labels(of).set(count)
        for of, gauge in self._metrics.lake.items():
            gauge.set(reading.lake.get(of, 0))
        for of, gauge in self._metrics.queries.items():
            gauge.set(reading.queries.get(of, 0))
        return web.Response(body=await self._exposition(), headers={"Content-Type": CONTENT_TYPE})

    async def _exposition(self) -> bytes:
        """Of all edges over the directory, whichever was asked; of an edge that is alone in memory, its own."""
        name = self._standings.own().name
        own = self._metrics.exposition()
        if self._standings.place.folder is None:
            return own
        others = await self._workers.run(self._standings.others)
        return merge_expositions(name, own.decode(), {each.name: each.metrics for each in others})


def _summarize_queries(told: Mapping[str, Any]) -> dict[str, float]:
    """What the pipeline tells of continuous queries: how much there is, and how evenly the work for them is spread over
    buckets."""
    loads = told.get("loads") or [0]
    mean = sum(loads) / len(loads)
    figures = {name: told[name] for name in ("queries", "state_rows", "state_bytes", "late") if name in told}
    spread = {"skew": round(pstdev(loads) / mean, 3), "busy": sum(map(bool, loads)) / len(loads)} if mean else {}
    return {**figures, **spread}


def _document(reading: HealthReport) -> dict[str, Any]:
    return {
        "status": reading.status,
        "pipeline": reading.pipeline,
        "head": format_position(reading.head),
        "matched": format_position(reading.matched),
        "stored": None if reading.stored is None else format_position(reading.stored),
        "lag": reading.lag,
        "lag_seconds": round(reading.age, 3),
    }


def _admin_fields(reading: HealthReport, listeners: dict[str, int]) -> dict[str, Any]:
    return {
        "listeners": listeners,
        "lanes": {
            name: {"matched": format_position(each.matched), "lag": each.lag, "lag_seconds": round(each.age, 3)}
            for name, each in reading.lanes.items()
        },
        "queries": dict(reading.queries),
        "lake": dict(reading.lake),
    }


# Gauges: what flows out of the rooms of an edge, read off their channels now and then.

Key = TypeVar("Key", bound=Hashable)

_PAUSE_FACTOR = 100.0
"""How much longer than a reading took the next one is not before: it then takes a hundredth of the time at most."""


class MeasuredListener(Protocol):
    """What is read off a listener."""

    @property
    def wire(self) -> ClientConnection: ...


class MeasuredChannel(Protocol):
    """What is read off a channel. Its numbers grow for as long as it is there."""

    messages: int
    plain_bytes: int
    sent_bytes: int
    dropped: int
    wait: float

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Any]: ...


class FlowGauges:
    """Adds up what the channels of each stream have counted, those that are gone included."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, worked: Callable[[], float] = time.thread_time
    ) -> None:
        self._clock = clock
        self._worked = worked
        self._rooms: list[tuple[LiveTopic[Any], Callable[[Any], str]]] = []
        self._gone: OrderedDict[str, StreamTraffic] = OrderedDict()
        self._flows: list[StreamTraffic] = []
        self._not_before = 0.0

    def watch(self, room: LiveTopic[Key], name: Callable[[Key], str]) -> None:
        """Count what flows out of a room from now on. `name` tells of which stream a key is."""
        self._rooms.append((room, name))
        room.closed = lambda key, channel: self._retire(measure_channel(name(key), channel))

    def flows(self) -> list[StreamTraffic]:
        """By stream, of those that are listened to or were of late. To be asked on the loop."""
        if self._clock() >= self._not_before:
            began = self._worked()
            self._flows = sum_by_stream((*self._live(), *self._gone.values()))
            self._not_before = self._clock() + _PAUSE_FACTOR * (self._worked() - began)
        return self._flows

    def told(self) -> list[StreamTraffic]:
        """The busiest of them, as they were read last. To be asked in any thread."""
        return select_busiest(self._flows, METRICS_STREAMS)

    def _live(self) -> Iterator[StreamTraffic]:
        for room, name in self._rooms:
            for key in room:
                for channel in room.channels(key):
                    yield measure_channel(name(key), channel, channel)

    def _retire(self, flow: StreamTraffic) -> None:
        """Keep what a channel that is closed has counted, for as many streams as are remembered."""
        before = self._gone.pop(flow.stream, StreamTraffic(flow.stream))
        self._gone[flow.stream] = replace(before + flow, clients=0, waiting=0, window=0.0)
        while len(self._gone) > REMEMBERED_STREAMS:
            self._gone.popitem(last=False)


def measure_channel(stream: str, channel: MeasuredChannel, listeners: Iterable[MeasuredListener] = ()) -> StreamTraffic:
    """What a channel has counted, and what waits for the slowest of the listeners."""
    waiting = max((listener.wire.waiting() for listener in listeners), default=0)
    return StreamTraffic(
        stream,
        len(channel),
        channel.messages,
        channel.plain_bytes,
        channel.sent_bytes,
        channel.dropped,
        waiting,
        channel.wait,
    )


# Tracings: spans for what an edge does, where there is a collector to tell. Elsewhere nothing of this is there.
#
# ```
# request ─▶ span ─▶ events get its `traceparent`, unless they have one ─▶ "log commit" ─▶ … ─▶ "deliver"
# ```


@dataclass(frozen=True)
class TracedCommits:
    """Commits of which the traces of their events tell."""

    commits: CommitQueue
    traces: Tracer

    async def append(self, publication: Publication) -> Sequence[int]:
        (positions,) = await self.append_each([publication])
        return positions

    async def append_each(self, publications: Sequence[Publication]) -> list[Sequence[int]]:
        parent, began = current_span(), now_ns()
        marked = publications if parent is None else [_with_parent(each, parent) for each in publications]
        positions = await self.commits.append_each(marked)
        events = [event for each in marked for event in each.events]
        self.traces.tell("log commit", _parents(events), began, {"triplewire.events": len(events)})
        return positions


def _with_parent(publication: Publication, parent: TraceParent) -> Publication:
    return replace(publication, events=[_event_with_parent(event, parent) for event in publication.events])


def _event_with_parent(event: Event, parent: TraceParent) -> Event:
    """What a publisher says of one event goes before what it says of the request."""
    if HEADER in event.headers.extensions:
        return event
    extensions = {**event.headers.extensions, HEADER: str(parent)}
    return replace(event, headers=replace(event.headers, extensions=extensions))


def _parents(events: Sequence[Event]) -> list[TraceParent]:
    told = (TraceParent.parsed(event.headers.extensions.get(HEADER)) for event in events[:TRACED_EVENTS])
    return [each for each in dict.fromkeys(told) if each is not None and each.sampled]


def tracing_middleware(traces: Tracer) -> Middleware:
    """A span for each request, but for those whose answer has no end."""

    @web.middleware
    async def trace(request: web.Request, handler: Handler) -> web.StreamResponse:
        operation = operation_of(request.match_info.handler)
        if operation is None or operation.tells:
            return await handler(request)
        span = traces.begin(operation.id, request.headers.get(HEADER), _attributes(request))
        if span is None:
            return await handler(request)
        with span:
            return await handler(request)

    return trace


def _attributes(request: web.Request) -> dict[str, str]:
    """The pattern of the address, not the address: what stands in it may be nobody's business."""
    resource = request.match_info.route.resource
    told = {"http.request.method": request.method, "http.route": "" if resource is None else resource.canonical}
    stream = request.match_info.get("stream")
    return told if stream is None else {**told, "triplewire.stream": stream[:128]}


@dataclass(frozen=True)
class DeliverySpans:
    """Tells what feeds hand out."""

    traces: Tracer

    def told(self, extensions: Sequence[str | None], began: int, messages: int) -> None:
        """Events with these headers were handed to listeners, as so many messages."""
        found = parse_parents(extensions, TRACED_EVENTS)
        if found and messages:
            self.traces.tell("deliver", found, began, {"triplewire.messages": messages})
