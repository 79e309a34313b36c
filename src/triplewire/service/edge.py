"""The edge process: opens the embedded twins, puts the application together and serves it until SIGTERM, SIGINT or the
end of its parent.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from socket import socket
from typing import Any

import uvloop

from triplewire.config import Settings
from triplewire.config.files import prepare_directory
from triplewire.config.logs import configure_logging
from triplewire.config.metrics import Metrics
from triplewire.config.settings import is_orphaned, to_environment
from triplewire.config.status import read_heartbeat
from triplewire.config.tracing import open_tracer
from triplewire.config.workers import WorkerCommand
from triplewire.history.dataset_statistics import StatisticsFile, dataset_statistics
from triplewire.history.pool import HistoryService, QueryWorkerPool
from triplewire.history.requests import QueryLimits
from triplewire.http.app import EDGE, EdgeParts, application
from triplewire.http.audit import AuditMiddleware
from triplewire.http.auth import Sessions, TokenAuthenticator
from triplewire.http.delivery.options import LingerTimes
from triplewire.http.delivery.replay_cache import ReplayCacheConfig
from triplewire.http.listeners import adopt_sockets, open_listeners
from triplewire.http.peers.status import EdgeLocation, load_identity
from triplewire.http.publish import validation
from triplewire.http.publish.validation import ShaclValidator, ShapeGate
from triplewire.http.rate_limits import ClientAddresses, RateLimits
from triplewire.http.resources import access_control, continuous_queries, erasures
from triplewire.http.resources.access_control import TokenManager
from triplewire.http.resources.continuous_queries import ContinuousQueryManager as ContinuousQueries
from triplewire.http.resources.erasures import Erasures
from triplewire.http.resources.explain import SubscriptionExplainer
from triplewire.http.resources.ontologies import OntologyManager
from triplewire.http.resources.routes import registry_routes
from triplewire.http.resources.subscription_requests import BackfillStarts, WebhookRegistrar
from triplewire.http.resources.subscriptions import SubscriptionManager
from triplewire.http.server import serve_on, stop_on_signals
from triplewire.http.webhooks.context import OutboundOptions
from triplewire.matching.event_history import EventHistory
from triplewire.model import format_position
from triplewire.model.clock import Clock, SystemClock
from triplewire.security.audit import AuditLog
from triplewire.security.jwt import JwtAuthenticator, JwtRules, KeySet, key_set_reader
from triplewire.security.principals import Authenticator
from triplewire.security.webhooks import AllowedNetworks
from triplewire.service.access import check_auth, is_private, load_certificates, open_token_registry
from triplewire.storage.lake.delta import DeltaLake
from triplewire.storage.lake.entries import LakeEntries
from triplewire.storage.lake.retention import LakeRetention
from triplewire.storage.log.erasure_view import ErasureView
from triplewire.storage.log.group_commit import GroupCommit
from triplewire.storage.log.sqlite import SqliteLog
from triplewire.storage.outbox import SqliteOutbox
from triplewire.storage.registry.erasure import pending_erasures
from triplewire.storage.registry.ports import Registry
from triplewire.storage.registry.security import PolicyListeners, PolicyStore, TokenCache
from triplewire.storage.registry.sqlite import SqliteRegistry
from triplewire.storage.registry.streams import ShapesCache
from triplewire.storage.sqlite import CommitWatch
from triplewire.storage.webhooks import SqliteWebhookStore


@dataclass(frozen=True)
class EdgeAuth:
    """Fields of an edge's parts."""

    authenticators: tuple[Authenticator, ...]
    is_open: Callable[[], bool]
    sessions: Sessions
    audit: AuditMiddleware


def make_auth(settings: Settings, access: Registry, clock: Clock) -> EdgeAuth:
    """As the settings say. Raises BadRequest."""
    ring = TokenCache(access, CommitWatch(settings.access).changed)
    knows = TokenAuthenticator(ring, clock)
    authenticators = () if settings.auth == "open" else (knows, *_jwt_authenticators(settings, clock))
    # A door that others reach is never open by itself: it does not start without tokens, and stays as it is.
    waits = settings.auth == "auto" and is_private(settings) and not settings.jwt_keys
    clients = ClientAddresses.parsed(settings.proxies)
    return EdgeAuth(
        authenticators,
        (lambda: not ring.newest()) if waits else (lambda: False),
        Sessions(clock, ring.newest, knows.is_valid),
        AuditMiddleware(AuditLog(settings.audit), clock, clients.address),
    )


def _jwt_authenticators(settings: Settings, clock: Clock) -> tuple[Authenticator, ...]:
    if not settings.jwt_keys:
        return ()
    rules = JwtRules(settings.jwt_issuer, settings.jwt_audience, settings.jwt_leeway)
    return (JwtAuthenticator(KeySet(rules, clock), key_set_reader(settings.jwt_keys), clock),)


ORPHAN_SECONDS = 2.0


