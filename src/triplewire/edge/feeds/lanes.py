"""Lanes: the matches of most subscriptions come by the main lane; of those that were too expensive, from some position
on, by the slow one. A listener is in the room of one lane, and those in the main lane never wait for the other."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from triplewire.config import limits
from triplewire.edge.feeds.matches import Matches
from triplewire.edge.feeds.subscriptions import Subscriptions
from triplewire.edge.formats import Format
from triplewire.edge.telling.frames import NOTHING, Frames
from triplewire.edge.telling.rooms import History, Room
from triplewire.model import Subscription


@dataclass(frozen=True)
class Lanes:
    """Both feeds."""

    main: Matches[Subscriptions]
    slow: Matches[Subscriptions]

    def of(self, subscription: Subscription) -> tuple[Room[int], History]:
        """The room where its listeners are from now on, and what was matched before they came."""
        feeds = (self.main, self.slow)
        turns = self.main.standing.turns(subscription.made)
        if len(turns) == 1:
            return self.main.room, self.main.history(subscription.made)
        parts = [Part(start, feeds[slow].room, feeds[slow].history(subscription.made)) for start, slow in turns]
        return parts[-1].room, Turning(parts)


@dataclass(frozen=True)
class Part:
    """What of a history comes by one lane: above a position, up to the next part."""

    start: int
    room: Room[int]
    history: History


@dataclass(frozen=True)
class Turning:
    """The history of a subscription that went from lane to lane: part by part."""

    parts: Sequence[Part]

    @property
    def least(self) -> int:
        """All that comes by the lanes before comes first."""
        return max(self.parts[-1].start, self.parts[-1].history.least)

    async def step(self, cursor: int, format: Format) -> tuple[Frames, int]:
        number = max(0, bisect_right([each.start for each in self.parts], cursor) - 1)
        part = self.parts[number]
        if number == len(self.parts) - 1:
            return await part.history.step(cursor, format)
        if part.room.place <= cursor:
            # That lane is not there yet, and what follows must not be told before it.
            await asyncio.sleep(limits.TAIL_SECONDS)
            return NOTHING, cursor
        frames, reached = await part.history.step(cursor, format)
        end = self.parts[number + 1].start
        return frames.upto(end), min(reached, end)
