"""Retry schedule of webhooks: exponential back-off with jitter, `Retry-After`, and when to give up."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

from triplewire.config import limits


@dataclass(frozen=True)
class RetrySchedule:
    """Chance is given, so that a test needs none."""

    attempts: int = limits.HOOK_ATTEMPTS
    first: float = limits.HOOK_PAUSE_FIRST
    longest: float = limits.HOOK_PAUSE_LONGEST
    chance: Callable[[], float] = random.random

    def pause(self, failures: int, asked: float | None = None) -> float:
        """Seconds after so many failures in a row, from 1 on: between half and the whole of what doubles each time, and
        not less than the target asked for."""
        whole: float = min(self.longest, self.first * 2 ** min(failures - 1, 30))
        return max(whole * (1 + self.chance()) / 2, min(asked or 0.0, limits.HOOK_RETRY_AFTER))

    def over(self, failures: int) -> bool:
        """Whether that was the last attempt."""
        return failures >= self.attempts


def parse_retry_after(value: str | None, now: int) -> float | None:
    """The seconds that a header `Retry-After` asks for, a number or a date, at a time in microseconds; None where it
    asks for nothing that we understand."""
    text = (value or "").strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        moment = parsedate_to_datetime(text)
        return max(0.0, moment.timestamp() - now / 1_000_000)
    except (ValueError, TypeError, OverflowError):
        return None
