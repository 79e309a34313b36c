"""Rooms: who listens to what, and how a listener comes from history into the present.

A room has a place in the order. Whoever is in the room was written everything up to there, or will be within the
pass that is going on. A listener enters when its own cursor has reached the room's place; both are looked at and
the listener is entered without giving way in between, hence there is no gap; each message is written only to
listeners whose cursor is below it, hence there is no repeat.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import suppress
from typing import Generic, Protocol, TypeVar

from triplewire.edge.frames import COMMENT, Frames
from triplewire.edge.listeners import Listener

Key = TypeVar("Key", bound=Hashable)


class History(Protocol):
    """The past of one listener's subject."""

    @property
    def least(self) -> int:
        """The position up to which the past reaches, wherever the room is: nobody enters who was not told so far."""

    async def step(self, cursor: int) -> tuple[Frames, int]:
        """The next messages above the cursor, boundedly many, and the position up to which that is all of them.

        While the room's place, or the least, is above the cursor, steps get there sooner or later.
        """


class Room(Generic[Key]):
    """Listeners by what they listen to."""

    def __init__(self, place: int = 0) -> None:
        self.place = place
        self.entered: Callable[[], None] = lambda: None
        """Called when somebody came in."""
        self._live: dict[Key, dict[Listener, None]] = {}
        self._all: dict[Listener, None] = {}

    def __len__(self) -> int:
        """How many are here or on their way through history."""
        return len(self._all)

    def __iter__(self) -> Iterator[Key]:
        """What is listened to live."""
        return iter(self._live)

    def at(self, key: Key) -> Sequence[Listener]:
        return tuple(self._live.get(key, ()))

    async def listen(self, key: Key, listener: Listener, history: History) -> None:
        """Bring the listener through history into the room and keep it there until it is done or gone."""
        with suppress(ConnectionError):
            await self._attend(key, listener, history)

    async def _attend(self, key: Key, listener: Listener, history: History) -> None:
        self._all[listener] = None
        try:
            while not listener.done and listener.cursor < max(self.place, history.least):
                await listener.replay(*await history.step(listener.cursor))
            self._live.setdefault(key, {})[listener] = None
            self.entered()
            await listener.until_done()
        finally:
            self._leave(key, listener)

    def push(self, key: Key, frames: Frames) -> int:
        """Write to all that listen to the key; the number of messages written."""
        return sum(listener.push(frames) for listener in self.at(key))

    def keep_open(self) -> None:
        """Write a comment to everybody, which also finds out those that are gone."""
        for listeners in tuple(self._live.values()):
            for listener in listeners:
                listener.tell(COMMENT)

    def close(self, message: bytes) -> None:
        """Send everybody away."""
        for listener in tuple(self._all):
            listener.finish(message)

    def finish(self, key: Key, message: bytes) -> None:
        for listener in self.at(key):
            listener.finish(message)

    def _leave(self, key: Key, listener: Listener) -> None:
        self._all.pop(listener, None)
        here = self._live.get(key, {})
        here.pop(listener, None)
        if not here:
            self._live.pop(key, None)
