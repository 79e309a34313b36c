"""Leases: subscriptions that end when nobody has listened to them for some time.

An edge renews the leases of those that are listened to here, and ends those that have run out, whichever edge made
them: what all edges know stands in the registry.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from triplewire.config import limits
from triplewire.edge.workers import Workers
from triplewire.model.clock import Clock
from triplewire.model.errors import TriplewireError
from triplewire.storage.registry.ports import Registry, RegistryChange
from triplewire.storage.registry.subscriptions import (
    EXPIRY,
    LEASE,
    SUBSCRIPTION,
    Lease,
    expiry_key,
    lease_from_change,
    lease_to_value,
    parse_expiry_key,
)

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
        self._leases: dict[str, Lease] = {}
        """Of those that are listened to here, as they were last renewed here."""

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

    def _renew(self, id: str, at: int | None = None) -> None:
        """Begin the lease of a subscription anew, if it has one."""
        found = self._registry.get(LEASE, id)
        if found is None or found.value is None:
            self._leases.pop(id, None)
            return
        renewed = Lease.begun(id, found.value["seconds"], self._clock.now() if at is None else at)
        self._registry.put([(LEASE, id, lease_to_value(renewed))])
        self._leases[id] = renewed

    def _swept(self, heard: Mapping[str, int]) -> None:
        for id, at in heard.items():
            lease = self._leases.get(id)
            # Renewed when half of it is over: every renewal stays in the registry.
            if lease is not None and at - (lease.until - _micro(lease)) > _micro(lease) / 2:
                self._renew(id, at)
        self._leases = {id: lease for id, lease in self._leases.items() if id in self._heard}
        while self._ended(heard) == limits.BULK_LINES:
            pass

    def _ended(self, heard: Mapping[str, int]) -> int:
        """Look at leases that may have run out, some at a time; at how many."""
        now = self._clock.now()
        due = self._registry.list(EXPIRY, below=expiry_key(now + 1), limit=limits.BULK_LINES)
        entries = [entry for each in due for entry in self._settled(each, heard, now)]
        if entries:
            self._registry.put(entries)
        return len(due)

    def _settled(self, entry: RegistryChange, heard: Mapping[str, int], now: int) -> Iterator[Entry]:
        """The end of a lease that is over, the next look at one that is not."""
        id = parse_expiry_key(entry)
        found = self._registry.get(LEASE, id)
        yield EXPIRY, entry.key, None
        if found is None:
            return
        lease = lease_from_change(found)
        until = max(lease.until, *(Lease.begun(id, lease.seconds, at).until for at in self._known(id, heard)))
        if until > now:
            yield EXPIRY, expiry_key(until, id), {}
        else:
            yield SUBSCRIPTION, id, None
            yield LEASE, id, None

    def _known(self, id: str, heard: Mapping[str, int]) -> list[int]:
        """When somebody may have listened. While no edge was there nobody could: a lease lasts its time from when this
        one was started."""
        return [self._started, *([heard[id]] if id in heard else [])]


def _micro(lease: Lease) -> int:
    return round(lease.seconds * 1_000_000)