def run_edge(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT, or until whoever started the process is gone. Raises BadRequest where everyone
    could come in, though nobody said that they may."""
    check_auth(settings)
    configure_logging(settings.log_format, "edge")
    uvloop.run(_serve(settings))


async def _serve(settings: Settings) -> None:
    watching = asyncio.create_task(_stop_when_orphaned(settings))
    stop = stop_on_signals()
    with open_edge_parts(settings) as parts:
        app = application(parts)
        tell = app[EDGE].status.change_state
        ready, leaving = (lambda port: tell("ready")), partial(tell, "closing")
        certificates = load_certificates(settings)
        sockets = open_sockets(settings)
        await serve_on(app, sockets, stop=stop, ready=ready, leaving=leaving, certificates=certificates)
    watching.cancel()


def open_sockets(settings: Settings) -> list[socket]:
    """Those that were left to this process, or its own."""
    if settings.sockets:
        return adopt_sockets([int(each) for each in settings.sockets])
    return open_listeners(settings.host, settings.port)


async def _stop_when_orphaned(settings: Settings) -> None:
    """A supervisor that was killed cannot stop its children: they notice, and stop as if they had been told to."""
    while not is_orphaned(settings):
        await asyncio.sleep(ORPHAN_SECONDS)
    signal.raise_signal(signal.SIGTERM)


@contextmanager
def open_edge_parts(settings: Settings) -> Iterator[EdgeParts]:
    """The embedded twins, opened for an edge, and closed after it."""
    prepare_directory(settings.data)
    clock = SystemClock()
    with ExitStack() as closing:
        whole = SqliteLog(settings.log, clock)
        closing.callback(whole.close)
        registry = SqliteRegistry(settings.log, clock)
        closing.callback(registry.close)
        access = open_token_registry(settings, clock)
        closing.callback(access.close)
        entrance = make_auth(settings, access, clock)
        log = ErasureView(whole, partial(pending_erasures, registry))
        outbox = SqliteOutbox(settings.outbox)
        closing.callback(outbox.close)
        lake = DeltaLake(settings.lake)
        archive = LakeEntries(lake, pending=partial(pending_erasures, registry))
        queries = _start_queries(settings)
        closing.callback(queries.close)
        commits = GroupCommit(log)
        closing.callback(commits.close)
        metrics = Metrics()
        traces = open_tracer(settings.traces, "edge", settings.trace_ratio)
        if traces is not None:
            closing.callback(traces.close)
        metrics.cpu.watch("log", lambda: commits.counts.cpu)
        metrics.cpu.watch("all", time.process_time)
        chronicle = EventHistory(log, archive)
        books, networks = SqliteWebhookStore(settings.webhooks), AllowedNetworks.parsed(settings.webhook_networks)
        closing.callback(books.close)
        subscriptions = SubscriptionManager(
            registry,
            clock,
            head=log.head,
            beginnings=BackfillStarts(chronicle, clock),
            webhooks=WebhookRegistrar(books, networks),
        )
        insights = SubscriptionExplainer(subscriptions, registry, chronicle, clock)
        continuous = ContinuousQueries(
            registry,
            clock,
            lambda stream: log.volume(stream) is not None,
            beginnings=BackfillStarts(chronicle, clock),
            figures=partial(_query_figures, settings),
        )
        followers = PolicyListeners((subscriptions.sightings, continuous))
        gate = ShapeGate(ShapesCache(registry), ShaclValidator())
        gate.shapes.refresh()
        yield EdgeParts(
            gate=gate,
            commits=commits,
            log=log,
            registry=registry,
            outbox=outbox,
            answers=queries,
            log_watch=CommitWatch(settings.log),
            outbox_watch=CommitWatch(settings.outbox),
            heartbeat=partial(read_heartbeat, settings.heartbeat),
            clock=clock,
            stored=lambda: lake.files().upto,
            archive=archive,
            statistics=lambda: dataset_statistics(lake.files().quads, StatisticsFile(settings.statistics).read()),
            retention=LakeRetention.parsed(settings.retention, settings.retention_bytes).of,
            routes=[
                *registry_routes(subscriptions, OntologyManager(registry), insights),
                *erasures.erasure_routes(Erasures(registry, clock)),
                *continuous_queries.query_routes(continuous),
                *access_control.policy_routes(PolicyStore(registry, followers)),
                *access_control.token_routes(TokenManager(access, clock)),
                *validation.shape_routes(gate.shapes, gate.judges.check),
            ],
            services=settings.services,
            origins=settings.origins,
            outbound=OutboundOptions(books, networks),
            linger=LingerTimes.parsed(settings.linger),
            replay_cache=ReplayCacheConfig.parsed(settings.replay_cache),
            metrics=metrics,
            tracer=traces,
            identity=load_identity(settings.identity),
            rate_limits=RateLimits.from_settings(settings, clock),
            authenticators=entrance.authenticators,
            is_open=entrance.is_open,
            sessions=entrance.sessions,
            audit=entrance.audit,
            location=EdgeLocation(
                settings.edge or str(os.getpid()), settings.edge_statuses, f"{settings.host}:{settings.port}"
            ),
            repeaters=settings.data / "repeaters",
        )


def _query_figures(settings: Settings, id: str) -> Mapping[str, Any] | None:
    """What the pipeline tells of a continuous query in its heartbeat, if it does."""
    told = read_heartbeat(settings.heartbeat).detail.get("ongoing", {})
    if "position" not in told:
        return None
    return {"position": format_position(told["position"]), **told.get("figures", {}).get(id, {})}


def _start_queries(settings: Settings) -> HistoryService:
    """Processes of their own, which read the same settings. The first of them starts while the edge already serves,
    the one with Spark when it is needed."""
    bounds = QueryLimits.from_settings(settings)
    queries = HistoryService(
        duckdb=QueryWorkerPool(_launch("duckdb", settings), bounds, processes=settings.query_processes),
        spark=QueryWorkerPool(_launch("spark", settings), bounds, processes=1),
    )
    queries.start()
    return queries


def _launch(engine: str, settings: Settings) -> WorkerCommand:
    return WorkerCommand((sys.executable, "-m", "triplewire.service.query_process", engine), to_environment(settings))
