"""The web application of an edge, put together from its parts, top-down: topics first, then the sources that move
them, then endpoints, and last the workers.

`EdgeParts` holds what the service wiring opens, and closes after the application. `Edge` holds the running parts.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from aiohttp import web
from aiohttp.typedefs import Middleware

from triplewire.config.metrics import Metrics, TrafficCollector
from triplewire.config.status import STATUS_SECONDS, Heartbeat
from triplewire.config.tracing import Tracer
from triplewire.history.dataset_statistics import DatasetStatistics
from triplewire.http import consume, health
from triplewire.http.api_documents import ApiDocuments, get_index
from triplewire.http.audit import AUDIT_SECONDS, AuditMiddleware
from triplewire.http.auth import SESSION_SECONDS, AuthMiddleware, Sessions
from triplewire.http.cors import Origins
from triplewire.http.delivery.backfill import BACKFILL_EVENTS, SubscriptionBackfill
from triplewire.http.delivery.channels import CLIENT_BUFFER_BYTES, CONTEXT_SECONDS
from triplewire.http.delivery.events import EventSource, SourceContext, VisibilityCache
from triplewire.http.delivery.filtered_events import FilteredEventSource, FilteredTopic, StreamResolver
from triplewire.http.delivery.leases import Leases
from triplewire.http.delivery.matches import OUTBOX_POLL_SECONDS, MatchSource, OutboxLanes
from triplewire.http.delivery.merger import COMMENT_SECONDS
from triplewire.http.delivery.options import LingerTimes, LoopLoad
from triplewire.http.delivery.replay import ResumeRequest, ResumeResolver, TieredHistory
from triplewire.http.delivery.replay_cache import RecentEvents, ReplayCacheConfig
from triplewire.http.delivery.subscriptions import ContinuousQueryCache, SubscriptionCache
from triplewire.http.delivery.topics import ACK_SECONDS, LISTENERS, Acceptor, LiveTopic, Subscribable
from triplewire.http.delivery.transports import Transports
from triplewire.http.dialects.ldes import LDES_FANOUT, CurrentVisibility, LdesHistories, StreamPromises
from triplewire.http.dialects.mercure import MercureHub
from triplewire.http.dialects.websub import WebSubHub, add_hub_links
from triplewire.http.discovery import endpoint
from triplewire.http.discovery.catalog import SampleCache, StreamProfiles
from triplewire.http.discovery.endpoint import CATALOG_STREAMS, StreamListing
from triplewire.http.formats.messages import EDGE_STOPS
from triplewire.http.openapi import routes_of
from triplewire.http.openapi.stream_operations import CONNECTION_SOURCES
from triplewire.http.peers import load_balancing
from triplewire.http.peers.repeaters import RepeaterEndpoint, Repeaters
from triplewire.http.peers.status import EdgeLocation, EdgeStatusReporter, add_identity_header, generate_identity
from triplewire.http.ports import ChangeWatch, CommitQueue, NoChanges, SparqlService, ThreadPool
from triplewire.http.problems import problem_middleware
from triplewire.http.publish import requests
from triplewire.http.publish.endpoint import PublishEndpoint
from triplewire.http.publish.streaming import PUBLISHERS, StreamingPublish
from triplewire.http.publish.validation import ShapeGate
from triplewire.http.rate_limits import RateLimits
from triplewire.http.server import DRAIN, Drain, check_framing
from triplewire.http.sparql import SparqlEndpoint
from triplewire.http.stream_filters.evaluator import FilterEvaluator
from triplewire.http.stream_filters.parameters import StreamView
from triplewire.http.stream_filters.plugins import PluginFilters
from triplewire.http.webhooks.context import DeliveryContext, OutboundOptions
from triplewire.http.webhooks.dead_letters import DeadLetters
from triplewire.http.webhooks.deliverer import Scheduler
from triplewire.http.workers import Wakeup, Worker, share_watch
from triplewire.matching.event_history import ColdTier
from triplewire.model import START
from triplewire.model.clock import Clock
from triplewire.model.subscriptions import ContinuousQuery
from triplewire.rdf.checks import BODY_BYTES
from triplewire.security import EVERYONE
from triplewire.security.principals import Authenticator, principal_of
from triplewire.storage.log.ports import EdgeLog
from triplewire.storage.outbox import Outbox, OutboxLane
from triplewire.storage.registry.erasure import latest_erasure_change
from triplewire.storage.registry.ports import PAGE_ENTRIES, Registry
from triplewire.storage.registry.security import PolicyStore
from triplewire.storage.signals import SignalReceiver
from triplewire.storage.webhooks import Webhook

LEASE_SECONDS: Final = 2.5
"""Time between two sweeps of leases, which read only those that may have expired."""

LOG_POLL_SECONDS: Final = 0.005
"""Time between two looks at whether another process has published. An edge knows its own publications at once."""

SIGNALED_POLL_SECONDS: Final = 0.1
"""Time between two looks at a store whose commits wake the edge: a signal may be lost."""

HISTORY_THREADS: Final = 2
"""Steps through history that an edge takes at the same time, each some 50 ms of a core. Clients take turns after every
step."""

MIGRATION_SECONDS: Final = 1.0
"""Time between two looks at whether clients are to be moved to another edge."""


@dataclass(frozen=True)
class EdgeLimits:
    """Limits of an edge that tests lower, and the chance and the waiting that they decide."""

    backfill_events: int = BACKFILL_EVENTS
    context_seconds: float = CONTEXT_SECONDS
    page_events: int = consume.PAGE_EVENTS
    publishers: int = PUBLISHERS
    chance: Callable[[], float] = random.random
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    sources: int = CONNECTION_SOURCES
    streams: int = CATALOG_STREAMS
    fanout: int = LDES_FANOUT
    entries: int = PAGE_ENTRIES
    """Streams that a pattern of Mercure reads at once."""


@dataclass(frozen=True)
class EdgeParts:
    """The parts of an edge that the service wiring opens, and closes after the application."""

    commits: CommitQueue
    log: EdgeLog
    registry: Registry
    outbox: Outbox
    answers: SparqlService
    log_watch: ChangeWatch
    outbox_watch: ChangeWatch
    heartbeat: Callable[[], Heartbeat]
    clock: Clock
    log_signals: SignalReceiver | None = None
    """Woken by commits to the log; without it the edge only polls."""
    outbox_signals: SignalReceiver | None = None
    stored: Callable[[], int] | None = None
    """Returns the position up to which the lake has everything."""
    archive: ColdTier | None = None
    """Events that were trimmed from the log."""
    replay_cache: ReplayCacheConfig = field(default_factory=ReplayCacheConfig)
    routes: Iterable[web.RouteDef] = ()
    """Routes of registry resources; their errors become problem documents like those of others."""
    services: tuple[str, ...] = ()
    """Endpoints that SERVICE may ask."""
    origins: tuple[str, ...] = ()
    """Origins of pages that may use the edge from a browser."""
    filters: PluginFilters | None = None
    """Plug-in filters; None for those of all installed packages."""
    buffer: int = CLIENT_BUFFER_BYTES
    max_listeners: int = LISTENERS
    linger: LingerTimes = field(default_factory=LingerTimes)
    ack_timeout: float = ACK_SECONDS
    """Seconds for which a client may read, or acknowledge, nothing."""
    metrics: Metrics = field(default_factory=Metrics)
    gate: ShapeGate | None = None
    """Validates publications to streams that have shapes; closed with the application."""
    repeaters: Path | None = None
    """Folder in which edges over one directory share the announcements of relays."""
    overload: load_balancing.OverloadDetector | None = None
    """Detects that the edge is near its limits; by default from its listeners and its load."""
    identity: str = field(default_factory=generate_identity)
    """Identity of the edge for relays; the same after a restart."""
    rate_limits: RateLimits | None = None
    authenticators: tuple[Authenticator, ...] = ()
    """Without any, every client may do everything."""
    retention: Callable[[str], float | None] = lambda stream: None
    """Returns for how many seconds the events of a stream are kept; None is for ever."""
    outbound: OutboundOptions = field(default_factory=OutboundOptions)
    is_open: Callable[[], bool] = lambda: False
    """Returns whether clients need no token, though there are authenticators."""
    sessions: Sessions | None = None
    """Ends connections whose token was revoked or has expired."""
    audit: AuditMiddleware | None = None
    statistics: Callable[[], DatasetStatistics | None] = lambda: None
    """Returns the statistics of the lake."""
    tracer: Tracer | None = None
    location: EdgeLocation = field(default_factory=EdgeLocation)
    limits: EdgeLimits = field(default_factory=EdgeLimits)


class Topics:
    """The live topics of an edge. Each wakes the worker that moves it when a client enters."""

    def __init__(self, parts: EdgeParts, load: LoopLoad, closed: health.ClosedTraffic) -> None:
        self.filtered_wakeup, self.matches_wakeup = Wakeup(), Wakeup()
        self.slow_wakeup, self.answers_wakeup = Wakeup(), Wakeup()
        head = parts.log.head()
        seconds = parts.limits.context_seconds
        self.events: LiveTopic[StreamView] = LiveTopic(head, load, on_close=closed.add_stream, context_seconds=seconds)
        self.filtered = FilteredTopic(head, load, on_enter=self.filtered_wakeup.set, on_close=closed.add_stream)
        self.matches = self._lane(parts.outbox, OutboxLane.FAST, load, closed, self.matches_wakeup)
        self.slow = self._lane(parts.outbox, OutboxLane.SLOW, load, closed, self.slow_wakeup)
        self.answers = self._lane(parts.outbox, OutboxLane.CONTINUOUS, load, closed, self.answers_wakeup)
        self.all: tuple[LiveTopic[Any], ...] = (self.events, self.filtered, self.matches, self.slow, self.answers)

    @staticmethod
    def _lane(
        outbox: Outbox, lane: OutboxLane, load: LoopLoad, closed: health.ClosedTraffic, wakeup: Wakeup
    ) -> LiveTopic[int]:
        return LiveTopic(outbox.head(lane), load, on_enter=wakeup.set, on_close=closed.add_notifications)

    def has_listeners(self, query: ContinuousQuery) -> bool:
        """Return whether a client listens to the answers of a query."""
        return query.made in self.answers or consume.answer_view(query) in self.filtered

    def count(self) -> dict[str, int]:
        streams = len(self.events) + len(self.filtered)
        return {"streams": streams, "subscriptions": len(self.matches) + len(self.slow), "queries": len(self.answers)}


class Edge:
    """The running parts of an edge."""

    def __init__(self, parts: EdgeParts) -> None:
        self.parts = parts
        self.threads = ThreadPool(2, "edge-read")
        self.decoders = ThreadPool(1, "edge-decode")
        self.history_threads = ThreadPool(HISTORY_THREADS, "edge-history")
        self.policies = PolicyStore(parts.registry)
        load, closed = LoopLoad(), health.ClosedTraffic()
        self.topics = topics = Topics(parts, load, closed)
        self.log_wakeup = Wakeup()
        self.gauges = health.FlowGauges(topics.all, closed)
        parts.metrics.registry.register(TrafficCollector(self.gauges.busiest))
        self._make_sources(topics)
        self._make_peers(load)
        self._make_endpoints()
        self.workers = [*self._make_workers()]

    def _make_sources(self, topics: Topics) -> None:
        parts = self.parts
        recent = RecentEvents(parts.replay_cache, parts.clock, partial(latest_erasure_change, parts.registry))
        self.history = TieredHistory(parts.log, parts.archive, recent)
        self.visibility = VisibilityCache(self.policies)
        traced = None if parts.tracer is None else health.DeliverySpans(parts.tracer).record
        context = SourceContext(self.threads, parts.metrics, traced)
        self.events = EventSource(self.history, self.history_threads, context, topics.events, self.visibility)
        self.evaluator = FilterEvaluator(parts.metrics, parts.filters)
        self.filtered = FilteredEventSource(self.events, parts.log, self.evaluator, context, topics.filtered)
        lanes = (topics.matches, topics.slow)
        subscriptions = SubscriptionCache(parts.registry, parts.log, self.threads, lanes)
        self.matches = MatchSource(parts.outbox, parts.log, subscriptions, context, topics.matches)
        slow = OutboxLane.SLOW
        self.slow = MatchSource(parts.outbox, parts.log, subscriptions, context, topics.slow, lane=slow)
        queries = ContinuousQueryCache(parts.registry, parts.log, self.threads, topics.has_listeners)
        lane = OutboxLane.CONTINUOUS
        self.query_answers = MatchSource(parts.outbox, parts.log, queries, context, topics.answers, lane=lane)

    def _make_peers(self, load: LoopLoad) -> None:
        parts = self.parts
        self.acceptor = Acceptor(
            self.topics.all,
            parts.log,
            self.threads,
            parts.metrics,
            parts.buffer,
            parts.max_listeners,
            parts.ack_timeout,
        )
        self.overload = parts.overload or load_balancing.OverloadDetector(
            self._listener_share, load.measure, parts.clock.ticks
        )
        self.repeaters = Repeaters(parts.clock, parts.repeaters)
        self.redirects = load_balancing.Redirects(
            self.repeaters,
            self.overload,
            self.events.latest,
            parts.log,
            self.threads,
            parts.metrics,
            parts.limits.sleep,
        )
        chance = parts.limits.chance
        self.migration = load_balancing.Migration(self.events, self.repeaters, self.overload, parts.metrics, chance)
        self.status = EdgeStatusReporter(
            parts.location, parts.clock, parts.metrics, parts.max_listeners, self.topics.count, self.gauges.flows
        )

    def _make_endpoints(self) -> None:
        parts, acceptor = self.parts, self.acceptor
        commits = parts.commits if parts.tracer is None else health.TracedCommits(parts.commits, parts.tracer)
        self.publish = PublishEndpoint(
            commits, self.decoders, parts.metrics, parts.clock, self._notice_publication, self.visibility, parts.gate
        )
        self.streaming_publish = StreamingPublish(self.publish, Origins(parts.origins), parts.limits.publishers)
        visibility = CurrentVisibility(self.policies)
        promises = StreamPromises(parts.registry, parts.retention)
        self.ldes = LdesHistories(
            parts.log, self.history, self.history_threads, promises, visibility, parts.limits.fanout
        )
        samples = SampleCache(self.ldes.newest, parts.clock)
        profiles = StreamProfiles(parts.log, parts.registry, samples, parts.retention, parts.clock)
        self.listing = StreamListing(
            profiles,
            visibility,
            self.status,
            parts.registry,
            parts.statistics,
            self.history_threads,
            parts.limits.streams,
        )
        self.transports = transports = Transports(acceptor)
        resume = ResumeResolver(self.history, parts.clock, self.threads, self.history_threads)
        resolver = StreamResolver(self.events, self.filtered, self.evaluator)
        self.leases = Leases(parts.registry, parts.clock, self.threads)
        self.backfill = SubscriptionBackfill(
            parts.log, parts.archive, parts.registry, self.history_threads, parts.limits.backfill_events
        )
        lanes = OutboxLanes(self.matches, self.slow)
        self.streams = consume.StreamEndpoint(resolver, transports, resume, parts.linger, self.redirects)
        self.answers = consume.AnswerEndpoint(self.query_answers, resolver, transports, resume, parts.linger)
        self.notifications = consume.NotificationEndpoint(
            lanes, self.backfill, transports, resume, self.leases, parts.linger.get(None)
        )
        self.webhooks = DeliveryContext(
            parts.outbound, self._find_webhook_source, parts.clock, parts.metrics, parts.log, parts.tracer
        )
        self.event_pages = consume.EventPageEndpoint(
            parts.log, self.policies, self.threads, limit=parts.limits.page_events
        )
        self.websub = WebSubHub(self.webhooks, parts.registry, parts.log)
        self.scheduler = Scheduler(self.webhooks, parts.registry)

    def _make_workers(self) -> Iterator[Worker]:
        parts, topics = self.parts, self.topics
        poll = partial(Worker, on_failure=parts.metrics.poll_failures.inc)
        # Each lane has a worker of its own, so that none waits for another.
        matches, slow, answers = share_watch(parts.outbox_watch, 3)
        seconds = OUTBOX_POLL_SECONDS if parts.outbox_signals is None else SIGNALED_POLL_SECONDS
        log_seconds = LOG_POLL_SECONDS if parts.log_signals is None else SIGNALED_POLL_SECONDS
        yield poll("log", self._follow_log, log_seconds, watch=parts.log_watch, wakeup=self.log_wakeup)
        yield poll("filtered", self._follow_filtered, seconds, watch=NoChanges(), wakeup=topics.filtered_wakeup)
        yield poll("matches", self.matches.step, seconds, watch=matches, wakeup=topics.matches_wakeup)
        yield poll("slow matches", self.slow.step, seconds, watch=slow, wakeup=topics.slow_wakeup)
        yield poll("answers", self._follow_answers, seconds, watch=answers, wakeup=topics.answers_wakeup)
        neighbours, ticks = self.status.neighbours, parts.clock.ticks
        movable = (topics.events, topics.matches, topics.slow, topics.answers)
        yield Worker("keep alive", self._keep_alive, COMMENT_SECONDS)
        yield Worker("leases", self.leases.sweep, LEASE_SECONDS)
        yield Worker("migration", self.migration.step, MIGRATION_SECONDS)
        yield Worker("balance", load_balancing.ConnectionBalancer(movable, neighbours, ticks).step, STATUS_SECONDS)
        yield Worker("status", self.status.step, STATUS_SECONDS, wakeup=Wakeup(is_set=True))
        yield Worker("webhooks", self.scheduler.run, 0.0, wakeup=Wakeup(is_set=True))
        if parts.sessions is not None:
            yield Worker("sessions", parts.sessions.check, SESSION_SECONDS)
        if parts.audit is not None:
            yield Worker("audit", parts.audit.flush, AUDIT_SECONDS)

    def routes(self) -> list[web.RouteDef]:
        parts, threads, limits = self.parts, self.threads, self.parts.limits
        sources = health.HealthSources(parts.log, parts.outbox, parts.heartbeat, parts.stored, parts.clock)
        resources = (
            self.publish,
            self.streaming_publish,
            self.streams,
            RepeaterEndpoint(self.repeaters, parts.clock),
            self.event_pages,
            self.ldes,
            self.listing,
            MercureHub(self.streams, self.transports, parts.log, self.publish, threads, limits.sources, limits.entries),
            self.notifications,
            self.answers,
            consume.MultiplexEndpoint(self.streams, self.notifications, self.answers, self.transports),
            DeadLetters(parts.outbound.store, parts.registry, threads),
            self.websub,
            SparqlEndpoint(parts.answers, self.policies, threads, federated=bool(parts.services)),
            health.HealthEndpoint(sources, threads, parts.metrics, self.topics.count, self.describe, self.status),
            self.status,
        )
        served = [
            *routes_of(get_index, endpoint.api_catalog),
            *(route for each in resources for route in each.routes()),
            *parts.routes,
        ]
        return [*served, *ApiDocuments(served).routes()]

    def describe(self) -> dict[str, Any]:
        """Return identity, load, and how many more listeners and repeaters there are, for `/health`."""
        return {
            "edge": self.parts.identity,
            "load": round(self.overload.load, 3),
            "free": max(self.parts.max_listeners - len(self.acceptor), 0),
            "repeaters": len(self.repeaters.all()),
        }

    async def run(self, app: web.Application) -> AsyncIterator[None]:
        """Run the workers from before the first request until after the last."""
        for worker in self.workers:
            worker.start()
        self._follow_signals()
        yield
        for signals in (self.parts.log_signals, self.parts.outbox_signals):
            if signals is not None:
                asyncio.get_running_loop().remove_reader(signals.fileno())
        for worker in self.workers:
            await worker.stop()
        await self.status.close()
        await self.websub.close()
        await self.webhooks.close()
        if self.parts.audit is not None:
            await self.parts.audit.flush()
        for threads in (self.threads, self.decoders, self.history_threads, self.evaluator):
            threads.close()
        if self.parts.gate is not None:
            await self.parts.gate.validator.close()

    def _follow_signals(self) -> None:
        """Let commits of other processes wake the workers that follow them."""
        parts, loop = self.parts, asyncio.get_running_loop()
        for signals, wake in ((parts.log_signals, self._notice_publication), (parts.outbox_signals, self._wake_lanes)):
            if signals is not None:
                loop.add_reader(signals.fileno(), _pass_on, signals, wake)

    def _wake_lanes(self) -> None:
        """Wake the workers of lanes that have clients; the others look by themselves now and then."""
        topics = self.topics
        for topic, wakeup in (
            (topics.matches, topics.matches_wakeup),
            (topics.slow, topics.slow_wakeup),
            (topics.answers, topics.answers_wakeup),
        ):
            if len(topic):
                wakeup.set()

    async def send_away(self, app: web.Application) -> None:
        """Tell all listeners that this edge stops, and end streaming publishers after what they have sent."""
        self.streaming_publish.close()
        for topic in self.topics.all:
            topic.close(EDGE_STOPS)
        with suppress(TimeoutError):
            await self.acceptor.connections.wait_until_closed()

    async def _find_webhook_source(self, webhook: Webhook, position: int | None) -> Subscribable[Any]:
        """Return what a webhook delivers, after a position. Raises NotFound."""
        if webhook.stream is None:
            # The webhook belongs to the owner of its subscription, and was authorized when it was made.
            resume = None if position is None else ResumeRequest(position=position)
            return await self.notifications.subject(webhook.id, resume, EVERYONE)
        resume = ResumeRequest(position=max(position or START, webhook.begin))
        return await self.streams.subject(webhook.stream, resume, principal_of(webhook.owner))

    def _notice_publication(self) -> None:
        if len(self.topics.events) or len(self.topics.filtered):
            self.log_wakeup.set()

    async def _follow_log(self) -> None:
        if self.parts.gate is not None:
            await self.threads.run(self.parts.gate.shapes.refresh)
        await self.events.step()
        if await self.query_answers.queries.refresh():
            self.topics.answers_wakeup.set()
        self._wake_filtered()
        if await self.matches.queries.refresh():
            self.topics.matches_wakeup.set()
            self.topics.slow_wakeup.set()

    async def _follow_filtered(self) -> None:
        ended = await self.answers.find_ended()
        await self.filtered.step()
        self.answers.finish(ended)

    async def _follow_answers(self) -> None:
        await self.query_answers.step()
        self._wake_filtered()

    def _wake_filtered(self) -> None:
        if not self.filtered.skip():
            self.topics.filtered_wakeup.set()

    def _keep_alive(self) -> None:
        for topic in self.topics.all:
            topic.keep_alive()

    def _listener_share(self) -> float:
        return len(self.acceptor) / max(self.parts.max_listeners, 1)


def _pass_on(signals: SignalReceiver, wake: Callable[[], None]) -> None:
    signals.clear()
    wake()


EDGE = web.AppKey("edge", Edge)


def _auth_middlewares(parts: EdgeParts) -> list[Middleware]:
    auth = AuthMiddleware(parts.authenticators, parts.is_open, parts.sessions).middleware()
    return [auth] if parts.audit is None else [parts.audit.refusals(), auth, parts.audit.acts()]


def application(parts: EdgeParts) -> web.Application:
    """Return an application that serves every route of an edge, and those of the parts."""
    edge, origins, drain = Edge(parts), Origins(parts.origins), Drain()
    middlewares = [
        check_framing,
        drain.middleware(),
        problem_middleware(parts.metrics),
        origins.middleware(),
        requests.refuse_compressed,
    ]
    if parts.tracer is not None:
        middlewares.append(health.tracing_middleware(parts.tracer))
    if parts.rate_limits is not None:
        middlewares.append(parts.rate_limits.middleware())
    middlewares += _auth_middlewares(parts)
    app = web.Application(middlewares=middlewares, client_max_size=BODY_BYTES)
    app[EDGE], app[DRAIN] = edge, drain
    add_identity_header(app, parts.identity)
    load_balancing.add_link_header(app)
    add_hub_links(app)
    endpoint.add_links(app)
    app.add_routes(edge.routes())
    app.cleanup_ctx.append(edge.run)
    app.on_response_prepare.append(origins.add_headers)
    app.on_shutdown.append(edge.send_away)
    return app
