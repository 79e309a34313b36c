"""Relays: all strands of a declaration at work, until they are told to stop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field

from triplewire.client import AsyncClient
from triplewire.client.credentials import of_file
from triplewire.model.clock import Clock
from triplewire.relay.announcements import Announcer
from triplewire.relay.declarations import Declaration
from triplewire.relay.enrichers import Enricher, make
from triplewire.relay.ledgers import Ledger
from triplewire.relay.pauses import Pauses, Sleep
from triplewire.relay.runs import Run
from triplewire.relay.tallies import Tally


def enrichers_of(declaration: Declaration) -> list[tuple[Enricher, ...]]:
    """Those of each strand. Raises BadRequest for one that there is not, or that does not take its options."""
    return [tuple(make(each) for each in strand.enrichments) for strand in declaration.strands]


@dataclass
class Relay:
    """One process's work. It may be cut off at any moment: what it was doing is done again, once."""

    declaration: Declaration
    clock: Clock
    pauses: Pauses = field(default_factory=Pauses)
    beat: Sleep = asyncio.sleep
    """Between two announcements."""
    tallies: list[Tally] = field(default_factory=list)

    async def run(self, stop: asyncio.Event, changed: Callable[[], None] = lambda: None) -> None:
        """Carry until `stop` is set, or until no strand is left that could. `changed` is called when tallies were."""
        ledger = Ledger(self.declaration.positions)
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
                await _until(stop, [asyncio.create_task(run.go()) for run in runs])
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
        return AsyncClient(edge, attempts=0, token=default if file is None else of_file(file))

    def _runs(self, ledger: Ledger, clients: Mapping[str, AsyncClient]) -> list[Run]:
        made = zip(self.declaration.strands, enrichers_of(self.declaration), strict=True)
        return [
            Run(
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


async def _until(stop: asyncio.Event, tasks: list[asyncio.Task[None]]) -> None:
    stopping, working = asyncio.create_task(stop.wait()), asyncio.create_task(_all(tasks))
    await asyncio.wait((stopping, working), return_when=asyncio.FIRST_COMPLETED)
    for task in (stopping, *tasks):
        task.cancel()
    await asyncio.gather(stopping, *tasks, return_exceptions=True)
    with suppress(asyncio.CancelledError):
        await working


async def _all(tasks: list[asyncio.Task[None]]) -> bool:
    await asyncio.gather(*tasks)
    return True
