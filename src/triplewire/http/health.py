"""Health, metrics and traces of an edge: `/health`, `/metrics`, the traffic of each stream, and spans for requests,
commits and deliveries.

`/health` answers 200 while events are matched, be it late, and 503 otherwise; publishing works in both cases. Spans
exist only where a collector is configured. A request's span is the parent of its events, unless an event carries a
`traceparent` of its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import pstdev
from typing import Any, Final, Protocol

import orjson
from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from triplewire.config.metrics import CONTENT_TYPE, Metrics, merge_expositions
from triplewire.config.status import Heartbeat
from triplewire.config.tracing import HEADER, TRACED_EVENTS, TraceParent, Tracer, current_span, now_ns, parse_parents
from triplewire.config.traffic import NOTIFICATIONS, StreamTraffic, select_busiest, sum_by_stream
from triplewire.http.auth import caller
from triplewire.http.delivery.connections import ClientConnection
from triplewire.http.delivery.topics import LiveTopic
from triplewire.http.openapi import operation_of, resource_operations, routes_of, serves
from triplewire.http.peers.status import EdgeStatusReporter
from triplewire.http.ports import CommitQueue, ThreadPool
from triplewire.http.stream_filters.parameters import StreamView
from triplewire.model import Event, LimitReached, format_position
from triplewire.model.cache import BoundedCache
from triplewire.model.clock import Clock
from triplewire.security import Verb
from triplewire.storage.log.ports import EdgeLog, Publication
from triplewire.storage.outbox import Outbox, OutboxLane

LAGGING_SECONDS: Final = 5.0
"""Age of an unmatched event from which on the status is `lagging`."""

CLOSED_STREAMS: Final = 1_000
"""Streams without clients whose traffic an edge remembers: some 300 bytes each."""

METRICS_STREAMS: Final = 50
"""Streams that metrics tell apart, those with the most clients; the others are summed. Each is seven samples."""


@dataclass(frozen=True)
class LaneLag:
    """Position up to which a lane has matched, how many positions wait, and the age of the oldest event among them in
    seconds."""

    matched: int
    lag: int
    age: float


@dataclass(frozen=True)
class HealthReport:
    """A reading. `age` is that of the oldest event not yet matched, in seconds."""

    head: int
    matched: int
    stored: int | None
    waiting: bool
    age: float
    pipeline: str
    limits: Mapping[str, int] = field(default_factory=dict)
    """How often subscriptions reached each limit."""
    lanes: Mapping[str, LaneLag] = field(default_factory=dict)
    """Lanes beside the main one."""
    lake: Mapping[str, Any] = field(default_factory=dict)
    """Figures of lake maintenance."""
    queries: Mapping[str, float] = field(default_factory=dict)
    """Figures of continuous queries."""
    restarts: int = 0
    """Match jobs that failed or stalled and were started again, since the pipeline began."""

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
    """The stores that health is read from. `stored` returns the position up to which the lake has everything."""

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
        continuous = beat.detail.get("continuous", {})
        lanes = {"slow": self._lag(slow, head)} if slow else {}
        lanes |= {"continuous": self._lag(self.outbox.head(OutboxLane.CONTINUOUS), head)} if continuous else {}
        limits = {each.value: int(beat.detail.get("limits", {}).get(each, 0)) for each in LimitReached}
        return HealthReport(
            head,
            matched,
            stored,
            age is not None,
            age or 0.0,
            self._pipeline(beat),
            limits,
            lanes,
            lake=beat.detail.get("lake", {}),
            queries=_summarize_queries(continuous),
            restarts=sum(beat.detail.get(job, {}).get("restarts", 0) for job in ("match", "match-slow")),
        )

    def _lag(self, matched: int, head: int) -> LaneLag:
        age = self._age(matched, head)
        return LaneLag(matched, 0 if age is None else head - matched, age or 0.0)

    def _age(self, matched: int, head: int) -> float | None:
        """Return the age of the oldest event not yet matched; None if there is none."""
        oldest = self.log.read(matched, head, 1)
        if not oldest.num_rows:
            return None
        received: int = oldest.column("received")[0].as_py()
        return max(0.0, (self.clock.now() - received) / 1_000_000)

    def _pipeline(self, beat: Heartbeat) -> str:
        lively = beat.state not in ("starting", "ready") or beat.alive(self.clock)
        return beat.state if lively else "stale"


@dataclass(frozen=True)
class HealthEndpoint:
    """`GET /health` and `GET /metrics`."""

    sources: HealthSources
    threads: ThreadPool
    metrics: Metrics
    listeners: Callable[[], dict[str, int]]
    describe: Callable[[], dict[str, Any]]
    status: EdgeStatusReporter

    def routes(self) -> list[web.RouteDef]:
        return routes_of(self.health, self.expose)

    @serves(resource_operations.HEALTH)
    async def health(self, request: web.Request) -> web.Response:
        """Answer 200 while events are matched, be it late; 503 otherwise. Figures are for administrators only."""
        reading = await self.threads.run(self.sources.read)
        status = 200 if reading.status in ("ok", "lagging") else 503
        document = {**self.describe(), **_document(reading)}
        if caller(request).may(Verb.ADMIN):
            document |= _admin_fields(reading, self.listeners())
        body = orjson.dumps(document)
        return web.Response(status=status, body=body, content_type="application/json")

    @serves(resource_operations.METRICS)
    async def expose(self, request: web.Request) -> web.Response:
        reading = await self.threads.run(self.sources.read)
        self.metrics.head.set(reading.head)
        self.metrics.matched.set(reading.matched)
        self.metrics.lag.set(reading.lag)
        self.metrics.lag_seconds.set(reading.age)
        self.metrics.restarts.set(reading.restarts)
        for name, lane in reading.lanes.items():
            self.metrics.lane_lag.labels(name).set(lane.lag)
            self.metrics.lane_lag_seconds.labels(name).set(lane.age)
        for name, count in reading.limits.items():
            self.metrics.limits.labels(name).set(count)
        for name, gauge in self.metrics.lake.items():
            gauge.set(reading.lake.get(name, 0))
        for name, gauge in self.metrics.queries.items():
            gauge.set(reading.queries.get(name, 0))
        return web.Response(body=await self._exposition(), headers={"Content-Type": CONTENT_TYPE})

    async def _exposition(self) -> bytes:
        """Return the metrics of all edges over the directory, whichever is asked; of an edge in memory, its own."""
        name = self.status.own().name
        own = self.metrics.exposition()
        if self.status.location.folder is None:
            return own
        others = await self.threads.run(self.status.others)
        return merge_expositions(name, own.decode(), {each.name: each.metrics for each in others})


def _summarize_queries(reported: Mapping[str, Any]) -> dict[str, float]:
    """Summarize what the pipeline reports of continuous queries, with how evenly their work is spread over buckets."""
    loads = reported.get("loads") or [0]
    mean = sum(loads) / len(loads)
    figures = {name: reported[name] for name in ("queries", "state_rows", "state_bytes", "late") if name in reported}
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
        "restarts": reading.restarts,
    }


_PAUSE_FACTOR = 100.0
"""Pause between two readings as a multiple of the time that one takes: they then take a hundredth of all time."""


class MeasuredListener(Protocol):
    """The part of a listener that is measured."""

    @property
    def connection(self) -> ClientConnection: ...


class MeasuredChannel(Protocol):
    """The part of a channel that is measured. Its numbers only grow."""

    messages: int
    plain_bytes: int
    sent_bytes: int
    dropped: int
    wait: float

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Any]: ...


class ClosedTraffic:
    """Traffic of channels that were closed, by stream, for the latest streams."""

    def __init__(self, limit: int = CLOSED_STREAMS) -> None:
        self._traffic: BoundedCache[str, StreamTraffic] = BoundedCache(limit)

    def __iter__(self) -> Iterator[StreamTraffic]:
        return iter(self._traffic.values())

    def add(self, stream: str, channel: MeasuredChannel) -> None:
        traffic = (self._traffic.get(stream) or StreamTraffic(stream)) + measure_channel(stream, channel)
        self._traffic.put(stream, replace(traffic, clients=0, waiting=0, linger=0.0))

    def add_stream(self, view: StreamView, channel: MeasuredChannel) -> None:
        self.add(view.stream, channel)

    def add_notifications(self, made: int, channel: MeasuredChannel) -> None:
        self.add(NOTIFICATIONS, channel)


class FlowGauges:
    """Sums the traffic of the channels of each stream, closed ones included."""

    def __init__(
        self,
        topics: Sequence[LiveTopic[Any]],
        closed: ClosedTraffic,
        clock: Callable[[], float] = time.monotonic,
        worked: Callable[[], float] = time.thread_time,
    ) -> None:
        self._topics = topics
        self._closed = closed
        self._clock = clock
        self._worked = worked
        self._flows: list[StreamTraffic] = []
        self._not_before = 0.0

    def flows(self) -> list[StreamTraffic]:
        """Return the traffic by stream, of those with clients now or of late. Must be called on the event loop."""
        if self._clock() >= self._not_before:
            began = self._worked()
            self._flows = sum_by_stream((*self._live(), *self._closed))
            self._not_before = self._clock() + _PAUSE_FACTOR * (self._worked() - began)
        return self._flows

    def busiest(self) -> list[StreamTraffic]:
        """Return the busiest streams as of the last reading. May be called in any thread."""
        return select_busiest(self._flows, METRICS_STREAMS)

    def _live(self) -> Iterator[StreamTraffic]:
        for topic in self._topics:
            for key in topic:
                stream = key.stream if isinstance(key, StreamView) else NOTIFICATIONS
                for channel in topic.channels(key):
                    yield measure_channel(stream, channel, channel)


def measure_channel(stream: str, channel: MeasuredChannel, listeners: Iterable[MeasuredListener] = ()) -> StreamTraffic:
    """Return the traffic of a channel, and the bytes that wait for the slowest of the listeners."""
    waiting = max((listener.connection.pending() for listener in listeners), default=0)
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


@dataclass(frozen=True)
class TracedCommits:
    """A commit queue that records a span of each commit in the traces of its events."""

    commits: CommitQueue
    tracer: Tracer

    async def append(self, publication: Publication) -> Sequence[int]:
        (positions,) = await self.append_each([publication])
        return positions

    async def append_each(self, publications: Sequence[Publication]) -> list[Sequence[int]]:
        parent, began = current_span(), now_ns()
        marked = publications if parent is None else [_with_parent(each, parent) for each in publications]
        positions = await self.commits.append_each(marked)
        events = [event for each in marked for event in each.events]
        self.tracer.tell("log commit", _parents(events), began, {"triplewire.events": len(events)})
        return positions


def _with_parent(publication: Publication, parent: TraceParent) -> Publication:
    return replace(publication, events=[_event_with_parent(event, parent) for event in publication.events])


def _event_with_parent(event: Event, parent: TraceParent) -> Event:
    """Add the span of the request as parent, unless the event has one of its own."""
    if HEADER in event.headers.extensions:
        return event
    extensions = {**event.headers.extensions, HEADER: str(parent)}
    return replace(event, headers=replace(event.headers, extensions=extensions))


def _parents(events: Sequence[Event]) -> list[TraceParent]:
    parents = (TraceParent.parsed(event.headers.extensions.get(HEADER)) for event in events[:TRACED_EVENTS])
    return [each for each in dict.fromkeys(parents) if each is not None and each.sampled]


def tracing_middleware(tracer: Tracer) -> Middleware:
    """Return a middleware that makes a span for each request without an endless response."""

    @web.middleware
    async def trace(request: web.Request, handler: Handler) -> web.StreamResponse:
        operation = operation_of(request.match_info.handler)
        if operation is None or operation.sends:
            return await handler(request)
        span = tracer.begin(operation.id, request.headers.get(HEADER), _attributes(request))
        if span is None:
            return await handler(request)
        with span:
            return await handler(request)

    return trace


def _attributes(request: web.Request) -> dict[str, str]:
    """Return the attributes of a span: the pattern of the address, since the address itself may be confidential."""
    resource = request.match_info.route.resource
    route = "" if resource is None else resource.canonical
    attributes = {"http.request.method": request.method, "http.route": route}
    stream = request.match_info.get("stream")
    return attributes if stream is None else {**attributes, "triplewire.stream": stream[:128]}


@dataclass(frozen=True)
class DeliverySpans:
    """Records spans of deliveries."""

    tracer: Tracer

    def record(self, extensions: Sequence[str | None], began: int, messages: int) -> None:
        """Record that events with these extension headers were given to clients, as so many messages."""
        parents = parse_parents(extensions, TRACED_EVENTS)
        if parents and messages:
            self.tracer.tell("deliver", parents, began, {"triplewire.messages": messages})
