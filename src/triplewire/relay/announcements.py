"""Announcements: a relay tells the edges above where their streams can be heard as well, and how busy it is there."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from triplewire.client import AsyncClient
from triplewire.config import limits
from triplewire.model.errors import TriplewireError
from triplewire.relay.declarations import Declaration
from triplewire.relay.pauses import Sleep
from triplewire.relay.tallies import Tally

logger = logging.getLogger(__name__)


def mirrored(declaration: Declaration, tallies: Sequence[Tally]) -> dict[str, dict[str, str]]:
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
        self, declaration: Declaration, tallies: Sequence[Tally], clients: Mapping[str, AsyncClient], identity: str
    ) -> None:
        self._declaration = declaration
        self._tallies = tallies
        self._clients = clients
        self._identity = identity
        self._told: set[str] = set()

    async def run(self, sleep: Sleep) -> None:
        while True:
            await self.step()
            await sleep(limits.REPEATER_SECONDS / 3)

    async def step(self) -> None:
        """Tell every edge above. Who does not answer hears it the next time."""
        for edge, streams in mirrored(self._declaration, self._tallies).items():
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
