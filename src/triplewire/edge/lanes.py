"""Lanes: the matches of most subscriptions come by the main lane; of those that were too expensive, from some position
on, by the slow one. A listener is in the room of one lane, and those in the main lane never wait for the other."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from triplewire.config import limits
from triplewire.edge.frames import NOTHING, Frames
from triplewire.edge.matches import Matches
from triplewire.edge.rooms import History, Room
from triplewire.model import Subscription


@dataclass(frozen=True)
class Lanes:
    """Both feeds."""

    main: Matches
    slow: Matches

    def of(self, subscription: Subscription) -> tuple[Room[int], History]:
        """The room where its listeners are from now on, and what was matched before they came."""
        moved = self.main.subscriptions.moved(subscription)
        past = self.main.history(subscription)
        if moved is None:
            return self.main.room, past
        return self.slow.room, Turning(past, self.slow.history(subscription), self.main.room, moved)


@dataclass(frozen=True)
class Turning:
    """The history of a subscription that went from one lane to the other at a position."""

    before: History
    after: History
    main: Room[int]
    moved: int

    @property
    def least(self) -> int:
        """All that comes by the main lane comes first."""
        return max(self.moved, self.after.least)

    async def step(self, cursor: int) -> tuple[Frames, int]:
        if cursor >= self.moved:
            return await self.after.step(cursor)
        if self.main.place <= cursor:
            # The main lane is not there yet, but never far away.
            await asyncio.sleep(limits.TAIL_SECONDS)
            return NOTHING, cursor
        frames, reached = await self.before.step(cursor)
        return frames, min(reached, self.moved)
