"""Pressures: whether an edge is near its limits, so that others should take some of those who listen."""

from __future__ import annotations

from collections.abc import Callable

from triplewire.config import limits

Share = Callable[[], float]
"""A reading from 0 to 1."""


class Pressure:
    """Of seats and of the event loop. Readings are given, so that a test strains an edge without load."""

    def __init__(self, seats: Share, work: Share, ticks: Callable[[], float]) -> None:
        """`seats` is the share that is taken, `work` that of the loop's time in which it worked, of late."""
        self._seats = seats
        self._work = work
        self._ticks = ticks
        self._since: float | None = None

    @property
    def load(self) -> float:
        """How busy it is: the share of what is scarcest."""
        return max(self._seats(), self._work())

    def look(self) -> bool:
        """Whether it is near its limits: too many seats are taken, or it has been too busy at every look for a while.
        To be called again and again."""
        now = self._ticks()
        if self._work() < limits.PRESSURE_WORK:
            self._since = None
        elif self._since is None:
            self._since = now
        busy = self._since is not None and now - self._since >= limits.PRESSURE_SECONDS
        return busy or self._seats() >= limits.PRESSURE_SEATS
