"""Notes: how far hooks are, written down for many at once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from triplewire.config import limits
from triplewire.edge.workers import Workers
from triplewire.model.errors import TriplewireError
from triplewire.storage.webhooks import DeadLetter, ProgressStore, WebhookProgress

Sleep = Callable[[float], Awaitable[object]]

logger = logging.getLogger(__name__)


class Notes:
    """What was delivered is noted a little later, since to deliver it again does no harm; what is parked is noted
    before anything comes of it. Where the disk is full that waits, and what was delivered meanwhile is noted then."""

    def __init__(self, ledger: ProgressStore, workers: Workers, sleep: Sleep) -> None:
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
                await self._sleep(limits.HOOK_PAUSE_FIRST)
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
