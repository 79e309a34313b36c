"""Offices: what those who deliver have in common."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from triplewire.config import limits
from triplewire.config.metrics import Metrics
from triplewire.config.tracing import Tracer
from triplewire.edge.hooks.callers import Caller
from triplewire.edge.hooks.gates import Gates
from triplewire.edge.hooks.notes import Notes, Sleep
from triplewire.edge.hooks.trails import Trails
from triplewire.edge.ports import Entries
from triplewire.edge.telling.subjects import Subject
from triplewire.edge.workers import Workers
from triplewire.http.webhooks.calls import RetrySchedule
from triplewire.model.clock import Clock
from triplewire.security.webhooks import AllowedNetworks
from triplewire.storage.memory import MemoryWebhookStore
from triplewire.storage.webhooks import Webhook, WebhookStore

Find = Callable[[Webhook, int | None], Awaitable[Subject[Any]]]
"""What a hook is told, after a position; without one from where it begins. Raises NotFound where there is no such."""


@dataclass(frozen=True)
class Outbound:
    """What an edge calls others by. Time and chance are given, so that a test needs neither."""

    books: WebhookStore = field(default_factory=MemoryWebhookStore)
    networks: AllowedNetworks = field(default_factory=AllowedNetworks)
    schedule: RetrySchedule = field(default_factory=RetrySchedule)
    sleep: Sleep = asyncio.sleep
    seconds: float = limits.HOOK_SECONDS
    """How long a call may take."""
    look: float = limits.HOOK_LOOK_SECONDS
    """Between two looks at which hooks there are."""


class Office:
    """Shared by all hooks of one edge."""

    def __init__(
        self, outbound: Outbound, find: Find, clock: Clock, metrics: Metrics, log: Entries, traces: Tracer | None
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
    def books(self) -> WebhookStore:
        return self.outbound.books

    async def close(self) -> None:
        await self.caller.close()
        self.workers.close()
