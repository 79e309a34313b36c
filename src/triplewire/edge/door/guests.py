"""Guests: those who were let in and are still here, so that they can be sent away when they are welcome no more.

A token that is revoked must not go on being told what happens, or sending, by a connection that was opened before.
What
a connection is for does not matter: it is cut, and whoever comes back is refused at the door.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol

from triplewire.access import Principal
from triplewire.config import limits
from triplewire.model.clock import Clock
from triplewire.model.errors import TriplewireError

logger = logging.getLogger(__name__)


class Connection(Protocol):
    """What a guest came by."""

    def abort(self) -> None: ...

    def is_closing(self) -> bool: ...


class Guests:
    """By their connections: who came by each last."""

    def __init__(
        self,
        clock: Clock,
        version: Callable[[], int] = lambda: 0,
        good: Callable[[Principal], bool] = lambda principal: True,
    ) -> None:
        """`version` is another one where something may have become of any of them; `good` tells whether one is still
        welcome."""
        self._clock = clock
        self._version = version
        self._good = good
        self._here: dict[Connection, Principal] = {}
        """Those that have gone are in it until the next look: connections over TLS cannot be referred to weakly."""
        self._looked = clock.ticks(), 0

    def __len__(self) -> int:
        return len(self._here)

    def enter(self, principal: Principal, connection: Connection | None) -> None:
        if connection is not None:
            self._here[connection] = principal

    def look(self) -> int:
        """Forget those who have gone, and send those away who are welcome no more; how many. This is done now and then,
        and at once where the version is new."""
        now, version = self._clock.ticks(), self._version()
        if version == self._looked[1] and now - self._looked[0] < limits.EXPIRY_LOOK_SECONDS:
            return 0
        self._looked = now, version
        here = {each: principal for each, principal in self._here.items() if not each.is_closing()}
        self._here = {each: principal for each, principal in here.items() if self._welcome(principal)}
        gone = here.keys() - self._here.keys()
        for each in gone:
            each.abort()
        return len(gone)

    async def keep(self, seconds: float = limits.GUEST_LOOK_SECONDS) -> None:
        """Look again and again, until cancelled."""
        while True:
            await asyncio.sleep(seconds)
            try:
                self.look()
            except TriplewireError:
                logger.warning("nobody looked who is still welcome", exc_info=True)

    def _welcome(self, principal: Principal) -> bool:
        expired = principal.expires is not None and principal.expires <= self._clock.now() / 1_000_000
        return not expired and self._good(principal)
