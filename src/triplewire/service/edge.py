"""The edge process: it opens the embedded stores, puts the application together top-down, and serves it.

It ends with SIGTERM, with SIGINT, or with its parent process.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from socket import socket
from typing import Any

import uvloop
from aiohttp import web

from triplewire.config import Settings
from triplewire.config.files import prepare_directory
from triplewire.config.heap import freeze_survivors
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
from triplewire.http.resources.continuous_queries import ContinuousQueryManager
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
from triplewire.storage.signals import SignalReceiver, signal_folder
from triplewire.storage.sqlite import CommitWatch
from triplewire.storage.webhooks import SqliteWebhookStore

ORPHAN_SECONDS = 2.0
"""Seconds between two checks whether the supervisor still lives."""


def run_edge(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT, or until the supervisor has ended. Raises BadRequest for an edge that would be
    open to other machines without `--open`."""
    check_auth(settings)
    configure_logging(settings.log_format, "edge")
    freeze_survivors()
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
    """Return the listening sockets that the supervisor passed on, or open new ones."""
    if settings.sockets:
        return adopt_sockets([int(each) for each in settings.sockets])
    return open_listeners(settings.host, settings.port)


async def _stop_when_orphaned(settings: Settings) -> None:
    """Send SIGTERM to this process when its supervisor is gone: one that was killed cannot stop its children."""
    while not is_orphaned(settings):
        await asyncio.sleep(ORPHAN_SECONDS)
    signal.raise_signal(signal.SIGTERM)


@contextmanager
def open_edge_parts(settings: Settings) -> Iterator[EdgeParts]:
    """Open the parts of an edge over the embedded stores, and close them in the end."""
    prepare_directory(settings.data)
    clock = SystemClock()
    with ExitStack() as stack:
        stores = _open_stores(settings, clock, stack)
        auth = make_auth(settings, stores.access, clock)
        commits = stack.enter_context(closing(GroupCommit(stores.log)))
        queries = stack.enter_context(closing(_open_queries(settings)))
        tracer = open_tracer(settings.traces, "edge", settings.trace_ratio)
        if tracer is not None:
            stack.callback(tracer.close)
        gate = ShapeGate(ShapesCache(stores.registry), ShaclValidator())
        outbound = OutboundOptions(stores.webhooks, AllowedNetworks.parsed(settings.webhook_networks))
        yield EdgeParts(
            gate=gate,
            commits=commits,
            log=stores.log,
            registry=stores.registry,
            outbox=stores.outbox,
            answers=queries,
            log_watch=CommitWatch(settings.log),
            outbox_watch=CommitWatch(settings.outbox),
            log_signals=stack.enter_context(closing(SignalReceiver(signal_folder(settings.log)))),
            outbox_signals=stack.enter_context(closing(SignalReceiver(signal_folder(settings.outbox)))),
            heartbeat=partial(read_heartbeat, settings.heartbeat),
            clock=clock,
            stored=lambda: stores.lake.files().position,
            archive=stores.history,
            statistics=lambda: dataset_statistics(
                stores.lake.files().quads, StatisticsFile(settings.statistics).read()
            ),
            retention=LakeRetention.parsed(settings.retention, settings.retention_bytes).of,
            routes=_resource_routes(settings, stores, gate, outbound, clock),
            services=settings.services,
            origins=settings.origins,
            outbound=outbound,
            linger=LingerTimes.parsed(settings.linger),
            replay_cache=ReplayCacheConfig.parsed(settings.replay_cache),
            metrics=_make_metrics(commits),
            tracer=tracer,
            identity=load_identity(settings.identity),
            rate_limits=RateLimits.from_settings(settings, clock),
            authenticators=auth.authenticators,
            is_open=auth.is_open,
            sessions=auth.sessions,
            audit=auth.audit,
            location=EdgeLocation(
                settings.edge or str(os.getpid()), settings.edge_statuses, f"{settings.host}:{settings.port}"
            ),
            repeaters=settings.data / "repeaters",
        )


@dataclass(frozen=True)
class EdgeStores:
    """The embedded stores of an edge."""

    registry: SqliteRegistry
    access: SqliteRegistry
    """Tokens, in a file of their own."""
    log: ErasureView
    outbox: SqliteOutbox
    webhooks: SqliteWebhookStore
    lake: DeltaLake
    history: LakeEntries
    """The events of the lake, for positions that the log has dropped."""


