"""Balances: edges that share a port share those who listen, too.

The system spreads new connections evenly, but those of listeners stay: an edge that was just started has few of them.
One that has many more than the others sends some away, who come back, to any of them.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from math import ceil
from typing import Any

from triplewire.config import limits
from triplewire.edge.formats.ports import closing
from triplewire.edge.telling.channels import Channel
from triplewire.edge.telling.listeners import Listener
from triplewire.edge.telling.rooms import Room

_AGE = 3
"""Looks for which what others told may be old; a number of one's own that has just grown is no reason."""


class Balance:
    """Takes a step every second or so."""

    def __init__(
        self,
        rooms: Sequence[Room[Any]],
        others: Callable[[], Sequence[int]],
        ticks: Callable[[], float],
        chance: Callable[[], float] = random.random,
    ) -> None:
        """`others` tells how many listen to each of the other edges on the same port."""
        self._rooms = rooms
        self._others = others
        self._ticks = ticks
        self._chance = chance
        self._own: deque[int] = deque(maxlen=_AGE)
        self._since: float | None = None

    def step(self) -> int:
        """Look how things stand, and send some away if there have been too many for a while; how many."""
        here = sum(map(len, self._rooms))
        self._own.append(here)
        extra = surplus(min(self._own), self._others())
        now = self._ticks()
        if not extra:
            self._since = None
        elif self._since is None:
            self._since = now
        if self._since is None or now - self._since < limits.BALANCE_SECONDS:
            return 0
        return self._send_away(min(extra, ceil(limits.BALANCE_SHARE * here)))

    def _send_away(self, count: int) -> int:
        chosen = list(islice(self._listeners(), count))
        for channel, listener in chosen:
            channel.flush()
            listener.cursor = max(listener.cursor, channel.place)
            # All at once would be a load of its own.
            retry = int(limits.MOVE_SPREAD_MILLISECONDS * self._chance())
            listener.finish(closing(listener.manner.format, listener.cursor, retry))
        return len(chosen)

    def _listeners(self) -> Iterator[tuple[Channel, Listener]]:
        """Those who may be sent away. Relays stay, since others depend on them."""
        for room in self._rooms:
            for key in tuple(room):
                for channel in room.channels(key):
                    if not channel.manner.priority:
                        yield from ((channel, listener) for listener in channel)


def surplus(own: int, others: Sequence[int]) -> int:
    """How many more than its share an edge has; 0 where that is not worth the trouble, or there are no others."""
    mean = (own + sum(others)) / (1 + len(others))
    extra = own - mean
    return ceil(extra) if extra > max(limits.BALANCE_LEAST, limits.BALANCE_MARGIN * mean) else 0
