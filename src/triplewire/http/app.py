"""The web application of an edge, put together from its parts.

`EdgeParts` holds what the service wiring gives; whoever gives a part closes it, after the application. `Edge` holds
the running parts: live sources, the pollers that move them, endpoints, background tasks.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from aiohttp import web
from aiohttp.typedefs import Middleware

from triplewire.config.metrics import NOTIFICATIONS, Metrics, TrafficCollector
from triplewire.config.status import STATUS_SECONDS, Heartbeat
from triplewire.config.tracing import Tracer
from triplewire.history.dataset_statistics import DatasetStatistics
from triplewire.http import api_documents, health
from triplewire.http.api_documents import ApiDocuments
from triplewire.http.audit import AuditMiddleware
from triplewire.http.auth import AuthMiddleware, Sessions
from triplewire.http.consume import (
    AnswerEndpoint,
    EventPageEndpoint,
    MultiplexEndpoint,
    NotificationEndpoint,
    StreamEndpoint,
)
from triplewire.http.cors import Origins
from triplewire.http.delivery.backfill import SubscriptionBackfill
from triplewire.http.delivery.channels import CLIENT_BUFFER_BYTES
from triplewire.http.delivery.continuous_queries import ContinuousQueryCache
from triplewire.http.delivery.events import RETRY_MILLISECONDS, EventSource, Poller, VisibilityCache
from triplewire.http.delivery.filtered_events import FilteredEventSource, StreamResolver
from triplewire.http.delivery.matches import MatchSource, OutboxLanes
from triplewire.http.delivery.options import LingerTimes, LoopLoad
from triplewire.http.delivery.replay import ResumeRequest, ResumeResolver, TieredHistory
from triplewire.http.delivery.replay_cache import RecentEvents, ReplayCacheConfig
from triplewire.http.delivery.subscriptions import Leases, SubscriptionCache
from triplewire.http.delivery.topics import ACK_SECONDS, LISTENERS, Acceptor, ClientState, Subscribable
from triplewire.http.delivery.transports import Transports, WebSocketSessions
from triplewire.http.delivery.writer import LISTENER_SECONDS
from triplewire.http.dialects.ldes import CurrentVisibility, LdesHistories, StreamPromises
from triplewire.http.dialects.mercure import MercureHub
from triplewire.http.dialects.websub import WebSubHub, add_hub_links
from triplewire.http.discovery import endpoint
from triplewire.http.discovery.catalog import SampleCache, StreamProfiles
from triplewire.http.discovery.endpoint import StreamListing
from triplewire.http.formats.messages import closing_notice
from triplewire.http.health import DeliverySpans, FlowGauges, HealthEndpoint, HealthSources, TracedCommits
from triplewire.http.peers.load_balancing import (
    ConnectionBalancer,
    Migration,
    OverloadDetector,
    Redirects,
    add_link_header,
)
from triplewire.http.peers.repeaters import RepeaterEndpoint, Repeaters
from triplewire.http.peers.status import EdgeLocation, EdgeStatusReporter, add_identity_header, generate_identity
from triplewire.http.ports import ChangeWatch, CommitQueue, EdgeLog, SparqlService, ThreadPool
from triplewire.http.problems import problem_middleware
from triplewire.http.publish import decompression
from triplewire.http.publish.endpoint import PublishEndpoint
from triplewire.http.publish.streaming import StreamingPublish
from triplewire.http.publish.validation import ShapeGate
from triplewire.http.rate_limits import RateLimits
from triplewire.http.server import DRAIN, Drain, check_framing
from triplewire.http.sparql import SparqlEndpoint
from triplewire.http.stream_filters.evaluator import FilterEvaluator
from triplewire.http.stream_filters.plugins import PluginFilters
from triplewire.http.webhooks.context import DeliveryContext, OutboundOptions
from triplewire.http.webhooks.dead_letters import DeadLetters
from triplewire.http.webhooks.scheduler import Scheduler
from triplewire.matching.event_history import ColdTier
from triplewire.model import START
from triplewire.model.clock import Clock
from triplewire.model.errors import TriplewireError
from triplewire.rdf.checks import BODY_BYTES
from triplewire.security import EVERYONE
from triplewire.security.principals import Authenticator, principal_of
from triplewire.storage.outbox import Outbox, OutboxLane
from triplewire.storage.registry.erasure import latest_erasure_change
from triplewire.storage.registry.ports import Registry
from triplewire.storage.registry.security import PolicyStore
from triplewire.storage.webhooks import Webhook

SWEEP_SECONDS: Final = 2.5
"""Between two looks of an edge at leases: it reads those that may have run out, and no others."""

LOG_TAIL_SECONDS: Final = 0.005
"""How often an edge looks whether another process has published. What it publishes itself it knows at once."""

PASTS_AT_ONCE: Final = 2
"""Steps through the past that an edge takes at the same time, each some 50 ms of a core. Other listeners wait their
turn after every step."""

MOVE_LOOK_SECONDS: Final = 1.0
"""Between two looks at whether some are to be moved."""


# What an edge is made of.


class IdleWatch:
    """Watches what never changes."""

    def changed(self) -> bool:
        return False


class SharedWatch:
    """Shares a watch: each instance reports every change once."""

    def __init__(self, watch: ChangeWatch, others: list[SharedWatch]) -> None:
        """`others` are the instances that share the watch; this one is added to them."""
        self._watch = watch
        self._all = others
        self._changed = False
        others.append(self)

    def changed(self) -> bool:
        if self._watch.changed():
            for each in self._all:
                each._changed = True
        changed, self._changed = self._changed, False
        return changed


@dataclass(frozen=True)
class EdgeParts:
    """What an edge is made of. Whoever gives the parts closes them, after the application."""

    commits: CommitQueue
    log: EdgeLog
    registry: Registry
    outbox: Outbox
    answers: SparqlService
    log_watch: ChangeWatch
    outbox_watch: ChangeWatch
    heartbeat: Callable[[], Heartbeat]
    clock: Clock
    stored: Callable[[], int] | None = None
    archive: ColdTier | None = None
    """Has the events that the log has let go."""
    recall: ReplayCacheConfig = field(default_factory=ReplayCacheConfig)
    """How much of streams is remembered for those who come back."""
    routes: Iterable[web.RouteDef] = ()
    """Routes of others, such as control's; their errors become problem documents like ours."""
    services: tuple[str, ...] = ()
    """The endpoints that SERVICE may ask."""
    origins: tuple[str, ...] = ()
    """Of the pages that may use the edge from a browser."""
    filters: PluginFilters | None = None
    """Of the deployment, for those who listen to streams; None for those of all packages that are installed."""
    buffer: int = CLIENT_BUFFER_BYTES
    seats: int = LISTENERS
    windows: LingerTimes = field(default_factory=LingerTimes)
    patience: float = ACK_SECONDS
    metrics: Metrics = field(default_factory=Metrics)
    gate: ShapeGate | None = None
    """Judges what is published to streams that have shapes; closed with the application."""
    repeaters: Path | None = None
    """The folder that edges over one directory share, for what relays tell them."""
    pressure: OverloadDetector | None = None
    """Says whether the edge is near its limits; by default by its seats and its load."""
    identity: str = field(default_factory=generate_identity)
    """By which relays know it; the same after a restart."""
    allowances: RateLimits | None = None
    """What each client may have; everything where there are none."""
    authenticators: tuple[Authenticator, ...] = ()
    """Who know callers by what they show; the door stands open where there are none."""
    ages: Callable[[str], float | None] = lambda stream: None
    """For how many seconds the events of a stream are kept; None is for good."""
    outbound: OutboundOptions = field(default_factory=OutboundOptions)
    """What it calls others by, who are told by POST."""
    is_open: Callable[[], bool] = lambda: False
    """Whether the door stands open, though there are some."""
    guests: Sessions | None = None
    """Sends those away who came in and are welcome no more."""
    witness: AuditMiddleware | None = None
    """Writes down who did what."""
    census: Callable[[], DatasetStatistics | None] = lambda: None
    """What was counted of all that is kept."""
    traces: Tracer | None = None
    """Where spans are told; None where nobody hears them."""
    place: EdgeLocation = field(default_factory=EdgeLocation)
    """Where it stands among the edges over the same stores."""


