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
from triplewire.http.ports import EdgeLog, ThreadPool
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
from triplewire.storage.memory import MemoryWebhookStore
from triplewire.storage.webhooks import DeadLetter, ProgressStore, Webhook, WebhookProgress, WebhookStore

WEBHOOK_POLL_SECONDS: Final = 0.25
"""Between two looks at which hooks there are, and whose turn it is to deliver: that long a new one waits at most."""


# Notes: how far hooks are, written down for many at once.

Sleep = Callable[[float], Awaitable[object]]

logger = logging.getLogger(__name__)


class DeliveryProgress:
    """What was delivered is noted a little later, since to deliver it again does no harm; what is parked is noted
    before anything comes of it. Where the disk is full that waits, and what was delivered meanwhile is noted then."""

    def __init__(self, ledger: ProgressStore, workers: ThreadPool, sleep: Sleep) -> None:
        self._ledger = ledger
        self._workers = workers
        self._sleep = sleep
        self._places: dict[str, WebhookProgress] = {}
        self._letters: list[tuple[DeadLetter, asyncio.Future[None]]] = []
        self._bell = asyncio.Event()

    def note(self, hook: str, place: WebhookProgress) -> None:
        self._places[hook] = place
        self._bell.set()

    async def park(self, letter: DeadLetter) -> None:
        """Durably, together with the place after it. Waits for as long as that takes."""
        parked = asyncio.get_running_loop().create_future()
        self._letters.append((letter, parked))
        self.note(letter.hook, WebhookProgress(letter.position))
        await parked

    def drop(self, hook: str) -> None:
        """Nothing is to be noted of it."""
        self._places.pop(hook, None)

    async def keep(self) -> None:
        """Until cancelled."""
        while True:
            await self._bell.wait()
            self._bell.clear()
            try:
                await self.flush()
            except TriplewireError as error:
                logger.warning("how far hooks are could not be noted, and will be: %s", error)
                await self._sleep(WEBHOOK_PAUSE_FIRST)
                self._bell.set()

    async def flush(self) -> None:
        """Note all that there is. What could not be is there still, unless something newer is."""
        places, self._places = self._places, {}
        letters, self._letters = self._letters, []
        if not places and not letters:
            return
        try:
            await self._workers.run(self._ledger.note, places, [letter for letter, _ in letters])
        except BaseException:
            self._places = {**places, **self._places}
            self._letters = [*letters, *self._letters]
            raise
        for _, parked in letters:
            if not parked.done():
                parked.set_result(None)


# Trails: calls go on with the trace of the event that they tell of, where events are traced.


@dataclass(frozen=True)
class TraceLinks:
    """Finds them in the log. Of an event that is kept no more, and where there is no collector, there is none."""

    log: EdgeLog
    traces: Tracer | None
    workers: ThreadPool

    async def of(self, position: int) -> TraceParent | None:
        """The span under which the event at a position was published."""
        return None if self.traces is None else await self.workers.run(self._kept, position)

    @contextmanager
    def call(self, parent: TraceParent | None) -> Iterator[Mapping[str, str]]:
        """A span for as long as a call lasts; and what the call is to say of it."""
        span = None if self.traces is None or parent is None else self.traces.begin("call", str(parent), outward=True)
        if span is None:
            yield {}
            return
        with span:
            yield {HEADER: str(span.parent)}

    def _kept(self, position: int) -> TraceParent | None:
        found = self.log.read(position - 1, position, 1)
        return next(iter(parse_parents(found.column("extensions").to_pylist(), 1)), None)


FindSubscribable = Callable[[Webhook, int | None], Awaitable[Subscribable[Any]]]
"""What a hook is told, after a position; without one from where it begins. Raises NotFound where there is no such."""


@dataclass(frozen=True)
class OutboundOptions:
    """What an edge calls others by. Time and chance are given, so that a test needs neither."""

    books: WebhookStore = field(default_factory=MemoryWebhookStore)
    networks: AllowedNetworks = field(default_factory=AllowedNetworks)
    schedule: RetrySchedule = field(default_factory=RetrySchedule)
    sleep: Sleep = asyncio.sleep
    seconds: float = WEBHOOK_SECONDS
    """How long a call may take."""
    look: float = WEBHOOK_POLL_SECONDS
    """Between two looks at which hooks there are."""


class DeliveryContext:
    """Shared by all hooks of one edge."""

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
        self.gates = ConcurrencyLimit()
        self.trails = TraceLinks(log, traces, self.workers)
        self.notes = DeliveryProgress(outbound.books, self.workers, outbound.sleep)

    @property
    def books(self) -> WebhookStore:
        return self.outbound.books

    async def close(self) -> None:
        await self.caller.close()
        self.workers.close()
