"""Rooms: who listens to what, and how a listener comes from history into the present.

A room has a place in the order. Whoever is in the room was given everything up to there, or will be within the
pass that is going on. A listener enters when its own cursor has reached the room's place; both are looked at and
the listener is entered without giving way in between, hence there is no gap; each message is written only to
listeners whose cursor is below it, hence there is no repeat.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Generic, Protocol, TypeVar

from triplewire.edge.formats import Format
from triplewire.edge.formats.ports import failed
from triplewire.edge.telling.channels import Channel
from triplewire.edge.telling.frames import Frames
from triplewire.edge.telling.listeners import Listener
from triplewire.edge.telling.manners import Manner
from triplewire.edge.telling.tellings import Telling
from triplewire.edge.telling.windows import Load

Key = TypeVar("Key", bound=Hashable)


class Addressee(Protocol):
    """Whom a last message is for."""

    @property
    def cursor(self) -> int: ...

    @property
    def manner(self) -> Manner: ...


Last = Callable[[Addressee], bytes]
"""The last message of somebody."""


class Over(Exception):
    """A history can tell no more. `detail` is what its listener is told at last."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail

    def last(self, listener: Addressee) -> bytes:
        """How it is told."""
        return failed(listener.manner.format, listener.cursor, self.detail)


class History(Protocol):
    """The past of one listener's subject."""

    @property
    def least(self) -> int:
        """The position up to which the past reaches, wherever the room is: nobody enters who was not told so far."""

    async def step(self, cursor: int, format: Format) -> tuple[Frames, int]:
        """The next messages above the cursor, boundedly many, and the position up to which that is all of them.

        While the room's place, or the least, is above the cursor, steps get there sooner or later. Raises Over.
        """


class Attached(Protocol):
    """Somebody who is given what others are written, to tell it at a pace of its own."""

    def push(self, telling: Telling) -> int:
        """Messages, in order; how many of them it had not had."""

    def settle(self) -> None:
        """A pass is over."""

    def finish(self, last: Last) -> None:
        """Nothing more comes of the key by this room."""

    def send_away(self, last: Last) -> None:
        """Nothing more comes from this edge."""


class Room(Generic[Key]):
    """Listeners by what they listen to, those of one manner together."""

    def __init__(self, place: int = 0, load: Load | None = None) -> None:
        self.place = self.told = place
        """Of these the second follows when a pass is over: everything up to there was given to those who are here."""
        self.entered: Callable[[], None] = lambda: None
        """Called when somebody came in."""
        self.closed: Callable[[Key, Channel], None] = lambda key, channel: None
        """Called when the last listener of a channel is gone."""
        self._load = load or Load()
        self._live: dict[Key, dict[Manner, Channel]] = {}
        self._all: dict[Listener, None] = {}
        self._attached: dict[Key, dict[Attached, None]] = {}

    def __len__(self) -> int:
        """How many are here or on their way through history."""
        return len(self._all) + sum(map(len, self._attached.values()))

    def __iter__(self) -> Iterator[Key]:
        """What is listened to live."""
        return iter({**self._live, **self._attached})

    def __contains__(self, key: Key) -> bool:
        """Whether somebody listens to it live."""
        return key in self._live or key in self._attached

    def channels(self, key: Key) -> Sequence[Channel]:
        """Of those who listen to a key; those that go before others come first."""
        return sorted(self._live.get(key, {}).values(), key=lambda each: not each.manner.priority)

    def at(self, key: Key) -> Sequence[Listener]:
        return [listener for channel in self.channels(key) for listener in channel]

    async def listen(self, key: Key, listener: Listener, history: History) -> None:
        """Bring the listener through history into the room, where it stays until it is over."""
        self._all[listener] = None
        listener.left = partial(self._leave, key, listener)
        with suppress(ConnectionError), _told_at_last(listener):
            while not listener.over and listener.cursor < max(self.place, history.least):
                await listener.replay(*await history.step(listener.cursor, listener.manner.format))
        if listener.over:
            return
        self._channel(key, listener.manner).enter(listener)
        self.entered()

    def push(self, key: Key, telling: Telling) -> int:
        """Give messages to all that listen to the key; how many times they are written."""
        written = sum(channel.push(telling) for channel in self.channels(key))
        return written + sum(each.push(telling) for each in tuple(self._attached.get(key, ())))

    def settle(self) -> None:
        """A pass is over: everything up to the place was given out."""
        self.told = self.place
        for each in self._everyone_attached():
            each.settle()

    def attach(self, key: Key, each: Attached, history: History) -> None:
        """Somebody comes in who has had everything up to the place from history."""
        self._attached.setdefault(key, {})[each] = None
        self.entered()

    def detach(self, key: Key, each: Attached) -> None:
        here = self._attached.get(key, {})
        here.pop(each, None)
        if not here:
            self._attached.pop(key, None)

    def keep_open(self) -> None:
        """Write a comment to everybody."""
        for channel in self._channels():
            channel.tell(channel.manner.format.comment)

    def close(self, last: Last) -> None:
        """Send everybody away."""
        for channel in self._channels():
            channel.close(last)
        for listener in tuple(self._all):
            listener.finish(last(listener))
        for each in self._everyone_attached():
            each.send_away(last)

    def finish(self, key: Key, last: Last) -> None:
        for channel in self.channels(key):
            channel.close(last)
        for each in tuple(self._attached.get(key, ())):
            each.finish(last)

    def _everyone_attached(self) -> list[Attached]:
        return [each for here in self._attached.values() for each in here]

    def _channels(self) -> list[Channel]:
        return [channel for channels in self._live.values() for channel in channels.values()]

    def _channel(self, key: Key, manner: Manner) -> Channel:
        channels = self._live.setdefault(key, {})
        found = channels.get(manner)
        if found is None:
            found = channels[manner] = Channel(manner, self._load)
        return found

    def _leave(self, key: Key, listener: Listener) -> None:
        self._all.pop(listener, None)
        channels = self._live.get(key, {})
        channel = channels.get(listener.manner)
        if channel is None:
            return
        channel.leave(listener)
        if not len(channel):
            channel.flush()
            del channels[listener.manner]
            self.closed(key, channel)
        if not channels:
            self._live.pop(key, None)


@contextmanager
def _told_at_last(listener: Listener) -> Iterator[None]:
    try:
        yield
    except Over as over:
        listener.finish(over.last(listener))
