"""Buckets: how much each client may take of something that flows in again as time goes by."""

from __future__ import annotations

from collections import OrderedDict

from triplewire.config import limits
from triplewire.model.clock import Clock

_SHORTEST_SECONDS = 0.001
"""That anybody is told to wait: a bucket that is just empty has something in it soon."""


class Buckets:
    """One bucket for each client. It holds what flows in within some seconds; who finds something in it may take more
    than there is, and then waits until the debt has flowed in. So large bodies pass, and the rate holds."""

    def __init__(
        self,
        rate: float,
        clock: Clock,
        *,
        seconds: float = limits.CLIENT_BURST_SECONDS,
        most: int = limits.REMEMBERED_CLIENTS,
    ) -> None:
        """`rate` is what flows in in a second; 0 lets everybody take what they want. The clients that took last are
        remembered, the others have full buckets."""
        self._rate = rate
        self._full = rate * seconds
        self._clock = clock
        self._most = most
        self._levels: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._levels)

    def take(self, client: str, amount: float = 1.0) -> float:
        """Take, or else the seconds after which to try again."""
        if not self._rate:
            return 0.0
        now = self._clock.ticks()
        level, at = self._levels.pop(client, (self._full, now))
        level = min(self._full, level + (now - at) * self._rate)
        allowed = level > 0
        self._levels[client] = (level - amount if allowed else level, now)
        if len(self._levels) > self._most:
            self._levels.popitem(last=False)
        return 0.0 if allowed else max(-level / self._rate, _SHORTEST_SECONDS)
