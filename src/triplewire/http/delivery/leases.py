"""Leases: subscriptions that end when no client has listened to them for some time.

An edge renews the leases of subscriptions that have listeners here, and ends those that have expired, whichever edge
made them: all edges share the registry.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from triplewire.http.ports import ThreadPool
from triplewire.http.resources.bulk import BULK_LINES
from triplewire.model.clock import Clock
from triplewire.model.errors import TriplewireError
from triplewire.storage.registry import subscriptions
from triplewire.storage.registry.ports import Registry, RegistryChange

LeaseEntry = tuple[str, str, Mapping[str, Any] | None]


class Leases:
    """The subscriptions that have listeners here, and when the last listener of others left."""

    def __init__(self, registry: Registry, clock: Clock, threads: ThreadPool) -> None:
        self._registry = registry
        self._clock = clock
        self._threads = threads
        self._started = clock.now()
        self._listeners: Counter[str] = Counter()
        self._left: dict[str, int] = {}
        """Times when the last listener left, until the next sweep."""
        self._leases: dict[str, subscriptions.Lease] = {}
        """Leases of subscriptions with listeners, as they were last renewed here."""

    @asynccontextmanager
    async def hold(self, id: str) -> AsyncIterator[None]:
        """Keep the lease of a subscription from expiring; when the last holder leaves it begins anew."""
        self._listeners[id] += 1
        try:
            await self._threads.run(self._renew, id)
            yield
        finally:
            self._listeners[id] -= 1
            if not self._listeners[id]:
                del self._listeners[id]
                self._left[id] = self._clock.now()

    async def sweep(self) -> None:
        """Renew the leases that are held, and end those that have expired."""
        left, self._left = self._left, {}
        held = dict.fromkeys(self._listeners, self._clock.now())
        try:
            await self._threads.run(self._sweep, {**left, **held})
        except TriplewireError:
            self._left = {**left, **self._left}
            raise

    def _renew(self, id: str, at: int | None = None) -> None:
        """Begin the lease of a subscription anew, if it has one."""
        change = self._registry.get(subscriptions.LEASE, id)
        if change is None or change.value is None:
            self._leases.pop(id, None)
            return
        renewed = subscriptions.Lease.begun(id, change.value["seconds"], self._clock.now() if at is None else at)
        self._registry.put([(subscriptions.LEASE, id, subscriptions.lease_to_value(renewed))])
        self._leases[id] = renewed

    def _sweep(self, last_use: Mapping[str, int]) -> None:
        for id, at in last_use.items():
            lease = self._leases.get(id)
            # Renewed when half of it is over: every renewal stays in the registry.
            if lease is not None and at - (lease.until - _microseconds(lease)) > _microseconds(lease) / 2:
                self._renew(id, at)
        self._leases = {id: lease for id, lease in self._leases.items() if id in self._listeners}
        while self._end_expired(last_use) == BULK_LINES:
            pass

    def _end_expired(self, last_use: Mapping[str, int]) -> int:
        """Look at leases that may have expired, boundedly many; return how many."""
        now = self._clock.now()
        due = self._registry.list(subscriptions.EXPIRY, below=subscriptions.expiry_key(now + 1), limit=BULK_LINES)
        entries = [entry for each in due for entry in self._settle(each, last_use, now)]
        if entries:
            self._registry.put(entries)
        return len(due)

    def _settle(self, expiry: RegistryChange, last_use: Mapping[str, int], now: int) -> Iterator[LeaseEntry]:
        """Yield the end of a lease that has expired, or the next expiry of one that has not."""
        id = subscriptions.parse_expiry_key(expiry)
        change = self._registry.get(subscriptions.LEASE, id)
        yield subscriptions.EXPIRY, expiry.key, None
        if change is None:
            return
        lease = subscriptions.lease_from_change(change)
        # No client could listen while no edge ran: a lease lasts its time from when this one was started.
        uses = [self._started, *([last_use[id]] if id in last_use else [])]
        until = max(lease.until, *(subscriptions.Lease.begun(id, lease.seconds, at).until for at in uses))
        if until > now:
            yield subscriptions.EXPIRY, subscriptions.expiry_key(until, id), {}
        else:
            yield subscriptions.SUBSCRIPTION, id, None
            yield subscriptions.LEASE, id, None


def _microseconds(lease: subscriptions.Lease) -> int:
    return round(lease.seconds * 1_000_000)