def _open_stores(settings: Settings, clock: Clock, stack: ExitStack) -> EdgeStores:
    log = stack.enter_context(closing(SqliteLog(settings.log, clock)))
    registry = stack.enter_context(closing(SqliteRegistry(settings.log, clock)))
    lake, erasing = DeltaLake(settings.lake), partial(pending_erasures, registry)
    return EdgeStores(
        registry,
        access=stack.enter_context(closing(open_token_registry(settings, clock))),
        log=ErasureView(log, erasing),
        outbox=stack.enter_context(closing(SqliteOutbox(settings.outbox))),
        webhooks=stack.enter_context(closing(SqliteWebhookStore(settings.webhooks))),
        lake=lake,
        history=LakeEntries(lake, pending=erasing),
    )


@dataclass(frozen=True)
class EdgeAuth:
    """Authentication and audit of an edge."""

    authenticators: tuple[Authenticator, ...]
    is_open: Callable[[], bool]
    sessions: Sessions
    audit: AuditMiddleware


def make_auth(settings: Settings, access: Registry, clock: Clock) -> EdgeAuth:
    """Make authentication by the setting `auth`. Raises BadRequest."""
    tokens = TokenCache(access, CommitWatch(settings.access).changed)
    authenticator = TokenAuthenticator(tokens, clock)
    authenticators = () if settings.auth == "open" else (authenticator, *_jwt_authenticators(settings, clock))
    # Only an edge that no other machine reaches is open until there is a token; any other does not start without one.
    open_without_tokens = settings.auth == "auto" and is_private(settings) and not settings.jwt_keys
    clients = ClientAddresses.parsed(settings.proxies)
    return EdgeAuth(
        authenticators,
        (lambda: not tokens.newest()) if open_without_tokens else (lambda: False),
        Sessions(clock, tokens.newest, authenticator.is_valid),
        AuditMiddleware(AuditLog(settings.audit), clock, clients.address),
    )


def _jwt_authenticators(settings: Settings, clock: Clock) -> tuple[Authenticator, ...]:
    if not settings.jwt_keys:
        return ()
    rules = JwtRules(settings.jwt_issuer, settings.jwt_audience, settings.jwt_leeway)
    return (JwtAuthenticator(KeySet(rules, clock), key_set_reader(settings.jwt_keys), clock),)


def _resource_routes(
    settings: Settings, stores: EdgeStores, gate: ShapeGate, outbound: OutboundOptions, clock: Clock
) -> list[web.RouteDef]:
    """Make the routes of subscriptions, continuous queries and all other registered resources."""
    registry, history = stores.registry, EventHistory(stores.log, stores.history)
    starts = BackfillStarts(history, clock)
    subscriptions = SubscriptionManager(
        registry,
        clock,
        head=stores.log.head,
        starts=starts,
        webhooks=WebhookRegistrar(stores.webhooks, outbound.networks),
    )
    queries = ContinuousQueryManager(
        registry,
        clock,
        lambda stream: stores.log.volume(stream) is not None,
        starts=starts,
        figures=partial(_query_figures, settings),
    )
    policies = PolicyStore(registry, PolicyListeners((subscriptions.visibility, queries)))
    explainer = SubscriptionExplainer(subscriptions, registry, history, clock)
    return [
        *registry_routes(subscriptions, OntologyManager(registry), explainer),
        *erasures.erasure_routes(Erasures(registry, clock)),
        *continuous_queries.query_routes(queries),
        *access_control.policy_routes(policies),
        *access_control.token_routes(TokenManager(stores.access, clock)),
        *validation.shape_routes(gate.shapes, gate.validator.check),
    ]


def _make_metrics(commits: GroupCommit) -> Metrics:
    metrics = Metrics()
    metrics.cpu.watch("log", lambda: commits.counts.cpu)
    metrics.cpu.watch("all", time.process_time)
    return metrics


def _query_figures(settings: Settings, id: str) -> Mapping[str, Any] | None:
    """Return the position and figures of a continuous query in the pipeline's heartbeat, or None."""
    detail = read_heartbeat(settings.heartbeat).detail.get("continuous", {})
    if "position" not in detail:
        return None
    return {"position": format_position(detail["position"]), **detail.get("figures", {}).get(id, {})}


def _open_queries(settings: Settings) -> HistoryService:
    """Open the pools of query processes. A process starts when it is first needed."""
    limits = QueryLimits.from_settings(settings)
    return HistoryService(
        duckdb=QueryWorkerPool(_query_command("duckdb", settings), limits, processes=settings.query_processes),
        spark=QueryWorkerPool(_query_command("spark", settings), limits, processes=1),
    )


def _query_command(engine: str, settings: Settings) -> WorkerCommand:
    return WorkerCommand((sys.executable, "-m", "triplewire.service.query_process", engine), to_environment(settings))
