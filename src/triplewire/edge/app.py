"""The web application of an edge, put together from its parts."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from aiohttp import web

from triplewire.clock import Clock
from triplewire.config import limits
from triplewire.edge import index, inflations
from triplewire.edge.allowances import Allowances
from triplewire.edge.announcements import Announcements
from triplewire.edge.answers import Questions
from triplewire.edge.backlogs import Backlog
from triplewire.edge.balances import Balance
from triplewire.edge.conversations import Conversations
from triplewire.edge.deliveries import Deliveries
from triplewire.edge.drains import DRAIN, Drain
from triplewire.edge.events import Events
from triplewire.edge.formats.ports import closing
from triplewire.edge.gatherings import Gatherings
from triplewire.edge.gauges import Gauges
from triplewire.edge.health import Health, Sources
from triplewire.edge.identities import new_identity, tell
from triplewire.edge.lanes import Lanes
from triplewire.edge.leases import Leases
from triplewire.edge.matches import Matches
from triplewire.edge.memories import Memories
from triplewire.edge.moves import Moves
from triplewire.edge.origins import Origins
from triplewire.edge.pages import Pages
from triplewire.edge.pasts import Pasts
from triplewire.edge.ports import Answers, Commits, Entries, Watching
from triplewire.edge.pressures import Pressure
from triplewire.edge.problems import middleware
from triplewire.edge.publications import Publications
from triplewire.edge.publishings import Publishings
from triplewire.edge.recalls import Recall
from triplewire.edge.receptions import Reception
from triplewire.edge.referrals import Referrals, link
from triplewire.edge.repeaters import Repeaters
from triplewire.edge.resumptions import Resumptions
from triplewire.edge.rooms import Addressee
from triplewire.edge.sieves import Filters, Sieves
from triplewire.edge.standings import Place, Standings
from triplewire.edge.strains import Strains
from triplewire.edge.streams import Streams
from triplewire.edge.subscriptions import Subscriptions
from triplewire.edge.tails import Tail
from triplewire.edge.taps import Taps
from triplewire.edge.ways import Ways
from triplewire.edge.windows import Load, Windows
from triplewire.edge.workers import Workers
from triplewire.errors import TriplewireError
from triplewire.log import MemoryOutbox
from triplewire.log.ports import Outbox
from triplewire.matching.chronicles import Archive
from triplewire.registry.erasures import latest
from triplewire.registry.ports import Registry
from triplewire.telemetry.flows import NOTIFICATIONS, FlowCollector
from triplewire.telemetry.heartbeats import Heartbeat
from triplewire.telemetry.metrics import Metrics
from triplewire.telemetry.standings import STANDING_SECONDS

logger = logging.getLogger(__name__)


class Idle:
    """Watches what never changes."""

    def changed(self) -> bool:
        return False


@dataclass(frozen=True)
class Parts:
    """What an edge is made of. Whoever gives the parts closes them, after the application."""

    commits: Commits
    log: Entries
    registry: Registry
    outbox: Outbox
    answers: Answers
    log_watch: Watching
    outbox_watch: Watching
    heartbeat: Callable[[], Heartbeat]
    clock: Clock
    stored: Callable[[], int] | None = None
    archive: Archive | None = None
    """Has the events that the log has let go."""
    recall: Recall = field(default_factory=Recall)
    """How much of streams is remembered for those who come back."""
    routes: Iterable[web.RouteDef] = ()
    """Routes of others, such as control's; their errors become problem documents like ours."""
    slow_outbox: Outbox = field(default_factory=MemoryOutbox)
    """Of the slow lane, and who watches it; nothing comes by one in memory."""
    slow_watch: Watching = field(default_factory=Idle)
    services: tuple[str, ...] = ()
    """The endpoints that SERVICE may ask."""
    origins: tuple[str, ...] = ()
    """Of the pages that may use the edge from a browser."""
    filters: Filters | None = None
    """Of the deployment, for those who listen to streams; None for those of all packages that are installed."""
    buffer: int = limits.CLIENT_BUFFER_BYTES
    seats: int = limits.LISTENERS
    windows: Windows = field(default_factory=Windows)
    patience: float = limits.ACK_SECONDS
    metrics: Metrics = field(default_factory=Metrics)
    repeaters: Path | None = None
    """The folder that edges over one directory share, for what relays tell them."""
    pressure: Pressure | None = None
    """Says whether the edge is near its limits; by default by its seats and its load."""
    identity: str = field(default_factory=new_identity)
    """By which relays know it; the same after a restart."""
    allowances: Allowances | None = None
    """What each client may have; everything where there are none."""
    place: Place = field(default_factory=Place)
    """Where it stands among the edges over the same stores."""


