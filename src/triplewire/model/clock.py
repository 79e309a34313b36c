"""Clocks are injected: code that needs the time is given a `Clock`, and tests give a `ManualClock`."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Protocol


class Clock(Protocol):
    """Tells the time in microseconds since the epoch (wall) and in seconds of an arbitrary start (ticks)."""

    def now(self) -> int:
        """Wall-clock microseconds since 1970-01-01T00:00:00Z. May jump in either direction."""

    def ticks(self) -> float:
        """Monotonic seconds: for durations, never for dates."""


@dataclass(frozen=True)
class SystemClock:
    """The machine's clocks. One is as good as another, and equal to it."""

    def now(self) -> int:
        return time.time_ns() // 1_000

    def ticks(self) -> float:
        return time.monotonic()


class ManualClock:
    """A clock that moves when told to; a test sets it forward, back, or lets it jump."""

    def __init__(self, now: int = 1_700_000_000_000_000) -> None:
        self._now = now
        self._ticks = 0.0

    def now(self) -> int:
        return self._now

    def ticks(self) -> float:
        return self._ticks

    def advance(self, seconds: float) -> None:
        self._ticks += seconds
        self._now += int(seconds * 1_000_000)

    def jump(self, microseconds: int) -> None:
        """The wall clock is set; the monotonic one does not notice."""
        self._now += microseconds
