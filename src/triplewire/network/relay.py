"""The relay process: all routes of a declaration, until it is told to stop.

It announces to the edges upstream where their streams can be consumed as well, and how busy it is there. It may be
killed at any moment.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from typing import Any

import uvloop

from triplewire.client import AsyncClient
from triplewire.client.requests import read_token_file
from triplewire.http.peers.repeaters import REPEATER_SECONDS
from triplewire.model.clock import Clock, SystemClock
from triplewire.model.errors import TriplewireError
from triplewire.network.declaration import RelayDeclaration
from triplewire.network.enrichers import Enricher, make_enricher
from triplewire.network.route import Backoff, PositionStore, RouteRunner, RouteStatus, Sleep

# Announcements: a relay tells the edges above where their streams can be heard as well, and how busy it is there.

logger = logging.getLogger(__name__)


def find_mirrored_streams(declaration: RelayDeclaration, tallies: Sequence[RouteStatus]) -> dict[str, dict[str, str]]:
    """Of each edge above, the streams that are whole at the edge below, and their addresses for clients. Only those are
    among them that are being carried now."""
    found: dict[str, dict[str, str]] = {}
    for tally in tallies:
        strand = tally.strand
        if declaration.address and strand.whole and strand.target.edge == declaration.to and tally.state == "listening":
            address = f"{declaration.address}/streams/{strand.target.stream}"
            found.setdefault(strand.source.edge, {})[strand.source.stream] = address
    return found


class Announcer:
    """Says it again and again, and takes it back in the end."""

    def __init__(
        self,
        declaration: RelayDeclaration,
        tallies: Sequence[RouteStatus],
        clients: Mapping[str, AsyncClient],
        identity: str,
    ) -> None:
        self._declaration = declaration
        self._tallies = tallies
        self._clients = clients
        self._identity = identity
        self._told: set[str] = set()

    async def run(self, sleep: Sleep) -> None:
        while True:
            await self.step()
            await sleep(REPEATER_SECONDS / 3)

    async def step(self) -> None:
        """Tell every edge above. Who does not answer hears it the next time."""
        for edge, streams in find_mirrored_streams(self._declaration, self._tallies).items():
            try:
                health = await self._clients[self._declaration.to].health()
                told = {"streams": streams, "load": _share(health), "free": health["free"]}
                await self._clients[edge].announce_repeater(self._identity, told)
                self._told.add(edge)
            except TriplewireError as error:
                logger.warning("%s was not told of its repeater: %s", edge, error)

    async def withdraw(self) -> None:
        """Nobody is to be sent there any more."""
        for edge in self._told:
            try:
                await self._clients[edge].withdraw_repeater(self._identity)
            except TriplewireError as error:
                logger.warning("%s was not told that its repeater goes: %s", edge, error)


def _share(health: Mapping[str, Any]) -> float:
    return min(1.0, max(0.0, float(health["load"])))


def make_enrichers(declaration: RelayDeclaration) -> list[tuple[Enricher, ...]]:
    """Those of each strand. Raises BadRequest for one that there is not, or that does not take its options."""
    return [tuple(make_enricher(each) for each in strand.enrichments) for strand in declaration.strands]


@dataclass
class Relay:
    """One process's work. It may be cut off at any moment: what it was doing is done again, once."""

    declaration: RelayDeclaration
    clock: Clock
    pauses: Backoff = field(default_factory=Backoff)
    beat: Sleep = asyncio.sleep
    """Between two announcements."""
    tallies: list[RouteStatus] = field(default_factory=list)

    async def run(self, stop: asyncio.Event, changed: Callable[[], None] = lambda: None) -> None:
        """Carry until `stop` is set, or until no strand is left that could. `changed` is called when tallies were."""
        ledger = PositionStore(self.declaration.positions)
        async with AsyncExitStack() as closing:
            closing.enter_context(ledger.held())
            clients = await self._clients(closing)
            runs = self._runs(ledger, clients)
            self.tallies = [run.tally for run in runs]
            for tally in self.tallies:
                tally.changed = changed
            announcer = Announcer(self.declaration, self.tallies, clients, ledger.identity())
            announcing = asyncio.create_task(announcer.run(self.beat))
            try:
                await _run_until(stop, [asyncio.create_task(run.go()) for run in runs])
            finally:
                announcing.cancel()
                await asyncio.gather(announcing, return_exceptions=True)
                await announcer.withdraw()

    async def _clients(self, closing: AsyncExitStack) -> dict[str, AsyncClient]:
        """One for each edge. Raises BadRequest for a file with a token that cannot be read."""
        edges = {end.edge for strand in self.declaration.strands for end in (strand.source, strand.target)}
        return {edge: await closing.enter_async_context(self._client(edge)) for edge in sorted(edges)}

    def _client(self, edge: str) -> AsyncClient:
        """The token of the environment is for the edge that streams go to; others get those that are for them."""
        file = self.declaration.tokens.get(edge)
        default = None if edge == self.declaration.to else ""
        return AsyncClient(edge, attempts=0, token=default if file is None else read_token_file(file))

    def _runs(self, ledger: PositionStore, clients: Mapping[str, AsyncClient]) -> list[RouteRunner]:
        made = zip(self.declaration.strands, make_enrichers(self.declaration), strict=True)
        return [
            RouteRunner(
                strand,
                above=clients[strand.source.edge],
                below=clients[strand.target.edge],
                ledger=ledger,
                clock=self.clock,
                enrichers=enrichers,
                pauses=self.pauses,
            )
            for strand, enrichers in made
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


# The relay process.


def run_relay(
    declaration: RelayDeclaration, tell: Callable[[list[RouteStatus]], None], seconds: float
) -> list[RouteStatus]:
    """Carry until SIGTERM or SIGINT, or until nothing is left to carry. `tell` is shown how it is when that changes,
    at most once in so many seconds, and at the end. The tallies, as they are then."""
    return uvloop.run(_run_until_signal(declaration, tell, seconds))


async def _run_until_signal(
    declaration: RelayDeclaration, tell: Callable[[list[RouteStatus]], None], seconds: float
) -> list[RouteStatus]:
    relay, stop, changed = Relay(declaration, SystemClock()), asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    telling = asyncio.create_task(_report_changes(relay, changed, tell, seconds))
    try:
        await relay.run(stop, changed.set)
    finally:
        telling.cancel()
        await asyncio.gather(telling, return_exceptions=True)
    tell(relay.tallies)
    return relay.tallies


async def _report_changes(
    relay: Relay, changed: asyncio.Event, tell: Callable[[list[RouteStatus]], None], seconds: float
) -> None:
    while True:
        await changed.wait()
        changed.clear()
        tell(relay.tallies)
        await asyncio.sleep(seconds)
