"""Subscriptions that have listeners here: a cache that follows the registry, and the leases that end a subscription to
which no client listens.

An edge does not mirror the registry: it loads a subscription when the first listener comes, then follows its versions
and its end. It keeps it for a while after the last listener left, so that a client that lost its connection can still
fetch what was matched before the end. Every edge renews the leases of what is listened to there and ends those that
have expired.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol

from triplewire.http.delivery.topics import ClientState, ClosingMessage, LiveTopic
from triplewire.http.formats.messages import end_notice
from triplewire.http.formats.notifications import MatchPresenter, MatchSelector, SubscriptionPresenter
from triplewire.http.ports import EdgeLog, ThreadPool
from triplewire.http.resources.documents import BULK_LINES
from triplewire.matching.index import Membership, Memberships
from triplewire.matching.index_maintenance import shape_memberships
from triplewire.matching.shapes import Shape
from triplewire.model import END, START, Subscription
from triplewire.model.clock import Clock
from triplewire.model.errors import NotFound, TriplewireError
from triplewire.security import Visibility
from triplewire.storage.registry.ports import Registry, RegistryChange
from triplewire.storage.registry.security import VisibilityStore
from triplewire.storage.registry.subscriptions import (
    EXPIRY,
    LANE,
    LEASE,
    SHAPE,
    SUBSCRIPTION,
    Lease,
    end_subscription,
    expiry_key,
    lease_from_change,
    lease_to_value,
    parse_expiry_key,
    read_versions,
    subscription_from_change,
)

REMEMBERED_SUBSCRIPTIONS: Final = 20_000
"""Subscriptions that an edge remembers after their listeners left: about 1 kB each, more than its listeners."""


# Standing questions, as the feed of what was found for them knows them.


@dataclass(frozen=True)
class EndedQuery:
    """One that ended at a position, and what its listeners are told at last."""

    made: int
    until: int
    last: ClosingMessage


class StandingQueries(Protocol):
    """Those that are listened to here, by the positions at which they were made."""

    rooms: list[LiveTopic[int]]
    """Where somebody may listen to them: those in there are not forgotten."""

    async def refresh(self) -> bool:
        """Take in what changed; whether one that is known here ended."""

    def wanted(self, made: Iterable[int], *, slow: bool = False) -> list[MatchSelector]:
        """How the matches of those are told, in one of the lanes, that were made at these positions."""

    def shown(self, since: int) -> MatchPresenter | None:
        """How matches are put into words of what began at a position; None where it is not known here."""

    def leaving(self, room: LiveTopic[int], *, slow: bool) -> Sequence[int]:
        """Those in the room of a lane that are to come back, because their matches come by another from here on."""

    def ended(self) -> Sequence[EndedQuery]:
        """Those that have ended."""


# An edge does not mirror the whole registry: it looks a subscription up when the first listener comes, and from then
# on notices its new versions and its end. It remembers it for a while after the last listener left, so that a client
# that lost its connection can still fetch what was matched before the end.


class SubscriptionCache:
    """What is known here, up to a position of the registry. Those in the room are never forgotten."""

    def __init__(self, registry: Registry, log: EdgeLog, workers: ThreadPool) -> None:
        self._registry = registry
        self._log = log
        self.rooms: list[LiveTopic[int]] = []
        """Of all lanes."""
        self._workers = workers
        self._position = log.head()
        self._known: OrderedDict[str, Subscription] = OrderedDict()
        self._by_made: dict[int, str] = {}
        self._by_since: dict[int, Subscription] = {}
        """All versions that are known, by where they began."""
        self._ended: set[str] = set()
        self._shapes: dict[str, Shape] = {}
        self._sights = VisibilityStore(registry)
        self._lanes: dict[str, int | None] = {}
        """Of each shape: where it went to the slow lane, if it did."""
        self._groups: dict[str, Memberships] = {}
        self._memberships: dict[int, Membership | None] = {}
        # A look-up and a refresh never overlap, so that no end slips through between them.
        self._turn = asyncio.Lock()

    async def find(self, id: str, *, resuming: bool) -> Subscription:
        """The subscription. One that has ended is found only by those who come back to it."""
        async with self._turn:
            change = await self._workers.run(self._registry.get, SUBSCRIPTION, id)
            if change is not None and id not in self._known:
                for each in await self._workers.run(read_versions, self._registry, subscription_from_change(change)):
                    await self._note(each)
            known = self._known.get(id)
            if known is None or (change is None and not resuming):
                raise NotFound(f"there is no subscription {id}")
            self._known.move_to_end(id)
            self._forget_oldest()
            return known

    async def refresh(self) -> bool:
        """Take in what changed; whether a subscription that is known here ended."""
        async with self._turn:
            self._position, changes = await self._workers.run(self._news, self._position)
            self._lanes |= {each.key: each.position for each in changes if each.kind == LANE}
            concerned = [each for each in changes if each.kind == SUBSCRIPTION and each.key in self._known]
            return any([await self._change(each) for each in concerned])

    def slow(self, made: int) -> bool:
        """Whether the newest version of the one that was made at a position is of a shape of the slow lane."""
        newest = self._known.get(self._by_made.get(made, ""))
        return newest is not None and self.moved(newest) is not None

    def turns(self, made: int) -> list[tuple[int, bool]]:
        """Positions, in order, from which on the matches of a subscription come by another lane: whether by the slow
        one. Versions may be of different shapes."""
        found: list[tuple[int, bool]] = [(START, False)]
        for version in self.versions(made):
            moved = self.moved(version)
            turn = END if moved is None or moved >= version.until else max(moved, version.since)
            for start, slow in ((version.since, False), (turn, True)):
                if slow != found[-1][1] and start < min(version.until, turn + slow):
                    found.append((start, slow))
        return found

    def leaving(self, room: LiveTopic[int], *, slow: bool) -> list[int]:
        """Those in the room of a lane whose matches come by another from some place on, and that had all of this."""
        if not slow and not any(each is not None for each in self._lanes.values()):
            return []
        elsewhere = [(made, *self.turns(made)[-1]) for made in room if self.slow(made) != slow]
        return [made for made, start, other in elsewhere if other != slow and start <= room.place]

    def ended(self) -> list[EndedQuery]:
        """Those that have ended."""
        gone = (self._known[id] for id in self._ended)
        return [EndedQuery(each.made, each.until, partial(_render_end, each.id)) for each in gone]

    def is_ended(self, id: str) -> bool:
        """Whether one has ended, as far as is known here."""
        return id in self._ended

    def shown(self, since: int) -> SubscriptionPresenter | None:
        """What matches of the version that began at a position are expanded with, and shown of; None where it is not
        known here."""
        version = self._by_since.get(since)
        if version is None:
            return None
        newest = self._known.get(version.id, version)
        return SubscriptionPresenter(version, self._shapes[version.shape], self.sight(version), self.sight(newest))

    def sight(self, subscription: Subscription) -> Visibility | None:
        """What its owner sees of events; None is everything."""
        return self._sights.find(subscription.sight)

    def moved(self, subscription: Subscription) -> int | None:
        """The position above which its matches come by the slow lane; None where they do not."""
        return self._lanes.get(subscription.shape)

    def wanted(self, made: Iterable[int], *, slow: bool = False) -> list[MatchSelector]:
        """How the matches of those are told, in one of the lanes, that were made at these positions and are known
        here."""
        return [self.listened(version, slow=slow) for each in made for version in self.versions(each)]

    def versions(self, made: int) -> list[Subscription]:
        """The versions, in order, of the one that was made at a position; none if it is not known here."""
        if made not in self._by_made:
            return []
        newest = self._known[self._by_made[made]]
        found = (self._by_since.get(since) for since in (*newest.earlier, newest.since))
        return [each for each in found if each is not None]

    def listened(self, subscription: Subscription, *, slow: bool = False) -> MatchSelector:
        """How its matches are told from others."""
        if subscription.since not in self._memberships:
            found = self._groups[subscription.shape].of(subscription.constants)
            self._memberships[subscription.since] = found
        moved = self.moved(subscription)
        turn = END if moved is None else moved
        after, until = (turn, subscription.until) if slow else (START, min(subscription.until, turn + 1))
        return MatchSelector(subscription.since, until, self._memberships[subscription.since], after)

    async def _change(self, change: RegistryChange) -> bool:
        """Take in the end of one that is known, or its next version; whether it ended."""
        known = self._known[change.key]
        if change.value is None:
            return self._end(change.key, change.position)
        if change.position > known.since:
            self._by_since[known.since] = end_subscription(known, change.position)
            await self._note(subscription_from_change(change))
        return False

    def _news(self, after: int) -> tuple[int, Sequence[RegistryChange]]:
        """How far the registry is, and what changed; where nothing is known here, nothing that changes matters."""
        head = self._log.head()
        return head, self._registry.changes(after, head) if head > after and self._known else ()

    def _end(self, id: str, position: int) -> bool:
        known = self._known.get(id)
        if known is None or known.until != END:
            return False
        self._known[id] = self._by_since[known.since] = end_subscription(known, position)
        self._ended.add(id)
        return True

    async def _note(self, found: Subscription) -> None:
        if found.shape not in self._shapes:
            shape = await self._workers.run(self._load_shape, found.shape)
            self._shapes[found.shape], self._groups[found.shape] = shape, shape_memberships(shape)
        if self._lanes.get(found.shape) is None:
            lane = await self._workers.run(self._registry.get, LANE, found.shape)
            self._lanes[found.shape] = None if lane is None else lane.position
        await self._workers.run(self._sights.find, found.sight)
        self._known[found.id] = found
        self._by_made[found.made] = found.id
        self._by_since[found.since] = found

    def _load_shape(self, key: str) -> Shape:
        change = self._registry.get(SHAPE, key)
        if change is None or change.value is None:
            raise NotFound(f"the shape {key} of the subscription is not in the registry")
        return Shape.from_value(change.value)

    def _forget_oldest(self) -> None:
        for id in list(self._known)[: max(0, len(self._known) - REMEMBERED_SUBSCRIPTIONS)]:
            if not any(self._known[id].made in room for room in self.rooms):
                gone = self._known.pop(id)
                self._by_made.pop(gone.made, None)
                for since in (*gone.earlier, gone.since):
                    self._by_since.pop(since, None)
                    self._memberships.pop(since, None)
                self._ended.discard(id)


def _render_end(id: str, listener: ClientState) -> bytes:
    return end_notice(listener.manner.format, id)


# Leases: subscriptions that end when nobody has listened to them for some time.
#
# An edge renews the leases of those that are listened to here, and ends those that have run out, whichever edge made
# them: what all edges know stands in the registry.

LeaseEntry = tuple[str, str, Mapping[str, Any] | None]


class Leases:
    """Who is listened to here, and until when the others stay."""

    def __init__(self, registry: Registry, clock: Clock, workers: ThreadPool) -> None:
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
            if lease is not None and at - (lease.until - _microseconds(lease)) > _microseconds(lease) / 2:
                self._renew(id, at)
        self._leases = {id: lease for id, lease in self._leases.items() if id in self._heard}
        while self._ended(heard) == BULK_LINES:
            pass

    def _ended(self, heard: Mapping[str, int]) -> int:
        """Look at leases that may have run out, some at a time; at how many."""
        now = self._clock.now()
        due = self._registry.list(EXPIRY, below=expiry_key(now + 1), limit=BULK_LINES)
        entries = [entry for each in due for entry in self._settled(each, heard, now)]
        if entries:
            self._registry.put(entries)
        return len(due)

    def _settled(self, entry: RegistryChange, heard: Mapping[str, int], now: int) -> Iterator[LeaseEntry]:
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


def _microseconds(lease: Lease) -> int:
    return round(lease.seconds * 1_000_000)
