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
"""Between two notes of how far hooks are to which nothing was delivered, so that what they have not missed is not taken
for lost when the log lets it go."""


logger = logging.getLogger(__name__)


class Scheduler:
    """Delivers all hooks, of all edges over the same stores, while it is its turn."""

    def __init__(self, office: DeliveryContext, registry: Registry) -> None:
        self._office = office
        self._registry = registry
        self._seen: int = START
        self._places: Mapping[str, WebhookProgress] = {}
        self._couriers: dict[str, tuple[Deliverer, asyncio.Task[None]]] = {}
        self._replays: dict[str, asyncio.Task[None]] = {}
        self._noted = office.clock.ticks()

    def __len__(self) -> int:
        """How many are delivered here."""
        return len(self._couriers)

    async def keep(self) -> None:
        """Until cancelled: wait for the turn, then go round. One that fails is gone again a little later."""
        while not await self._office.workers.run(self._office.books.take):
            await asyncio.sleep(self._office.outbound.look)
        notes = asyncio.create_task(self._office.notes.keep())
        try:
            while True:
                await self._try()
                await asyncio.sleep(self._office.outbound.look)
        finally:
            await self._stop(notes)

    async def step(self) -> None:
        """See which hooks are new or have changed, and what is asked to be delivered again."""
        changes = await self._office.workers.run(self._registry.list, WEBHOOK, after=self._seen)
        if self._seen == START and changes:
            self._places = await self._office.workers.run(self._office.books.places)
        for change in changes:
            await self._take(webhook_from_change(change))
            self._seen = change.position
        self._office.metrics.hooks.set(len(self._couriers))
        if self._couriers:
            await self._replay()
            self._rest()

    async def _try(self) -> None:
        try:
            await self.step()
        except TriplewireError as error:
            logger.warning("hooks were not looked after, and will be: %s", error)
            self._office.metrics.stumbles.inc()

    async def _take(self, hook: Webhook) -> None:
        known = self._couriers.get(hook.id)
        if hook.state is WebhookState.ON and known is not None:
            await self._renew(known[0], hook)
        elif hook.state is WebhookState.ON:
            courier = Deliverer(hook, self._office, self._places.get(hook.id))
            self._couriers[hook.id] = courier, asyncio.create_task(self._deliver(courier))
        elif known is not None:
            known[1].cancel()
            await asyncio.wait([known[1]])
        if hook.state is WebhookState.ENDED:
            await self._settle(hook, WebhookState.ENDED)

    async def _deliver(self, courier: Deliverer) -> None:
        try:
            while (state := await courier.run()) is WebhookState.ENDED and await self._is_renewed(courier):
                pass
            await self._settle(courier.hook, state)
        except asyncio.CancelledError:
            raise
        except Exception:
            logger.exception("hook %s is not delivered any more until this edge starts again", courier.hook.id)
        finally:
            self._couriers.pop(courier.hook.id, None)

    async def _is_renewed(self, courier: Deliverer) -> bool:
        """Has it a lease again, though it ended? Of one that was renewed just now nobody may have heard here."""
        change = await self._office.workers.run(self._registry.get, WEBHOOK, courier.hook.id)
        if change is not None and (hook := webhook_from_change(change)).state is WebhookState.ON:
            await self._renew(courier, hook)
        return courier.leased

    async def _renew(self, courier: Deliverer, hook: Webhook) -> None:
        courier.renew(hook, await self._office.workers.run(self._office.books.secret, hook.id))

    async def _settle(self, hook: Webhook, state: WebhookState) -> None:
        """Write down what became of a hook."""
        self._office.notes.drop(hook.id)
        await self._office.workers.run(self._write, hook, state)

    def _write(self, hook: Webhook, state: WebhookState) -> None:
        if state is WebhookState.GONE:
            self._registry.put([(WEBHOOK, hook.id, webhook_to_value(replace(hook, state=state)))])
        else:
            self._registry.put([(WEBHOOK, hook.id, None)])
            self._office.books.forget(hook.id)

    async def _replay(self) -> None:
        for hook, positions in (await self._office.workers.run(self._office.books.asked)).items():
            known = self._couriers.get(hook)
            if known is not None and hook not in self._replays:
                task = self._replays[hook] = asyncio.create_task(known[0].replay(positions))
                task.add_done_callback(lambda _, hook=hook: self._replays.pop(hook, None))  # type: ignore[misc]

    def _rest(self) -> None:
        now = self._office.clock.ticks()
        if now - self._noted >= WEBHOOK_PROGRESS_SECONDS:
            self._noted = now
            for courier, _ in tuple(self._couriers.values()):
                courier.rest()

    async def _stop(self, notes: asyncio.Task[None]) -> None:
        tasks = [*(task for _, task in self._couriers.values()), *self._replays.values(), notes]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        with suppress(TriplewireError):
            await self._office.notes.flush()
        await self._office.workers.run(self._office.books.leave)
