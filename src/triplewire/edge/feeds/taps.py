"""Taps: where who listens to a stream is led, by what of it is asked for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

from triplewire.access import EVERYONE, Principal, Sight
from triplewire.edge.feeds.events import Events
from triplewire.edge.feeds.strains import Strains
from triplewire.edge.past.histories import StreamHistory
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
    """Both feeds of events: whole streams, and what sieves let through, or what is in sight."""

    events: Events
    strains: Strains
    sieves: Sieves

    async def sight(self, by: Principal) -> Sight | None:
        """What somebody sees by what is in force; None is everything."""
        await self.events.rouse()
        return self.events.views.sight(by)

    async def of(
        self, stream: str, query: Iterable[tuple[str, str]], told: int = START, by: Principal = EVERYONE
    ) -> Tapped:
        """For one listener, by the parameters of its address, who knows what is lost up to a position. Raises what
        `sieve_of` and `Sieves.admit` raise."""
        asked, sight = await self.sieves.asked(query), await self.sight(by)
        if asked is None and sight is None:
            whole = self.events.history(stream, told=told)
            self._watch(whole, Tap(stream), by)
            return Tapped(self.events.room, Tap(stream), whole)
        sieve, memory = (None, None) if asked is None else await self.sieves.admit(asked)
        tap = Tap(stream, sieve, sight)
        self.strains.idle()
        history = self.strains.history(tap, memory, told)
        self._watch(history.stream, tap, by)
        return Tapped(self.strains.room, tap, history)

    async def answers(self, stream: str, query: str, told: int = START) -> Tapped:
        """The answers of a continuous query, which are events of a stream. Who may have these has all of them."""
        await self.events.rouse()
        tap = Tap(stream, query=query)
        self.strains.idle()
        return Tapped(self.strains.room, tap, self.strains.history(tap, None, told))

    def _watch(self, history: StreamHistory, tap: Tap, by: Principal) -> None:
        """Tell of the past, and then of the present, only as long as it is what somebody sees."""
        self.events.views.enter(tap, by)
        history.watch = partial(self.events.views.check, tap, by)
