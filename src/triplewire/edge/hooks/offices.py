"""Offices: what those who deliver have in common."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from triplewire.clock import Clock
from triplewire.config import limits
from triplewire.edge.hooks.callers import Caller
from triplewire.edge.hooks.gates import Gates
from triplewire.edge.hooks.notes import Notes, Sleep
from triplewire.edge.hooks.trails import Trails
from triplewire.edge.ports import Entries
from triplewire.edge.telling.subjects import Subject
from triplewire.edge.workers import Workers
from triplewire.hooks import MemoryLedger, Networks
from triplewire.hooks.ports import Books
from triplewire.hooks.schedules import Schedule
from triplewire.registry.hooks import Hook
from triplewire.telemetry.metrics import Metrics
from triplewire.telemetry.traces import Traces

Find = Callable[[Hook, int | None], Awaitable[Subject[Any]]]
"""What a hook is told, after a position; without one from where it begins. Raises NotFound where there is no such."""


@dataclass(frozen=True)
class Outbound:
    """What an edge calls others by. Time and chance are given, so that a test needs neither."""

    books: Books = field(default_factory=MemoryLedger)
    networks: Networks = field(default_factory=Networks)
    schedule: Schedule = field(default_factory=Schedule)
    sleep: Sleep = asyncio.sleep
    seconds: float = limits.HOOK_SECONDS
    """How long a call may take."""
    look: float = limits.HOOK_LOOK_SECONDS
    """Between two looks at which hooks there are."""


class Office:
    """Shared by all hooks of one edge."""

    def __init__(
        self, outbound: Outbound, find: Find, clock: Clock, metrics: Metrics, log: Entries, traces: Traces | None
    ) -> None:
        self.outbound = outbound
        self.find = find
        self.clock = clock
        self.metrics = metrics
        self.workers = Workers(1, "edge-hooks")
        self.caller = Caller(outbound.networks, clock, outbound.seconds)
        self.gates = Gates()
        self.trails = Trails(log, traces, self.workers)
        self.notes = Notes(outbound.books, self.workers, outbound.sleep)

    @property
    def books(self) -> Books:
        return self.outbound.books

    async def close(self) -> None:
        await self.caller.close()
        self.workers.close()
