"""Pauses: how long to wait before trying again, longer each time, and not the same for all who wait."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from triplewire.config import limits

Sleep = Callable[[float], Awaitable[object]]


@dataclass(frozen=True)
class Pauses:
    """Time and chance are given, so that a test needs neither."""

    first: float = limits.RELAY_PAUSE_FIRST
    longest: float = limits.RELAY_PAUSE_LONGEST
    chance: Callable[[], float] = random.random
    sleep: Sleep = asyncio.sleep

    def length(self, failures: int) -> float:
        """Seconds after so many failures in a row, from 1 on: between half and the whole of what doubles each time."""
        whole: float = min(self.longest, self.first * 2 ** min(failures - 1, 30))
        return whole * (1 + self.chance()) / 2

    async def wait(self, failures: int) -> None:
        await self.sleep(self.length(failures))
