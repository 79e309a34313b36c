"""Guests: those who were let in and are still here, so that they can be sent away when they are welcome no more.

A token that is revoked must not go on being told what happens, or sending, by a connection that was opened before. What
a connection is for does not matter: it is cut, and whoever comes back is refused at the door.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol
from weakref import WeakKeyDictionary

from triplewire.access import Principal
from triplewire.clock import Clock
from triplewire.config import limits
from triplewire.errors import TriplewireError

logger = logging.getLogger(__name__)


class Connection(Protocol):
    """What a guest came by."""

    def abort(self) -> None: ...


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
        self._here: WeakKeyDictionary[Connection, Principal] = WeakKeyDictionary()
        self._looked = clock.ticks(), 0

    def __len__(self) -> int:
        return len(self._here)

    def enter(self, principal: Principal, connection: Connection | None) -> None:
        if connection is not None:
            self._here[connection] = principal

    def look(self) -> int:
        """Send those away who are welcome no more; how many. Whether one has expired is looked at now and then."""
        now, version = self._clock.ticks(), self._version()
        if version == self._looked[1] and now - self._looked[0] < limits.EXPIRY_LOOK_SECONDS:
            return 0
        self._looked = now, version
        gone = [each for each, principal in list(self._here.items()) if not self._welcome(principal)]
        for each in gone:
            del self._here[each]
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