class Edge:
    """The running parts: the feeds, the tails that move them, and the threads that read."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self.readers = Workers(2, "edge-read")
        self.decoders = Workers(1, "edge-decode")
        self.historians = Workers(limits.PASTS_AT_ONCE, "edge-past")
        load = Load()
        memories = Memories(parts.recall, parts.clock, partial(latest, parts.registry))
        backlog = Backlog(parts.log, parts.archive, memories)
        self.resumptions = Resumptions(backlog, parts.clock, self.readers, self.historians)
        self.events = Events(backlog, self.readers, self.historians, parts.metrics, load=load)
        self.sieves = Sieves(parts.metrics, parts.filters)
        self.strains = Strains(self.events, parts.log, self.readers, self.sieves, parts.metrics, load=load)
        subscriptions = Subscriptions(parts.registry, parts.log, self.readers)
        self.matches = Matches(parts.outbox, parts.log, subscriptions, self.readers, parts.metrics, load=load)
        self.slow = Matches(
            parts.slow_outbox, parts.log, subscriptions, self.readers, parts.metrics, slow=True, load=load
        )
        self.pasts = Pasts(parts.log, parts.archive, parts.registry, self.historians)
        self.leases = Leases(parts.registry, parts.clock, self.readers)
        self.log_tail = Tail(parts.log_watch, self._follow_log, parts.metrics)
        self.strain_tail = Tail(Idle(), self.strains.step, parts.metrics)
        self.outbox_tail = Tail(parts.outbox_watch, self.matches.step, parts.metrics)
        self.slow_tail = Tail(parts.slow_watch, self.slow.step, parts.metrics)
        rooms = (self.events.room, self.strains.room, self.matches.room, self.slow.room)
        self.reception = Reception(
            rooms, parts.log, self.readers, parts.metrics, parts.buffer, parts.seats, parts.patience
        )
        self.pressure = parts.pressure or Pressure(self._seats, load.look, parts.clock.ticks)
        self.repeaters = Repeaters(parts.clock, parts.repeaters)
        self.referrals = Referrals(
            self.repeaters, self.pressure, self.events.latest, parts.log, self.readers, parts.metrics
        )
        self.moves = Moves(self.events, self.repeaters, self.pressure, parts.metrics)
        self.publications = Publications(parts.commits, self.decoders, parts.metrics, parts.clock, self._published)
        self.publishings = Publishings(self.publications, Origins(parts.origins))
        self.matches.room.entered = self.outbox_tail.wake
        self.slow.room.entered = self.slow_tail.wake
        self.gauges = Gauges()
        for room in (self.events.room, self.strains.room):
            self.gauges.watch(room, lambda tap: tap.stream)
        self.gauges.watch(self.matches.room, lambda _: NOTIFICATIONS)
        self.gauges.watch(self.slow.room, lambda _: NOTIFICATIONS)
        parts.metrics.registry.register(FlowCollector(self.gauges.told))
        self.standings = Standings(
            parts.place, parts.clock, parts.metrics, parts.seats, self.listeners, self.gauges.flows
        )

    def routes(self) -> list[web.RouteDef]:
        parts, read = self.parts, self.readers
        sources = Sources(parts.log, parts.outbox, parts.heartbeat, parts.stored, parts.clock, parts.slow_outbox)
        reception, lanes = self.reception, Lanes(self.matches, self.slow)
        ways = Ways(reception, Conversations(reception))
        taps = Taps(self.events, self.strains, self.sieves)
        streams = Streams(taps, reception, ways, self.resumptions, parts.windows, self.referrals)
        window = parts.windows.of(None)
        deliveries = Deliveries(lanes, self.pasts, reception, ways, self.resumptions, self.leases, window)
        resources = (
            self.publications,
            self.publishings,
            streams,
            Announcements(self.repeaters, parts.clock),
            Pages(parts.log, read),
            deliveries,
            Gatherings(streams, deliveries, reception, ways),
            Questions(parts.answers, federated=bool(parts.services)),
            Health(sources, read, parts.metrics, self.listeners, self.who, self.standings),
            self.standings,
        )
        return [*index.routes(), *(route for each in resources for route in each.routes()), *parts.routes]

    def who(self) -> dict[str, Any]:
        """Who it is, how busy, and for how many more there is room."""
        free = max(self.parts.seats - len(self.reception), 0)
        told = {"edge": self.parts.identity, "load": round(self.pressure.load, 3), "free": free}
        return {**told, "repeaters": len(self.repeaters.all())}

    def listeners(self) -> dict[str, int]:
        streams = len(self.events.room) + len(self.strains.room)
        return {"streams": streams, "subscriptions": len(self.matches.room) + len(self.slow.room)}

    async def running(self, app: web.Application) -> AsyncIterator[None]:
        """The background of the application: begins before the first request, ends after the last."""
        tails = (self.log_tail, self.strain_tail, self.outbox_tail, self.slow_tail)
        works = (
            *(tail.run() for tail in tails),
            self._keep_open(),
            self._keep_leases(),
            self._keep_moving(),
            self._keep_balance(),
            self.standings.keep(),
        )
        tasks = [asyncio.create_task(work) for work in works]
        yield
        for task in tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        self.readers.close()
        self.decoders.close()
        self.historians.close()
        self.sieves.close()

    async def send_away(self, app: web.Application) -> None:
        """Tell those who listen that this edge is closing; they come back to another, or later. Those who keep
        publishing hear of what they have sent."""
        self.publishings.close()
        for room in self.reception.rooms:
            room.close(_closing)
        with suppress(TimeoutError):
            await self.reception.seats.emptied()

    def _published(self) -> None:
        if len(self.events.room) or len(self.strains.room):
            self.log_tail.wake()

    async def _follow_log(self) -> None:
        await self.events.step()
        if not self.strains.idle():
            self.strain_tail.wake()
        if await self.matches.subscriptions.refresh():
            self.outbox_tail.wake()
            self.slow_tail.wake()

    async def _keep_open(self) -> None:
        while True:
            await asyncio.sleep(limits.LISTENER_SECONDS)
            for room in self.reception.rooms:
                room.keep_open()

    async def _keep_moving(self) -> None:
        while True:
            await asyncio.sleep(limits.MOVE_LOOK_SECONDS)
            self.moves.step()

    async def _keep_balance(self) -> None:
        rooms = (self.events.room, self.matches.room, self.slow.room)
        balance = Balance(rooms, self.standings.neighbours, self.parts.clock.ticks)
        while True:
            await asyncio.sleep(STANDING_SECONDS)
            balance.step()

    def _seats(self) -> float:
        return len(self.reception) / max(self.parts.seats, 1)

    async def _keep_leases(self) -> None:
        while True:
            await asyncio.sleep(limits.SWEEP_SECONDS)
            try:
                await self.leases.sweep()
            except TriplewireError:
                logger.warning("leases were not looked after", exc_info=True)


def _closing(listener: Addressee) -> bytes:
    return closing(listener.manner.format, listener.cursor, limits.RETRY_MILLISECONDS)


EDGE = web.AppKey("edge", Edge)


def application(parts: Parts) -> web.Application:
    """An application that serves every route of an edge, and those that came with the parts."""
    edge, origins, drain = Edge(parts), Origins(parts.origins), Drain()
    middlewares = [drain.middleware(), middleware(parts.metrics), origins.middleware(), inflations.middleware]
    if parts.allowances is not None:
        middlewares.append(parts.allowances.middleware())
    app = web.Application(middlewares=middlewares, client_max_size=limits.BODY_BYTES)
    app[EDGE], app[DRAIN] = edge, drain
    tell(app, parts.identity)
    link(app)
    app.add_routes(edge.routes())
    app.cleanup_ctx.append(edge.running)
    app.on_response_prepare.append(origins.mark)
    app.on_shutdown.append(edge.send_away)
    return app
