"""Subscriptions that are listened to here, kept up to date from the registry's changes.

An edge does not mirror the whole registry: it looks a subscription up when the first listener comes, and from then
on notices its new versions and its end. It remembers it for a while after the last listener left, so that a client
that lost its connection can still fetch what was matched before the end.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from functools import partial

from triplewire.access import Sight
from triplewire.config import limits
from triplewire.edge.feeds.notifications import Shown, Wanted
from triplewire.edge.feeds.standing import Ended
from triplewire.edge.formats.ports import end
from triplewire.edge.ports import Entries
from triplewire.edge.telling.rooms import Addressee, Room
from triplewire.edge.workers import Workers
from triplewire.matching.index import Membership, Memberships
from triplewire.matching.index_maintenance import shape_memberships
from triplewire.matching.shapes import Shape
from triplewire.model import END, START, Subscription
from triplewire.model.errors import NotFound
from triplewire.storage.registry.ports import Registry, RegistryChange
from triplewire.storage.registry.security import VisibilityStore
from triplewire.storage.registry.subscriptions import (
    LANE,
    SHAPE,
    SUBSCRIPTION,
    end_subscription,
    read_versions,
    subscription_from_change,
)


class Subscriptions:
    """What is known here, up to a position of the registry. Those in the room are never forgotten."""

    def __init__(self, registry: Registry, log: Entries, workers: Workers) -> None:
        self._registry = registry
        self._log = log
        self.rooms: list[Room[int]] = []
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

    def leaving(self, room: Room[int], *, slow: bool) -> list[int]:
        """Those in the room of a lane whose matches come by another from some place on, and that had all of this."""
        if not slow and not any(each is not None for each in self._lanes.values()):
            return []
        elsewhere = [(made, *self.turns(made)[-1]) for made in room if self.slow(made) != slow]
        return [made for made, start, other in elsewhere if other != slow and start <= room.place]

    def ended(self) -> list[Ended]:
        """Those that have ended."""
        gone = (self._known[id] for id in self._ended)
        return [Ended(each.made, each.until, partial(_end, each.id)) for each in gone]

    def is_ended(self, id: str) -> bool:
        """Whether one has ended, as far as is known here."""
        return id in self._ended

    def shown(self, since: int) -> Shown | None:
        """What matches of the version that began at a position are expanded with, and shown of; None where it is not
        known here."""
        version = self._by_since.get(since)
        if version is None:
            return None
        newest = self._known.get(version.id, version)
        return Shown(version, self._shapes[version.shape], self.sight(version), self.sight(newest))

    def sight(self, subscription: Subscription) -> Sight | None:
        """What its owner sees of events; None is everything."""
        return self._sights.find(subscription.sight)

    def moved(self, subscription: Subscription) -> int | None:
        """The position above which its matches come by the slow lane; None where they do not."""
        return self._lanes.get(subscription.shape)

    def wanted(self, made: Iterable[int], *, slow: bool = False) -> list[Wanted]:
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

    def listened(self, subscription: Subscription, *, slow: bool = False) -> Wanted:
        """How its matches are told from others."""
        if subscription.since not in self._memberships:
            found = self._groups[subscription.shape].of(subscription.constants)
            self._memberships[subscription.since] = found
        moved = self.moved(subscription)
        turn = END if moved is None else moved
        after, until = (turn, subscription.until) if slow else (START, min(subscription.until, turn + 1))
        return Wanted(subscription.since, until, self._memberships[subscription.since], after)

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
        for id in list(self._known)[: max(0, len(self._known) - limits.REMEMBERED_SUBSCRIPTIONS)]:
            if not any(self._known[id].made in room for room in self.rooms):
                gone = self._known.pop(id)
                self._by_made.pop(gone.made, None)
                for since in (*gone.earlier, gone.since):
                    self._by_since.pop(since, None)
                    self._memberships.pop(since, None)
                self._ended.discard(id)


def _end(id: str, listener: Addressee) -> bytes:
    return end(listener.manner.format, id)
