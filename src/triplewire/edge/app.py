"""The web application of an edge, put together from its parts."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import suppress
from functools import partial
from typing import Any

from aiohttp import web
from aiohttp.typedefs import Middleware

from triplewire.access import EVERYONE
from triplewire.access.owners import principal_of
from triplewire.config import limits
from triplewire.config.metrics import NOTIFICATIONS, TrafficCollector
from triplewire.config.status import STATUS_SECONDS
from triplewire.edge import index, tracings
from triplewire.edge.answers import Questions
from triplewire.edge.clients.origins import Origins
from triplewire.edge.company.announcements import Announcements
from triplewire.edge.company.balances import Balance
from triplewire.edge.company.drains import DRAIN, Drain
from triplewire.edge.company.identities import tell
from triplewire.edge.company.moves import Moves
from triplewire.edge.company.pressures import Pressure
from triplewire.edge.company.referrals import Referrals, link
from triplewire.edge.company.repeaters import Repeaters
from triplewire.edge.company.standings import Standings
from triplewire.edge.contracts import Contracts
from triplewire.edge.deliveries import Deliveries
from triplewire.edge.discovery import links
from triplewire.edge.discovery.listings import Listings
from triplewire.edge.discovery.profiles import Profiles
from triplewire.edge.discovery.samples import Samples
from triplewire.edge.discovery.sightings import Sightings
from triplewire.edge.door import Door
from triplewire.edge.feeds.events import Events
from triplewire.edge.feeds.lanes import Lanes
from triplewire.edge.feeds.leases import Leases
from triplewire.edge.feeds.matches import Matches
from triplewire.edge.feeds.queries import Queries
from triplewire.edge.feeds.strains import Strains
from triplewire.edge.feeds.subscriptions import Subscriptions
from triplewire.edge.feeds.tails import Tail
from triplewire.edge.feeds.taps import Taps
from triplewire.edge.feeds.views import Views
from triplewire.edge.formats.ports import closing
from triplewire.edge.gatherings import Gatherings
from triplewire.edge.gauges import Gauges
from triplewire.edge.health import Health, Sources
from triplewire.edge.hooks.hubs import Hub, announce
from triplewire.edge.hooks.letters import Letters
from triplewire.edge.hooks.offices import Office
from triplewire.edge.hooks.rounds import Rounds
from triplewire.edge.intake import inflations
from triplewire.edge.intake.publications import Publications
from triplewire.edge.intake.publishings import Publishings
from triplewire.edge.ldes.histories import Histories
from triplewire.edge.ldes.promises import Promises
from triplewire.edge.mercure.hubs import Mercure
from triplewire.edge.outcomes import Outcomes
from triplewire.edge.pages import Pages
from triplewire.edge.parts import Idle, Parts
from triplewire.edge.past.backlogs import Backlog
from triplewire.edge.past.memories import Memories
from triplewire.edge.past.pasts import Pasts
from triplewire.edge.past.resumptions import Asked, Resumptions
from triplewire.edge.problems import middleware
from triplewire.edge.protocols import framed
from triplewire.edge.sieves import Sieves
from triplewire.edge.streams import Streams
from triplewire.edge.telling.conversations import Conversations
from triplewire.edge.telling.receptions import Reception
from triplewire.edge.telling.rooms import Addressee
from triplewire.edge.telling.subjects import Subject
from triplewire.edge.telling.ways import Ways
from triplewire.edge.telling.windows import Load
from triplewire.edge.tracings import Delivered, TracedCommits
from triplewire.edge.workers import Workers
from triplewire.model import START
from triplewire.model.errors import TriplewireError
from triplewire.storage.registry.erasure import latest_erasure_change
from triplewire.storage.registry.security import PolicyStore
from triplewire.storage.webhooks import Webhook

logger = logging.getLogger(__name__)


class Edge:
    """The running parts: the feeds, the tails that move them, and the threads that read."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self.readers = Workers(2, "edge-read")
        self.decoders = Workers(1, "edge-decode")
        self.historians = Workers(limits.PASTS_AT_ONCE, "edge-past")
        self.policies = PolicyStore(parts.registry)
        load = Load()
        memories = Memories(parts.recall, parts.clock, partial(latest_erasure_change, parts.registry))
        self.backlog = backlog = Backlog(parts.log, parts.archive, memories)
        self.resumptions = Resumptions(backlog, parts.clock, self.readers, self.historians)
        self.views = Views(self.policies)
        self.events = Events(backlog, self.readers, self.historians, parts.metrics, load=load, views=self.views)
        self.sieves = Sieves(parts.metrics, parts.filters)
        self.strains = Strains(self.events, parts.log, self.readers, self.sieves, parts.metrics, load=load)
        subscriptions = Subscriptions(parts.registry, parts.log, self.readers)
        self.matches = Matches(parts.outbox, parts.log, subscriptions, self.readers, parts.metrics, load=load)
        self.slow = Matches(
            parts.slow_outbox, parts.log, subscriptions, self.readers, parts.metrics, slow=True, load=load
        )
        queries = Queries(parts.registry, parts.log, self.readers)
        self.ongoing = Matches(parts.ongoing_outbox, parts.log, queries, self.readers, parts.metrics, load=load)
        self.pasts = Pasts(parts.log, parts.archive, parts.registry, self.historians)
        self.leases = Leases(parts.registry, parts.clock, self.readers)
        self.log_tail = Tail(parts.log_watch, self._follow_log, parts.metrics, limits.LOG_TAIL_SECONDS)
        self.strain_tail = Tail(Idle(), self._follow_strains, parts.metrics)
        self.outbox_tail = Tail(parts.outbox_watch, self.matches.step, parts.metrics)
        self.slow_tail = Tail(parts.slow_watch, self.slow.step, parts.metrics)
        self.ongoing_tail = Tail(parts.ongoing_watch, self._follow_answers, parts.metrics)
        rooms = (self.events.room, self.strains.room, self.matches.room, self.slow.room, self.ongoing.room)
        self.reception = Reception(
            rooms, parts.log, self.readers, parts.metrics, parts.buffer, parts.seats, parts.patience
        )
        self.pressure = parts.pressure or Pressure(self._seats, load.look, parts.clock.ticks)
        self.repeaters = Repeaters(parts.clock, parts.repeaters)
        self.referrals = Referrals(
            self.repeaters, self.pressure, self.events.latest, parts.log, self.readers, parts.metrics
        )
        self.moves = Moves(self.events, self.repeaters, self.pressure, parts.metrics)
        commits = parts.commits if parts.traces is None else TracedCommits(parts.commits, parts.traces)
        self.publications = Publications(
            commits, self.decoders, parts.metrics, parts.clock, self._published, self.views, parts.gate
        )
        self.publishings = Publishings(self.publications, Origins(parts.origins))
        if parts.traces is not None:
            for feed in (self.events, self.strains, self.matches, self.slow, self.ongoing):
                feed.traced = Delivered(parts.traces).told
        self.matches.room.entered = self.outbox_tail.wake
        self.slow.room.entered = self.slow_tail.wake
        self.ongoing.room.entered = self.ongoing_tail.wake
        self.strains.room.entered = self.strain_tail.wake
        self.gauges = Gauges()
        for room in (self.events.room, self.strains.room):
            self.gauges.watch(room, lambda tap: tap.stream)
        for found in (self.matches.room, self.slow.room, self.ongoing.room):
            self.gauges.watch(found, lambda _: NOTIFICATIONS)
        parts.metrics.registry.register(TrafficCollector(self.gauges.told))
        self.standings = Standings(
            parts.place, parts.clock, parts.metrics, parts.seats, self.listeners, self.gauges.flows
        )
        sightings = Sightings(self.policies)
        promises = Promises(parts.registry, parts.ages)
        self.pages = Histories(parts.log, backlog, self.historians, promises, sightings)
        samples = Samples(self.pages.newest, parts.clock)
        profiles = Profiles(parts.log, parts.registry, samples, parts.ages, parts.clock)
        self.listings = Listings(profiles, sightings, self.standings, parts.registry, parts.census, self.historians)

        reception, lanes = self.reception, Lanes(self.matches, self.slow)
        self.ways = Ways(reception, Conversations(reception))
        taps = Taps(self.events, self.strains, self.sieves)
        self.streams = Streams(taps, reception, self.ways, self.resumptions, parts.windows, self.referrals)
        self.outcomes = Outcomes(self.ongoing, taps, reception, self.ways, self.resumptions, parts.windows)
        window = parts.windows.of(None)
        self.deliveries = Deliveries(lanes, self.pasts, reception, self.ways, self.resumptions, self.leases, window)
        self.office = Office(parts.outbound, self._told, parts.clock, parts.metrics, parts.log, parts.traces)
        self.hub = Hub(self.office, parts.registry, parts.log)
        self.rounds = Rounds(self.office, parts.registry)

    def routes(self) -> list[web.RouteDef]:
        parts, read = self.parts, self.readers
        outboxes = (parts.slow_outbox, parts.ongoing_outbox)
        sources = Sources(parts.log, parts.outbox, parts.heartbeat, parts.stored, parts.clock, *outboxes)
        resources = (
            self.publications,
            self.publishings,
            self.streams,
            Announcements(self.repeaters, parts.clock),
            Pages(parts.log, self.policies, read),
            self.pages,
            self.listings,
            Mercure(self.streams, self.reception, self.ways, parts.log, self.publications, read),
            self.deliveries,
            self.outcomes,
            Gatherings(self.streams, self.deliveries, self.outcomes, self.reception, self.ways),
            Letters(parts.outbound.books, parts.registry, read),
            self.hub,
            Questions(parts.answers, self.policies, read, federated=bool(parts.services)),
            Health(sources, read, parts.metrics, self.listeners, self.who, self.standings),
            self.standings,
        )
        served = [
            *index.routes(),
            *links.routes(),
            *(route for each in resources for route in each.routes()),
            *parts.routes,
        ]
        return [*served, *Contracts(served).routes()]

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
            room.close(_closing)
        with suppress(TimeoutError):
            await self.reception.seats.emptied()

    async def _told(self, hook: Webhook, position: int | None) -> Subject[Any]:
        """What a hook is told, after a position. Raises NotFound."""
        if hook.stream is None:
            # Whoever may not see the subscription does not have it delivered either: the hook is its owner's.
            asked = None if position is None else Asked(position=position)
            return await self.deliveries.subject(hook.id, asked, EVERYONE)
        asked = Asked(position=max(position or START, hook.begin))
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
            await asyncio.sleep(limits.LISTENER_SECONDS)
            for room in self.reception.rooms:
                room.keep_open()

    async def _keep_moving(self) -> None:
        while True:
            await asyncio.sleep(limits.MOVE_LOOK_SECONDS)
            self.moves.step()

    async def _keep_balance(self) -> None:
        rooms = (self.events.room, self.matches.room, self.slow.room, self.ongoing.room)
        balance = Balance(rooms, self.standings.neighbours, self.parts.clock.ticks)
        while True:
            await asyncio.sleep(STATUS_SECONDS)
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


def _entrance(parts: Parts) -> list[Middleware]:
    door = Door(parts.authenticators, parts.is_open, parts.guests).middleware()
    return [door] if parts.witness is None else [parts.witness.refusals(), door, parts.witness.acts()]


def application(parts: Parts) -> web.Application:
    """An application that serves every route of an edge, and those that came with the parts."""
    edge, origins, drain = Edge(parts), Origins(parts.origins), Drain()
    middlewares = [framed, drain.middleware(), middleware(parts.metrics), origins.middleware(), inflations.middleware]
    if parts.traces is not None:
        middlewares.append(tracings.middleware(parts.traces))
    if parts.allowances is not None:
        middlewares.append(parts.allowances.middleware())
    middlewares += _entrance(parts)
    app = web.Application(middlewares=middlewares, client_max_size=limits.BODY_BYTES)
    app[EDGE], app[DRAIN] = edge, drain
    tell(app, parts.identity)
    link(app)
    announce(app)
    links.lead(app)
    app.add_routes(edge.routes())
    app.cleanup_ctx.append(edge.running)
    app.on_response_prepare.append(origins.mark)
    app.on_shutdown.append(edge.send_away)
    return app
