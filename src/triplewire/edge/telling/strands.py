"""Strands: what one reader fetches of one stream or subscription, to be told at the reader's own pace.

A strand goes through history until it has reached the room's place, and is then handed what the room's others get.
Where that is not taken in time the strand gives it up, leaves, and goes through history again: it holds one step at
most.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator
from typing import Generic, Protocol, TypeVar

from triplewire.config import limits
from triplewire.edge.formats import Format
from triplewire.edge.telling.frames import Frames
from triplewire.edge.telling.marks import Mark
from triplewire.edge.telling.rooms import Last, Over
from triplewire.edge.telling.subjects import Subject
from triplewire.edge.telling.tellings import Telling
from triplewire.model import END

Key = TypeVar("Key", bound=Hashable)


class Owner(Protocol):
    """Who takes from a strand."""

    def ring(self) -> None:
        """There is something to take, or to fetch."""

    def settle(self) -> None:
        """A room has told everything up to its place."""

    def send_away(self, last: Last) -> None:
        """Nothing more comes this way."""


class Strand(Generic[Key]):
    """Everything at positions up to its cursor was fetched, and was taken or waits here."""

    def __init__(self, subject: Subject[Key], format: Format, owner: Owner) -> None:
        self.subject = subject
        self.live = False
        """It is in the room; there is nothing to fetch."""
        self.last: Last | None = None
        """What is said after all that waits here, when nothing more is to come."""
        self._cursor = self._taken = subject.after
        self._format = format
        self._owner = owner
        self._left = False
        self._waiting: deque[tuple[int, bytes]] = deque()

    @property
    def reached(self) -> int:
        """The position up to which everything was taken or waits here."""
        if self.last is not None:
            return END
        return max(self._cursor, self.subject.room.told) if self.live else self._cursor

    @property
    def waits(self) -> bool:
        """There is something to take."""
        return bool(self._waiting)

    async def fetch(self) -> None:
        """A step of history; enters the room when it has reached it."""
        history, room = self.subject.history, self.subject.room
        if self._cursor < max(room.place, history.least):
            try:
                frames, reached = await history.step(self._cursor, self._format)
            except Over as over:
                return self._owner.send_away(over.last)
            self._keep(frames.after(self._cursor))
            self._cursor = max(self._cursor, reached)
        if not self._left and self._cursor >= max(room.place, history.least):
            self.live = True
            room.attach(self.subject.key, self, history)

    def push(self, telling: Telling) -> int:
        """Called by the room, in order; how many messages it had not had."""
        fresh = telling.frames(self._format).after(self._cursor)
        if len(self._waiting) + len(fresh.positions) > limits.HISTORY_EVENTS:
            self._fall_back()
            return 0
        self._keep(fresh)
        self._cursor = max(self._cursor, *fresh.positions[-1:])
        return len(fresh.positions)

    def settle(self) -> None:
        """Called by the room when a pass is over."""
        if self._waiting:
            self._owner.ring()
        else:
            self._owner.settle()

    def finish(self, last: Last) -> None:
        """Called by the room when nothing more comes by it."""
        if self.subject.ended():
            self.last = last
            self._owner.ring()
        else:
            self._owner.send_away(last)

    def send_away(self, last: Last) -> None:
        """Called by the room when everybody is to go."""
        self._owner.send_away(last)

    def take(self, upto: int) -> Iterator[tuple[Mark, bytes]]:
        """What waits here up to a position, in order."""
        self._taken = max(self._taken, min(upto, self._cursor))
        while self._waiting and self._waiting[0][0] <= upto:
            position, part = self._waiting.popleft()
            yield Mark(position, self.subject.order), part

    def leave(self) -> None:
        """It is done with."""
        self._left = True
        self._step_out()

    def _step_out(self) -> None:
        if self.live:
            self.live = False
            self.subject.room.detach(self.subject.key, self)

    def _keep(self, frames: Frames) -> None:
        self._waiting.extend(zip(frames.positions, frames.parts, strict=True))

    def _fall_back(self) -> None:
        self._step_out()
        self._waiting.clear()
        self._cursor = self._taken
        self._owner.ring()
