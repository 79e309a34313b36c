"""Taps: where who listens to a stream is led, by what of it is asked for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from triplewire.edge.feeds.events import Events
from triplewire.edge.feeds.strains import Strains
from triplewire.edge.sieves import Sieves, Tap
from triplewire.edge.telling.rooms import History, Room
from triplewire.model import START


@dataclass(frozen=True)
class Tapped:
    """A room, what is listened to in it, and its past for one listener."""

    room: Room[Tap]
    key: Tap
    history: History


@dataclass(frozen=True)
class Taps:
    """Both feeds of events: whole streams, and what sieves let through."""

    events: Events
    strains: Strains
    sieves: Sieves

    async def of(self, stream: str, query: Iterable[tuple[str, str]], told: int = START) -> Tapped:
        """For one listener, by the parameters of its address, who knows what is lost up to a position. Raises what
        `sieve_of` and `Sieves.admit` raise."""
        asked = await self.sieves.asked(query)
        await self.events.rouse()
        if asked is None:
            return Tapped(self.events.room, Tap(stream), self.events.history(stream, told=told))
        sieve, memory = await self.sieves.admit(asked)
        tap = Tap(stream, sieve)
        self.strains.idle()
        return Tapped(self.strains.room, tap, self.strains.history(tap, memory, told))
