"""Time: clocks, which are injected (tests give a `ManualClock`), the text form of an instant, and the back-off between
attempts.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """Wall time in microseconds since the epoch, and monotonic time in seconds since an arbitrary start."""

    def now(self) -> int:
        """Wall-clock microseconds since 1970-01-01T00:00:00Z. May jump in either direction."""

    def ticks(self) -> float:
        """Monotonic seconds: for durations, never for dates."""


@dataclass(frozen=True)
class SystemClock:
    """The machine's clocks. All instances are equal."""

    def now(self) -> int:
        return time.time_ns() // 1_000

    def ticks(self) -> float:
        return time.monotonic()


class ManualClock:
    """A clock for tests: it moves only by `advance` and `jump`."""

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
        """Set the wall clock; the monotonic clock stays."""
        self._now += microseconds


@dataclass(frozen=True)
class Backoff:
    """Exponential back-off with jitter: pauses that double with every failure in a row."""

    first: float
    """Seconds after the first failure."""
    longest: float = float("inf")
    jitter: float = 0.5
    """The share of a pause that chance may take off, so that not all clients come back at once; 0 is none."""
    chance: Callable[[], float] = random.random
    """A number from 0 to 1; tests give a constant."""

    def seconds(self, failures: int) -> float:
        """The pause after so many failures in a row, from 1 on."""
        whole: float = min(self.longest, self.first * 2 ** min(failures - 1, 30))
        return whole * (1 - self.jitter * (1 - self.chance()))


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def format_timestamp(microseconds: int) -> str:
    """ISO 8601 in UTC, with a fraction only where there is one: `2026-11-15T08:30:00Z`."""
    return (_EPOCH + timedelta(microseconds=microseconds)).isoformat().replace("+00:00", "Z")
