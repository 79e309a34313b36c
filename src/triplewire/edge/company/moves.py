"""Moves: an edge that is near its limits tells some of those who listen to go on at a repeater."""

from __future__ import annotations

import random
from collections.abc import Callable
from math import ceil

from triplewire.config import limits
from triplewire.config.metrics import Metrics
from triplewire.edge.company.pressures import Pressure
from triplewire.edge.company.referrals import located
from triplewire.edge.company.repeaters import Repeaters
from triplewire.edge.feeds.events import Events
from triplewire.edge.formats import NDJSON, SSE
from triplewire.edge.formats.ports import move
from triplewire.edge.formats.sse import SSE_BY_EVENT
from triplewire.edge.sieves import Tap
from triplewire.edge.telling.channels import Channel
from triplewire.edge.telling.listeners import Listener

_READABLE = (SSE, SSE_BY_EVENT, NDJSON)
"""Formats whose readers see a message about the connection. A WebSocket of a browser follows nobody."""


class Moves:
    """Takes a step every second or so."""

    def __init__(
        self,
        events: Events,
        repeaters: Repeaters,
        pressure: Pressure,
        metrics: Metrics,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._moved = metrics.referred.labels("move")
        self._events = events
        self._repeaters = repeaters
        self._pressure = pressure
        self.chance = chance

    def step(self) -> int:
        """Look how things stand, and move a share of the listeners if they are near the limits; how many."""
        self._events.latest.want(bool(self._repeaters.all()))
        if not self._pressure.look():
            return 0
        room = self._events.room
        return sum(self._channel(tap, channel) for tap in tuple(room) for channel in room.channels(tap))

    def _channel(self, tap: Tap, channel: Channel) -> int:
        """Some of a channel. Relays stay, since others depend on them, and who listens through a sieve, which may
        remember what it has seen."""
        event = self._events.latest.of(tap.stream)
        if channel.manner.priority or channel.manner.format not in _READABLE or tap.sieve is not None or event is None:
            return 0
        channel.flush()
        listeners = list(channel)
        told = 0
        for listener in listeners[: ceil(limits.MOVE_SHARE * len(listeners))]:
            if (address := self._repeaters.of(tap.stream)) is None:
                break
            self._tell(listener, located(address, [("format", listener.manner.format.name)], event))
            told += 1
        return told

    def _tell(self, listener: Listener, location: str) -> None:
        # All at once would be a load of its own, there.
        retry = int(limits.MOVE_SPREAD_MILLISECONDS * self.chance())
        listener.cursor = max(listener.cursor, self._events.room.place)
        self._moved.inc()
        listener.finish(move(listener.manner.format, listener.cursor, location, retry))
