"""The webhook scheduler: one edge of all that share a store holds the lease, and runs a deliverer for each webhook
that is on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Final

from triplewire.http.webhooks.context import DeliveryContext
from triplewire.http.webhooks.deliverer import Deliverer
from triplewire.model import START
from triplewire.model.errors import TriplewireError
from triplewire.storage.registry.ports import Registry
from triplewire.storage.webhooks import (
    WEBHOOK,
    Webhook,
    WebhookProgress,
    WebhookState,
    webhook_from_change,
    webhook_to_value,
)

WEBHOOK_PROGRESS_SECONDS: Final = 30.0
"""Seconds between two writes of the positions of idle webhooks, so that events that they did not need are not reported
as lost when the log drops them."""


logger = logging.getLogger(__name__)


class Scheduler:
    """Delivers the webhooks of all edges over the same stores, while it holds the lease."""

    def __init__(self, context: DeliveryContext, registry: Registry) -> None:
        self._context = context
        self._registry = registry
        self._seen: int = START
        self._progress: Mapping[str, WebhookProgress] = {}
        self._deliverers: dict[str, tuple[Deliverer, asyncio.Task[None]]] = {}
        self._replays: dict[str, asyncio.Task[None]] = {}
        self._noted = context.clock.ticks()

    def __len__(self) -> int:
        """The number of webhooks that are delivered here."""
        return len(self._deliverers)

    async def run(self) -> None:
        """Wait for the lease, then deliver until cancelled. A step that fails is repeated a little later."""
        while not await self._context.workers.run(self._context.store.acquire):
            await asyncio.sleep(self._context.outbound.poll)
        progress = asyncio.create_task(self._context.progress.run())
        try:
            while True:
                await self._try()
                await asyncio.sleep(self._context.outbound.poll)
        finally:
            await self._stop(progress)

    async def step(self) -> None:
        """Start, renew and stop deliverers as the registry changed, and start requested replays."""
        changes = await self._context.workers.run(self._registry.list, WEBHOOK, after=self._seen)
        if self._seen == START and changes:
            self._progress = await self._context.workers.run(self._context.store.progress)
        for change in changes:
            await self._take(webhook_from_change(change))
            self._seen = change.position
        self._context.metrics.webhooks.set(len(self._deliverers))
        if self._deliverers:
            await self._replay()
            self._note_idle()

    async def _try(self) -> None:
        try:
            await self.step()
        except TriplewireError as error:
            logger.warning("webhooks could not be checked; trying again: %s", error)
            self._context.metrics.poll_failures.inc()

    async def _take(self, hook: Webhook) -> None:
        known = self._deliverers.get(hook.id)
        if hook.state is WebhookState.ON and known is not None:
            await self._renew(known[0], hook)
        elif hook.state is WebhookState.ON:
            deliverer = Deliverer(hook, self._context, self._progress.get(hook.id))
            self._deliverers[hook.id] = deliverer, asyncio.create_task(self._deliver(deliverer))
        elif known is not None:
            known[1].cancel()
            await asyncio.wait([known[1]])
        if hook.state is WebhookState.ENDED:
            await self._settle(hook, WebhookState.ENDED)

    async def _deliver(self, deliverer: Deliverer) -> None:
        try:
            while (state := await deliverer.run()) is WebhookState.ENDED and await self._is_renewed(deliverer):
                pass
            await self._settle(deliverer.hook, state)
        except asyncio.CancelledError:
            raise
        except Exception:
            logger.exception("webhook %s is not delivered any more until this edge restarts", deliverer.hook.id)
        finally:
            self._deliverers.pop(deliverer.hook.id, None)

    async def _is_renewed(self, deliverer: Deliverer) -> bool:
        """Whether its lease was renewed just when it ended, which this edge may not have read yet."""
        change = await self._context.workers.run(self._registry.get, WEBHOOK, deliverer.hook.id)
        if change is not None and (hook := webhook_from_change(change)).state is WebhookState.ON:
            await self._renew(deliverer, hook)
        return deliverer.leased

    async def _renew(self, deliverer: Deliverer, hook: Webhook) -> None:
        deliverer.renew(hook, await self._context.workers.run(self._context.store.secret, hook.id))

    async def _settle(self, hook: Webhook, state: WebhookState) -> None:
        """Store the final state of a webhook."""
        self._context.progress.drop(hook.id)
        await self._context.workers.run(self._write, hook, state)

    def _write(self, hook: Webhook, state: WebhookState) -> None:
        if state is WebhookState.GONE:
            self._registry.put([(WEBHOOK, hook.id, webhook_to_value(replace(hook, state=state)))])
        else:
            self._registry.put([(WEBHOOK, hook.id, None)])
            self._context.store.forget(hook.id)

    async def _replay(self) -> None:
        for hook, positions in (await self._context.workers.run(self._context.store.redeliveries)).items():
            known = self._deliverers.get(hook)
            if known is not None and hook not in self._replays:
                task = self._replays[hook] = asyncio.create_task(known[0].replay(positions))
                task.add_done_callback(lambda _, hook=hook: self._replays.pop(hook, None))  # type: ignore[misc]

    def _note_idle(self) -> None:
        now = self._context.clock.ticks()
        if now - self._noted >= WEBHOOK_PROGRESS_SECONDS:
            self._noted = now
            for deliverer, _ in tuple(self._deliverers.values()):
                deliverer.note_idle()

    async def _stop(self, progress: asyncio.Task[None]) -> None:
        tasks = [*(task for _, task in self._deliverers.values()), *self._replays.values(), progress]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        with suppress(TriplewireError):
            await self._context.progress.flush()
        await self._context.workers.run(self._context.store.release)