logger = logging.getLogger(__name__)


class Edge:
    """The running parts: the feeds, the tails that move them, and the threads that read."""

    def __init__(self, parts: EdgeParts) -> None:
        self.parts = parts
        self.readers = ThreadPool(2, "edge-read")
        self.decoders = ThreadPool(1, "edge-decode")
        self.historians = ThreadPool(PASTS_AT_ONCE, "edge-past")
        self.policies = PolicyStore(parts.registry)
        load = LoopLoad()
        memories = RecentEvents(parts.recall, parts.clock, partial(latest_erasure_change, parts.registry))
        self.backlog = backlog = TieredHistory(parts.log, parts.archive, memories)
        self.resumptions = ResumeResolver(backlog, parts.clock, self.readers, self.historians)
        self.views = VisibilityCache(self.policies)
        self.events = EventSource(backlog, self.readers, self.historians, parts.metrics, load=load, views=self.views)
        self.sieves = FilterEvaluator(parts.metrics, parts.filters)
        self.strains = FilteredEventSource(self.events, parts.log, self.readers, self.sieves, parts.metrics, load=load)
        subscriptions = SubscriptionCache(parts.registry, parts.log, self.readers)
        self.matches = MatchSource(parts.outbox, parts.log, subscriptions, self.readers, parts.metrics, load=load)
        self.slow = MatchSource(
            parts.outbox, parts.log, subscriptions, self.readers, parts.metrics, lane=OutboxLane.SLOW, load=load
        )
        queries = ContinuousQueryCache(parts.registry, parts.log, self.readers)
        self.ongoing = MatchSource(
            parts.outbox, parts.log, queries, self.readers, parts.metrics, lane=OutboxLane.CONTINUOUS, load=load
        )
        self.pasts = SubscriptionBackfill(parts.log, parts.archive, parts.registry, self.historians)
        self.leases = Leases(parts.registry, parts.clock, self.readers)
        self.log_tail = Poller(parts.log_watch, self._follow_log, parts.metrics, LOG_TAIL_SECONDS)
        self.strain_tail = Poller(IdleWatch(), self._follow_strains, parts.metrics)
        # Each lane has a poller of its own, so that none waits for another.
        watches: list[SharedWatch] = []
        self.outbox_tail, self.slow_tail, self.ongoing_tail = (
            Poller(SharedWatch(parts.outbox_watch, watches), step, parts.metrics)
            for step in (self.matches.step, self.slow.step, self._follow_answers)
        )
        rooms = (self.events.room, self.strains.room, self.matches.room, self.slow.room, self.ongoing.room)
        self.reception = Acceptor(
            rooms, parts.log, self.readers, parts.metrics, parts.buffer, parts.seats, parts.patience
        )
        self.pressure = parts.pressure or OverloadDetector(self._seats, load.look, parts.clock.ticks)
        self.repeaters = Repeaters(parts.clock, parts.repeaters)
        self.referrals = Redirects(
            self.repeaters, self.pressure, self.events.latest, parts.log, self.readers, parts.metrics
        )
        self.moves = Migration(self.events, self.repeaters, self.pressure, parts.metrics)
        commits = parts.commits if parts.traces is None else TracedCommits(parts.commits, parts.traces)
        self.publications = PublishEndpoint(
            commits, self.decoders, parts.metrics, parts.clock, self._published, self.views, parts.gate
        )
        self.publishings = StreamingPublish(self.publications, Origins(parts.origins))
        if parts.traces is not None:
            for feed in (self.events, self.strains, self.matches, self.slow, self.ongoing):
                feed.traced = DeliverySpans(parts.traces).told
        self.matches.room.entered = self.outbox_tail.wake
        self.slow.room.entered = self.slow_tail.wake
        self.ongoing.room.entered = self.ongoing_tail.wake
        self.strains.room.entered = self.strain_tail.wake
        self.gauges = FlowGauges()
        for room in (self.events.room, self.strains.room):
            self.gauges.watch(room, lambda tap: tap.stream)
        for found in (self.matches.room, self.slow.room, self.ongoing.room):
            self.gauges.watch(found, lambda _: NOTIFICATIONS)
        parts.metrics.registry.register(TrafficCollector(self.gauges.told))
        self.standings = EdgeStatusReporter(
            parts.place, parts.clock, parts.metrics, parts.seats, self.listeners, self.gauges.flows
        )
        sightings = CurrentVisibility(self.policies)
        promises = StreamPromises(parts.registry, parts.ages)
        self.pages = LdesHistories(parts.log, backlog, self.historians, promises, sightings)
        samples = SampleCache(self.pages.newest, parts.clock)
        profiles = StreamProfiles(parts.log, parts.registry, samples, parts.ages, parts.clock)
        self.listings = StreamListing(
            profiles, sightings, self.standings, parts.registry, parts.census, self.historians
        )

        reception, lanes = self.reception, OutboxLanes(self.matches, self.slow)
        self.ways = Transports(reception, WebSocketSessions(reception))
        taps = StreamResolver(self.events, self.strains, self.sieves)
        self.streams = StreamEndpoint(taps, reception, self.ways, self.resumptions, parts.windows, self.referrals)
        self.outcomes = AnswerEndpoint(self.ongoing, taps, reception, self.ways, self.resumptions, parts.windows)
        window = parts.windows.of(None)
        self.deliveries = NotificationEndpoint(
            lanes, self.pasts, reception, self.ways, self.resumptions, self.leases, window
        )
        self.office = DeliveryContext(parts.outbound, self._told, parts.clock, parts.metrics, parts.log, parts.traces)
        self.hub = WebSubHub(self.office, parts.registry, parts.log)
        self.rounds = Scheduler(self.office, parts.registry)

    def routes(self) -> list[web.RouteDef]:
        parts, read = self.parts, self.readers
        sources = HealthSources(parts.log, parts.outbox, parts.heartbeat, parts.stored, parts.clock)
        resources = (
            self.publications,
            self.publishings,
            self.streams,
            RepeaterEndpoint(self.repeaters, parts.clock),
            EventPageEndpoint(parts.log, self.policies, read),
            self.pages,
            self.listings,
            MercureHub(self.streams, self.reception, self.ways, parts.log, self.publications, read),
            self.deliveries,
            self.outcomes,
            MultiplexEndpoint(self.streams, self.deliveries, self.outcomes, self.reception, self.ways),
            DeadLetters(parts.outbound.books, parts.registry, read),
            self.hub,
            SparqlEndpoint(parts.answers, self.policies, read, federated=bool(parts.services)),
            HealthEndpoint(sources, read, parts.metrics, self.listeners, self.who, self.standings),
            self.standings,
        )
        served = [
            *api_documents.index_routes(),
            *endpoint.api_catalog_routes(),
            *(route for each in resources for route in each.routes()),
            *parts.routes,
        ]
        return [*served, *ApiDocuments(served).routes()]

    def who(self) -> dict[str, Any]:
        """Who it is, how busy, and for how many more there is room."""
        free = max(self.parts.seats - len(self.reception), 0)
        told = {"edge": self.parts.identity, "load": round(self.pressure.load, 3), "free": free}
        return {**told, "repeaters": len(self.repeaters.all())}

    def listeners(self) -> dict[str, int]:
        streams = len(self.events.room) + len(self.strains.room)
        subscriptions = len(self.matches.room) + len(self.slow.room)
        return {"streams": streams, "subscriptions": subscriptions, "queries": len(self.ongoing.room)}

    async def running(self, app: web.Application) -> AsyncIterator[None]:
        """The background of the application: begins before the first request, ends after the last."""
        tails = (self.log_tail, self.strain_tail, self.outbox_tail, self.slow_tail, self.ongoing_tail)
        works = (
            *(tail.run() for tail in tails),
            self._keep_open(),
            self._keep_leases(),
            self._keep_moving(),
            self._keep_balance(),
            self.standings.keep(),
            self.rounds.keep(),
            *(each.keep() for each in (self.parts.guests, self.parts.witness) if each is not None),
        )
        tasks = [asyncio.create_task(work) for work in works]
        yield
        for task in tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        await self.hub.close()
        await self.office.close()
        if self.parts.witness is not None:
            await self.parts.witness.flush()
        self.readers.close()
        self.decoders.close()
        self.historians.close()
        self.sieves.close()
        if self.parts.gate is not None:
            await self.parts.gate.judges.close()

    async def send_away(self, app: web.Application) -> None:
        """Tell those who listen that this edge is closing; they come back to another, or later. Those who keep
        publishing hear of what they have sent."""
        self.publishings.close()
        for room in self.reception.rooms:
            room.close(_render_closing)
        with suppress(TimeoutError):
            await self.reception.seats.emptied()

    async def _told(self, hook: Webhook, position: int | None) -> Subscribable[Any]:
        """What a hook is told, after a position. Raises NotFound."""
        if hook.stream is None:
            # Whoever may not see the subscription does not have it delivered either: the hook is its owner's.
            asked = None if position is None else ResumeRequest(position=position)
            return await self.deliveries.subject(hook.id, asked, EVERYONE)
        asked = ResumeRequest(position=max(position or START, hook.begin))
        return await self.streams.subject(hook.stream, asked, principal_of(hook.owner))

    def _published(self) -> None:
        if len(self.events.room) or len(self.strains.room):
            self.log_tail.wake()

    async def _follow_log(self) -> None:
        if self.parts.gate is not None:
            await self.readers.run(self.parts.gate.shapes.refresh)
        await self.events.step()
        if await self.ongoing.standing.refresh():
            self.ongoing_tail.wake()
        if not self.strains.idle():
            self.strain_tail.wake()
        if await self.matches.standing.refresh():
            self.outbox_tail.wake()
            self.slow_tail.wake()

    async def _follow_strains(self) -> None:
        leaving = await self.outcomes.leaving()
        await self.strains.step()
        self.outcomes.see_off(leaving)

    async def _follow_answers(self) -> None:
        await self.ongoing.step()
        if not self.strains.idle():
            self.strain_tail.wake()

    async def _keep_open(self) -> None:
        while True:
            await asyncio.sleep(LISTENER_SECONDS)
            for room in self.reception.rooms:
                room.keep_open()

    async def _keep_moving(self) -> None:
        while True:
            await asyncio.sleep(MOVE_LOOK_SECONDS)
            self.moves.step()

    async def _keep_balance(self) -> None:
        rooms = (self.events.room, self.matches.room, self.slow.room, self.ongoing.room)
        balance = ConnectionBalancer(rooms, self.standings.neighbours, self.parts.clock.ticks)
        while True:
            await asyncio.sleep(STATUS_SECONDS)
            balance.step()

    def _seats(self) -> float:
        return len(self.reception) / max(self.parts.seats, 1)

    async def _keep_leases(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            try:
                await self.leases.sweep()
            except TriplewireError:
                logger.warning("leases were not looked after", exc_info=True)


def _render_closing(listener: ClientState) -> bytes:
    return closing_notice(listener.manner.format, listener.cursor, RETRY_MILLISECONDS)


EDGE = web.AppKey("edge", Edge)


def _auth_middlewares(parts: EdgeParts) -> list[Middleware]:
    door = AuthMiddleware(parts.authenticators, parts.is_open, parts.guests).middleware()
    return [door] if parts.witness is None else [parts.witness.refusals(), door, parts.witness.acts()]


def application(parts: EdgeParts) -> web.Application:
    """An application that serves every route of an edge, and those that came with the parts."""
    edge, origins, drain = Edge(parts), Origins(parts.origins), Drain()
    middlewares = [
        check_framing,
        drain.middleware(),
        problem_middleware(parts.metrics),
        origins.middleware(),
        decompression.refuse_compressed,
    ]
    if parts.traces is not None:
        middlewares.append(health.tracing_middleware(parts.traces))
    if parts.allowances is not None:
        middlewares.append(parts.allowances.middleware())
    middlewares += _auth_middlewares(parts)
    app = web.Application(middlewares=middlewares, client_max_size=BODY_BYTES)
    app[EDGE], app[DRAIN] = edge, drain
    add_identity_header(app, parts.identity)
    add_link_header(app)
    add_hub_links(app)
    endpoint.add_links(app)
    app.add_routes(edge.routes())
    app.cleanup_ctx.append(edge.running)
    app.on_response_prepare.append(origins.mark)
    app.on_shutdown.append(edge.send_away)
    return app
