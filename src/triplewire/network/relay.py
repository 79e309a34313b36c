"""The relay process: all routes of a declaration, until it is told to stop.

It announces to the edges upstream where their streams can be consumed as well, and how busy that edge is. It may be
killed at any moment: a batch that was under way is published again, and stored once.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress

import uvloop

from triplewire.client import AsyncClient
from triplewire.client.requests import read_token_file
from triplewire.http.peers.repeaters import REPEATER_SECONDS
from triplewire.model.clock import Clock, SystemClock
from triplewire.model.errors import TriplewireError
from triplewire.network.declaration import RelayDeclaration
from triplewire.network.enrichers import Enricher, make_enricher
from triplewire.network.route import PositionStore, RouteRunner, RouteStatus, Sleep

logger = logging.getLogger(__name__)


def make_enrichers(declaration: RelayDeclaration) -> list[tuple[Enricher, ...]]:
    """Make the enrichers of each route. Raises BadRequest for an unknown one, or for options that it refuses."""
    return [tuple(make_enricher(each) for each in route.enrichments) for route in declaration.routes]


class Relay:
    """All routes of a declaration. `changed` is called when the state of a route changes; `sleep` waits between two
    attempts, `announce_sleep` between two announcements."""

    def __init__(
        self,
        declaration: RelayDeclaration,
        clock: Clock,
        *,
        changed: Callable[[], None] = lambda: None,
        sleep: Sleep = asyncio.sleep,
        announce_sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._declaration = declaration
        self._clock = clock
        self._sleep = sleep
        self._announce_sleep = announce_sleep
        self.statuses = [RouteStatus(route, changed) for route in declaration.routes]

    async def run(self, stop: asyncio.Event) -> None:
        """Relay until `stop` is set, or until every route is refused."""
        positions = PositionStore(self._declaration.positions)
        async with AsyncExitStack() as stack:
            stack.enter_context(positions.lock())
            clients = await self._open_clients(stack)
            runners = self._make_runners(positions, clients)
            announcer = Announcer(self._declaration, self.statuses, clients, positions.relay_id())
            announcing = asyncio.create_task(announcer.run(self._announce_sleep))
            try:
                await _run_until(stop, [asyncio.create_task(runner.run()) for runner in runners])
            finally:
                announcing.cancel()
                await asyncio.gather(announcing, return_exceptions=True)
                await announcer.withdraw()

    async def _open_clients(self, stack: AsyncExitStack) -> dict[str, AsyncClient]:
        """Open one client for each edge. Raises BadRequest for a token file that cannot be read."""
        edges = {end.edge for route in self._declaration.routes for end in (route.source, route.target)}
        return {edge: await stack.enter_async_context(self._make_client(edge)) for edge in sorted(edges)}

    def _make_client(self, edge: str) -> AsyncClient:
        """The environment's token is only for the edge downstream; each other edge gets the token that the file names
        for it, or none."""
        file = self._declaration.tokens.get(edge)
        default = None if edge == self._declaration.to else ""
        return AsyncClient(edge, attempts=0, token=default if file is None else read_token_file(file))

    def _make_runners(self, positions: PositionStore, clients: Mapping[str, AsyncClient]) -> list[RouteRunner]:
        return [
            RouteRunner(
                status,
                upstream=clients[status.route.source.edge],
                downstream=clients[status.route.target.edge],
                positions=positions,
                clock=self._clock,
                enrichers=enrichers,
                sleep=self._sleep,
            )
            for status, enrichers in zip(self.statuses, make_enrichers(self._declaration), strict=True)
        ]


async def _run_until(stop: asyncio.Event, tasks: list[asyncio.Task[None]]) -> None:
    stopping, working = asyncio.create_task(stop.wait()), asyncio.create_task(_wait_for_all(tasks))
    await asyncio.wait((stopping, working), return_when=asyncio.FIRST_COMPLETED)
    for task in (stopping, *tasks):
        task.cancel()
    await asyncio.gather(stopping, *tasks, return_exceptions=True)
    with suppress(asyncio.CancelledError):
        await working


async def _wait_for_all(tasks: list[asyncio.Task[None]]) -> bool:
    await asyncio.gather(*tasks)
    return True


class Announcer:
    """Announces the edge downstream as a repeater to the edges upstream, again and again, and withdraws in the end."""

    def __init__(
        self,
        declaration: RelayDeclaration,
        statuses: Sequence[RouteStatus],
        clients: Mapping[str, AsyncClient],
        relay_id: str,
    ) -> None:
        self._declaration = declaration
        self._statuses = statuses
        self._clients = clients
        self._relay_id = relay_id
        self._announced: set[str] = set()

    async def run(self, sleep: Sleep) -> None:
        while True:
            await self.step()
            await sleep(REPEATER_SECONDS / 3)

    async def step(self) -> None:
        """Announce to every edge upstream. One that does not answer is told the next time."""
        for edge, streams in find_mirrored_streams(self._declaration, self._statuses).items():
            try:
                health = await self._clients[self._declaration.to].health()
                load = min(1.0, max(0.0, float(health["load"])))
                announcement = {"streams": streams, "load": load, "free": health["free"]}
                await self._clients[edge].announce_repeater(self._relay_id, announcement)
                self._announced.add(edge)
            except TriplewireError as error:
                logger.warning("the repeater could not be announced to %s: %s", edge, error)

    async def withdraw(self) -> None:
        for edge in self._announced:
            try:
                await self._clients[edge].withdraw_repeater(self._relay_id)
            except TriplewireError as error:
                logger.warning("the repeater could not be withdrawn from %s: %s", edge, error)


def find_mirrored_streams(declaration: RelayDeclaration, statuses: Sequence[RouteStatus]) -> dict[str, dict[str, str]]:
    """Return, by edge upstream, its streams that are complete and current at the edge downstream, with their addresses
    for clients."""
    mirrored: dict[str, dict[str, str]] = {}
    for status in statuses:
        route = status.route
        if (
            declaration.address
            and route.complete
            and route.target.edge == declaration.to
            and status.state == "listening"
        ):
            address = f"{declaration.address}/streams/{route.target.stream}"
            mirrored.setdefault(route.source.edge, {})[route.source.stream] = address
    return mirrored


Report = Callable[[list[RouteStatus]], None]


def run_relay(declaration: RelayDeclaration, report: Report, seconds: float) -> list[RouteStatus]:
    """Relay until SIGTERM or SIGINT, or until every route is refused, and return the final statuses. `report` gets the
    statuses when one changed, at most every `seconds`, and at the end."""
    return uvloop.run(_run_until_signal(declaration, report, seconds))


async def _run_until_signal(declaration: RelayDeclaration, report: Report, seconds: float) -> list[RouteStatus]:
    stop, changed = asyncio.Event(), asyncio.Event()
    relay = Relay(declaration, SystemClock(), changed=changed.set)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    reporting = asyncio.create_task(_report_changes(relay, changed, report, seconds))
    try:
        await relay.run(stop)
    finally:
        reporting.cancel()
        await asyncio.gather(reporting, return_exceptions=True)
    report(relay.statuses)
    return relay.statuses


async def _report_changes(relay: Relay, changed: asyncio.Event, report: Report, seconds: float) -> None:
    while True:
        await changed.wait()
        changed.clear()
        report(relay.statuses)
        await asyncio.sleep(seconds)
