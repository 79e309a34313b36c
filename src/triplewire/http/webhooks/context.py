"""The delivery context that all webhooks of an edge share: outbound calls, delivery progress, and trace propagation.

Progress is written in batches, a little after delivery, since a repeated delivery does no harm; a dead letter is
written before the delivery goes on. While the disk is full that waits. A call carries the trace of the event that it
delivers.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from triplewire.config.metrics import Metrics
from triplewire.config.tracing import HEADER, TraceParent, Tracer, parse_parents
from triplewire.http.delivery.topics import Subscribable
from triplewire.http.ports import ThreadPool
from triplewire.http.webhooks.calls import (
    WEBHOOK_PAUSE_FIRST,
    WEBHOOK_SECONDS,
    ConcurrencyLimit,
    OutboundCaller,
    RetrySchedule,
)
from triplewire.model.clock import Clock
from triplewire.model.errors import TriplewireError
from triplewire.security.webhooks import AllowedNetworks
from triplewire.storage.log.ports import EdgeLog
from triplewire.storage.memory import MemoryWebhookStore
from triplewire.storage.webhooks import DeadLetter, Webhook, WebhookProgress, WebhookStore

WEBHOOK_POLL_SECONDS: Final = 0.25
"""Seconds between two looks at the registry and at the scheduler's lease: a new webhook waits that long, at most."""


Sleep = Callable[[float], Awaitable[object]]

logger = logging.getLogger(__name__)


class DeliveryProgress:
    """Stores the positions of webhooks in batches, a little after delivery, and dead letters before delivery goes on.
    While the disk is full, both wait."""

    def __init__(self, store: WebhookStore, workers: ThreadPool, sleep: Sleep) -> None:
        self._store = store
        self._workers = workers
        self._sleep = sleep
        self._progress: dict[str, WebhookProgress] = {}
        self._letters: list[tuple[DeadLetter, asyncio.Future[None]]] = []
        self._changed = asyncio.Event()

    def note(self, hook: str, progress: WebhookProgress) -> None:
        self._progress[hook] = progress
        self._changed.set()

    async def park(self, letter: DeadLetter) -> None:
        """Store a dead letter, together with the position after it; waits for as long as that takes."""
        parked = asyncio.get_running_loop().create_future()
        self._letters.append((letter, parked))
        self.note(letter.hook, WebhookProgress(letter.position))
        await parked

    def drop(self, hook: str) -> None:
        """Forget the unwritten progress of a webhook."""
        self._progress.pop(hook, None)

    async def run(self) -> None:
        """Write progress until cancelled."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            try:
                await self.flush()
            except TriplewireError as error:
                logger.warning("the progress of webhooks could not be stored; trying again: %s", error)
                await self._sleep(WEBHOOK_PAUSE_FIRST)
                self._changed.set()

    async def flush(self) -> None:
        """Write everything. After an error it is still there, unless something newer is."""
        progress, self._progress = self._progress, {}
        letters, self._letters = self._letters, []
        if not progress and not letters:
            return
        try:
            await self._workers.run(self._store.record, progress, [letter for letter, _ in letters])
        except BaseException:
            self._progress = {**progress, **self._progress}
            self._letters = [*letters, *self._letters]
            raise
        for _, parked in letters:
            if not parked.done():
                parked.set_result(None)


@dataclass(frozen=True)
class TraceLinks:
    """Finds the traces of events in the log. Without a collector, and for events no longer retained, there is none."""

    log: EdgeLog
    traces: Tracer | None
    workers: ThreadPool

    async def find(self, position: int) -> TraceParent | None:
        """The span under which the event at a position was published."""
        return None if self.traces is None else await self.workers.run(self._read, position)

    @contextmanager
    def call(self, parent: TraceParent | None) -> Iterator[Mapping[str, str]]:
        """A span for the duration of a call, and the headers that the call has for it."""
        span = None if self.traces is None or parent is None else self.traces.begin("call", str(parent), outward=True)
        if span is None:
            yield {}
            return
        with span:
            yield {HEADER: str(span.parent)}

    def _read(self, position: int) -> TraceParent | None:
        entries = self.log.read(position - 1, position, 1)
        return next(iter(parse_parents(entries.column("extensions").to_pylist(), 1)), None)


FindSubscribable = Callable[[Webhook, int | None], Awaitable[Subscribable[Any]]]
"""Finds the messages of a webhook after a position, or from its start. Raises NotFound."""


@dataclass(frozen=True)
class OutboundOptions:
    """Settings of outbound calls. Time and chance are given, so that a test needs neither."""

    store: WebhookStore = field(default_factory=MemoryWebhookStore)
    networks: AllowedNetworks = field(default_factory=AllowedNetworks)
    schedule: RetrySchedule = field(default_factory=RetrySchedule)
    sleep: Sleep = asyncio.sleep
    seconds: float = WEBHOOK_SECONDS
    """Time limit of a call."""
    poll: float = WEBHOOK_POLL_SECONDS
    """Seconds between two looks at the registry."""


class DeliveryContext:
    """Everything that the webhooks of one edge share."""

    def __init__(
        self,
        outbound: OutboundOptions,
        find: FindSubscribable,
        clock: Clock,
        metrics: Metrics,
        log: EdgeLog,
        traces: Tracer | None,
    ) -> None:
        self.outbound = outbound
        self.find = find
        self.clock = clock
        self.metrics = metrics
        self.workers = ThreadPool(1, "edge-hooks")
        self.caller = OutboundCaller(outbound.networks, clock, outbound.seconds)
        self.limit = ConcurrencyLimit()
        self.traces = TraceLinks(log, traces, self.workers)
        self.progress = DeliveryProgress(outbound.store, self.workers, outbound.sleep)

    @property
    def store(self) -> WebhookStore:
        return self.outbound.store

    async def close(self) -> None:
        await self.caller.close()
        self.workers.close()
