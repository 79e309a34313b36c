"""Leases: subscriptions that end when nobody has listened to them for some time.

An edge renews the leases of those that are listened to here, and ends those that have run out, whichever edge made
them: what all edges know stands in the registry.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from triplewire.clock import Clock
from triplewire.config import limits
from triplewire.edge.workers import Workers
from triplewire.errors import TriplewireError
from triplewire.registry.leases import LEASE, Lease, from_change, to_value
from triplewire.registry.ports import Registry
from triplewire.registry.subscriptions import SUBSCRIPTION

Entry = tuple[str, str, Mapping[str, Any] | None]


class Leases:
    """Who is listened to here, and until when the others stay."""

    def __init__(self, registry: Registry, clock: Clock, workers: Workers) -> None:
        self._registry = registry
        self._clock = clock
        self._workers = workers
        self._started = clock.now()
        self._heard: Counter[str] = Counter()
        self._left: dict[str, int] = {}
        """When the last listener of a subscription went, until the next sweep."""

    @asynccontextmanager
    async def heard(self, id: str) -> AsyncIterator[None]:
        """While somebody listens to a subscription its lease does not run out; when the last goes it begins anew."""
        self._heard[id] += 1
        try:
            await self._workers.run(self._renew, id)
            yield
        finally:
            self._heard[id] -= 1
            if not self._heard[id]:
                del self._heard[id]
                self._left[id] = self._clock.now()

    async def sweep(self) -> None:
        """Renew what is listened to, end what has run out."""
        left, self._left = self._left, {}
        heard = dict.fromkeys(self._heard, self._clock.now())
        try:
            await self._workers.run(self._swept, {**left, **heard})
        except TriplewireError:
            self._left = {**left, **self._left}
            raise

    def _renew(self, id: str) -> None:
        found = self._registry.get(LEASE, id)
        if found is not None and found.value is not None:
            self._registry.put([_set(Lease.begun(id, found.value["seconds"], self._clock.now()))])

    def _swept(self, heard: Mapping[str, int]) -> None:
        leases = (from_change(change) for change in self._registry.list(LEASE))
        entries = [entry for lease in leases for entry in self._due(lease, heard.get(lease.id))]
        for start in range(0, len(entries), limits.BULK_LINES):
            self._registry.put(entries[start : start + limits.BULK_LINES])

    def _due(self, lease: Lease, heard: int | None) -> Iterator[Entry]:
        """What is to be done about a lease that was last listened to here at a time, or not at all."""
        if heard is not None:
            renewed = Lease.begun(lease.id, lease.seconds, heard)
            # Renewed when half of it is over: every renewal stays in the registry.
            if renewed.until - lease.until > lease.seconds * 500_000:
                yield _set(renewed)
        elif self._over(lease):
            yield SUBSCRIPTION, lease.id, None
            yield LEASE, lease.id, None

    def _over(self, lease: Lease) -> bool:
        """While no edge was there nobody could listen: a lease lasts its time from when this one was started."""
        begun = Lease.begun(lease.id, lease.seconds, self._started)
        return self._clock.now() >= max(lease.until, begun.until)


def _set(lease: Lease) -> Entry:
    return LEASE, lease.id, to_value(lease)
