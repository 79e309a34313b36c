"""Standing queries that have listeners here: subscriptions and continuous queries, in caches that follow the registry,
and how the answers of continuous queries are rendered.

An edge does not mirror the registry: it loads an entry when the first listener comes, then follows its versions and its
end. It keeps the entry for a while after the last listener left, so that a client that lost its connection can still
fetch what was matched before the end. A continuous query that is suspended has ended for its listeners.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Generic, TypeVar

import pyarrow as pa

from triplewire.http.delivery.topics import LiveTopic
from triplewire.http.formats.messages import (
    ClosingMessage,
    EntryPieces,
    Notification,
    end_message,
    format_time,
    render_members,
)
from triplewire.http.formats.notifications import (
    MatchPresenter,
    MatchSelector,
    Renderer,
    SubscriptionPresenter,
    describe_limit,
    find_concerned,
)
from triplewire.http.ports import Result, ThreadPool
from triplewire.matching.index import Membership, Memberships
from triplewire.matching.index.memberships import GroupMembers, shape_memberships
from triplewire.matching.index.programs import Opcode
from triplewire.matching.plans import SOLUTIONS
from triplewire.matching.shapes import Shape
from triplewire.model import END, ENTRIES, START, Kind, LimitReached, Subscription, format_position
from triplewire.model.errors import NotFound
from triplewire.model.subscriptions import ANSWER, ContinuousQuery, QueryState
from triplewire.model.terms import boolean_document, results_document
from triplewire.security import Visibility
from triplewire.sparql import parse_query
from triplewire.storage.log.ports import EdgeLog
from triplewire.storage.registry.ports import Registry, RegistryChange
from triplewire.storage.registry.security import VisibilityStore
from triplewire.storage.registry.subscriptions import (
    LANE,
    QUERY,
    SHAPE,
    SUBSCRIPTION,
    end_subscription,
    query_from_change,
    read_versions,
    subscription_from_change,
)

CACHED_SUBSCRIPTIONS: Final = 20_000
"""Subscriptions that an edge keeps after their listeners left: about 1 kB each, and more than its listeners."""

QUERY_NOUN = "query"


@dataclass(frozen=True)
class EndedQuery:
    """A subscription or query that ended at a position, and the last message to its listeners."""

    made: int
    until: int
    last: ClosingMessage


Cached = TypeVar("Cached")


class RegistryCache(Generic[Cached]):
    """Subscriptions or continuous queries that have listeners here, by the positions at which they were made, as of a
    position of the registry. Entries with listeners are never dropped."""

    kind: str
    noun: str

    def __init__(
        self,
        registry: Registry,
        log: EdgeLog,
        threads: ThreadPool,
        has_listeners: Callable[[Cached], bool],
        limit: int = CACHED_SUBSCRIPTIONS,
    ) -> None:
        self._registry = registry
        self._log = log
        self._threads = threads
        self._has_listeners = has_listeners
        self._limit = limit
        self._position = log.head()
        self._known: OrderedDict[str, Cached] = OrderedDict()
        # A look-up and a refresh never overlap, so that no end is missed between them.
        self._lock = asyncio.Lock()

    async def find(self, id: str, *, resuming: bool) -> Cached:
        """Return an entry. One that has ended is found only by clients that resume. Raises NotFound."""
        async with self._lock:
            change = await self._threads.run(self._registry.get, self.kind, id)
            if change is not None and id not in self._known:
                await self._load(change)
            known = self._known.get(id)
            if known is None or (change is None and not resuming):
                raise NotFound(f"there is no {self.noun} {id}")
            self._known.move_to_end(id)
            self._drop_oldest()
            return known

    async def refresh(self) -> bool:
        """Follow the registry; return whether an entry that is known here has ended."""
        _, ended = await self.refresh_after(lambda: None)
        return ended

    async def refresh_after(self, read: Callable[[], Result]) -> tuple[Result, bool]:
        """Read something, then follow the registry, so that it is known here at least as new as what was read; both in
        one visit to a thread. Return what was read, and whether an entry that is known here has ended."""
        async with self._lock:
            result, (self._position, changes) = await self._threads.run(self._read_both, read, self._position)
            self._notice(changes)
            concerned = [each for each in changes if each.kind == self.kind and each.key in self._known]
            return result, any([await self._change(each) for each in concerned])

    def selectors(self, made: Iterable[int], *, slow: bool = False) -> list[MatchSelector]:
        """Return the selectors of the matches, in one of the lanes, of those made at these positions."""
        raise NotImplementedError

    def concerned(self, matches: pa.Table, topic: LiveTopic[int], *, slow: bool = False) -> list[MatchSelector]:
        """Return the selectors of those in a topic that some of the matches may concern. The cost depends on the
        matches, not on how many there are in the topic."""
        raise NotImplementedError

    def presenter(self, since: int) -> MatchPresenter | None:
        """Return the presenter for matches of the version that began at a position; None if it is not known here."""
        raise NotImplementedError

    def leaving(self, topic: LiveTopic[int], *, slow: bool) -> Sequence[int]:
        """Return those in the topic of a lane whose matches come by the other lane from here on."""
        return ()

    def ended(self) -> list[EndedQuery]:
        raise NotImplementedError

    async def _load(self, change: RegistryChange) -> None:
        raise NotImplementedError

    async def _change(self, change: RegistryChange) -> bool:
        """Follow a change of a known entry; return whether it has ended."""
        raise NotImplementedError

    def _drop(self, entry: Cached) -> None:
        """Forget what is kept beside an entry."""
        raise NotImplementedError

    def _notice(self, changes: Sequence[RegistryChange]) -> None:
        """Follow changes of other kinds."""

    def _read_both(self, read: Callable[[], Result], after: int) -> tuple[Result, tuple[int, Sequence[RegistryChange]]]:
        return read(), self._read_changes(after)

    def _read_changes(self, after: int) -> tuple[int, Sequence[RegistryChange]]:
        """Return the head, and the changes up to it; none while nothing is known here, since none matters then."""
        head = self._log.head()
        return head, self._registry.changes(after, head) if head > after and self._known else ()

    def _drop_oldest(self) -> None:
        for id in list(self._known)[: max(0, len(self._known) - self._limit)]:
            if not self._has_listeners(self._known[id]):
                self._drop(self._known.pop(id))


class SubscriptionCache(RegistryCache[Subscription]):
    """Subscriptions, their versions and shapes, and the lane of each shape."""

    kind, noun = SUBSCRIPTION, "subscription"

    def __init__(
        self,
        registry: Registry,
        log: EdgeLog,
        threads: ThreadPool,
        topics: Sequence[LiveTopic[int]] = (),
        limit: int = CACHED_SUBSCRIPTIONS,
    ) -> None:
        """`topics` are those of all lanes."""
        super().__init__(registry, log, threads, lambda each: any(each.made in topic for topic in topics), limit)
        self._by_made: dict[int, str] = {}
        self._by_since: dict[int, Subscription] = {}
        """All versions that are known, by where they began."""
        self._ended: set[str] = set()
        self._shapes: dict[str, tuple[Shape, Memberships]] = {}
        self._shape_uses: Counter[str] = Counter()
        """Versions that have each shape; a shape without one is dropped."""
        self._lanes: dict[str, int] = {}
        """Position from which on the matches of a shape come by the slow lane."""
        self._memberships: dict[int, Membership | None] = {}
        self._members = GroupMembers()
        """The versions that are known, by groups and thresholds."""
        self._visibilities = VisibilityStore(registry)

    def is_slow(self, made: int) -> bool:
        """Return whether the newest version of a subscription has a shape of the slow lane."""
        newest = self._known.get(self._by_made.get(made, ""))
        return newest is not None and newest.shape in self._lanes

    def lane_changes(self, made: int) -> list[tuple[int, bool]]:
        """Return the positions, in order, from which on the matches of a subscription come by another lane, and whether
        by the slow one. Versions may have different shapes."""
        changes: list[tuple[int, bool]] = [(START, False)]
        for version in self.versions(made):
            moved = self._lanes.get(version.shape)
            change = END if moved is None or moved >= version.until else max(moved, version.since)
            for start, slow in ((version.since, False), (change, True)):
                if slow != changes[-1][1] and start < min(version.until, change + slow):
                    changes.append((start, slow))
        return changes

    def leaving(self, topic: LiveTopic[int], *, slow: bool) -> list[int]:
        if not slow and not self._lanes:
            return []
        elsewhere = [(made, *self.lane_changes(made)[-1]) for made in topic if self.is_slow(made) != slow]
        return [made for made, start, other in elsewhere if other != slow and start <= topic.position]

    def ended(self) -> list[EndedQuery]:
        gone = (self._known[id] for id in self._ended)
        return [EndedQuery(each.made, each.until, end_message(each.id)) for each in gone]

    def is_ended(self, id: str) -> bool:
        return id in self._ended

    def presenter(self, since: int) -> SubscriptionPresenter | None:
        version = self._by_since.get(since)
        if version is None:
            return None
        newest = self._known.get(version.id, version)
        shape, _ = self._shapes[version.shape]
        return SubscriptionPresenter(version, shape, self.visibility(version), self.visibility(newest))

    def visibility(self, subscription: Subscription) -> Visibility | None:
        """Return what the owner sees of events; None is everything."""
        return self._visibilities.find(subscription.visibility)

    def selectors(self, made: Iterable[int], *, slow: bool = False) -> list[MatchSelector]:
        return [self.selector(version, slow=slow) for each in made for version in self.versions(each)]

    def concerned(self, matches: pa.Table, topic: LiveTopic[int], *, slow: bool = False) -> list[MatchSelector]:
        sinces = find_concerned(matches, self._members)
        versions = (self._by_since.get(since) for since in sinces)
        return [self.selector(each, slow=slow) for each in versions if each is not None and each.made in topic]

    def versions(self, made: int) -> list[Subscription]:
        """Return the versions, in order, of the subscription made at a position; none if it is not known here."""
        if made not in self._by_made:
            return []
        newest = self._known[self._by_made[made]]
        versions = (self._by_since.get(since) for since in (*newest.earlier, newest.since))
        return [each for each in versions if each is not None]

    def selector(self, version: Subscription, *, slow: bool = False) -> MatchSelector:
        change = self._lanes.get(version.shape, END)
        after, until = (change, version.until) if slow else (START, min(version.until, change + 1))
        return MatchSelector(version.since, until, self._memberships[version.since], after)

    async def _load(self, change: RegistryChange) -> None:
        for each in await self._threads.run(read_versions, self._registry, subscription_from_change(change)):
            await self._add(each)

    async def _change(self, change: RegistryChange) -> bool:
        known = self._known[change.key]
        if change.value is not None:
            if change.position > known.since:
                self._by_since[known.since] = end_subscription(known, change.position)
                await self._add(subscription_from_change(change))
            return False
        if known.until != END:
            return False
        self._known[known.id] = self._by_since[known.since] = end_subscription(known, change.position)
        self._ended.add(known.id)
        return True

    def _notice(self, changes: Sequence[RegistryChange]) -> None:
        self._lanes |= {each.key: each.position for each in changes if each.kind == LANE and each.key in self._shapes}

    def _drop(self, entry: Subscription) -> None:
        self._by_made.pop(entry.made, None)
        self._ended.discard(entry.id)
        for since in (*entry.earlier, entry.since):
            membership = self._memberships.pop(since, None)
            if membership is not None:
                self._members.remove(since, membership)
            version = self._by_since.pop(since, None)
            if version is not None:
                self._release_shape(version.shape)

    async def _add(self, version: Subscription) -> None:
        if version.shape not in self._shapes:
            self._shapes[version.shape] = await self._threads.run(self._load_shape, version.shape)
        if version.shape not in self._lanes:
            lane = await self._threads.run(self._registry.get, LANE, version.shape)
            if lane is not None:
                self._lanes[version.shape] = lane.position
        await self._threads.run(self._visibilities.find, version.visibility)
        if version.since not in self._by_since:
            self._shape_uses[version.shape] += 1
            membership = self._shapes[version.shape][1].of(version.constants)
            self._memberships[version.since] = membership
            if membership is not None:
                self._members.add(version.since, membership)
        self._known[version.id] = version
        self._by_made[version.made] = version.id
        self._by_since[version.since] = version

    def _load_shape(self, key: str) -> tuple[Shape, Memberships]:
        change = self._registry.get(SHAPE, key)
        if change is None or change.value is None:
            raise NotFound(f"the shape {key} of the subscription is not in the registry")
        shape = Shape.from_value(change.value)
        return shape, shape_memberships(shape)

    def _release_shape(self, shape: str) -> None:
        self._shape_uses[shape] -= 1
        if not self._shape_uses[shape]:
            del self._shape_uses[shape], self._shapes[shape]
            self._lanes.pop(shape, None)


@dataclass(frozen=True)
class AnswerPresenter:
    """Renders the answers of a continuous query: those that one event completes together. An ASK has one, and it is
    true."""

    query: ContinuousQuery
    asks: bool = False
    visibility: None = None
    visibility_now: None = None

    @property
    def made(self) -> int:
        return self.query.made

    @property
    def is_ended(self) -> bool:
        return self.query.until != END

    def present(self, renderer: Renderer, position: int, rows: Sequence[int]) -> Notification:
        content = renderer.limit(rows) or self._content(renderer, rows)
        return Notification(self.query.id, Kind.BINDINGS.value, position, content, made=self.made, noun=QUERY_NOUN)

    def placeholder(self, renderer: Renderer, position: int, rows: Sequence[int]) -> EntryPieces | None:
        """Return what stands for an event at the position where the query was registered, which has the answers of
        history, and where it was suspended: no event has completed either."""
        if position != self.made and not renderer.limit(rows):
            return None
        return PlaceholderEntry(self.query, position)

    def _content(self, renderer: Renderer, rows: Sequence[int]) -> dict[str, Any]:
        if len(rows) > SOLUTIONS and not self.asks:
            return describe_limit(LimitReached.SOLUTIONS)
        if self.asks:
            return {"results": boolean_document(True)}
        names, terms = self.query.variables, renderer.solutions.terms(rows)
        width = 1 + len(names)
        solutions = (terms[start + 1 : start + width] for start in range(0, len(terms), width))
        return {"results": results_document(names, solutions)}


class PlaceholderEntry(EntryPieces):
    """An entry without an event."""

    def __init__(self, query: ContinuousQuery, position: int) -> None:
        self._summary = render_members({"position": format_position(position), "time": format_time(query.created)})
        entry = {
            "position": position,
            "stream": f"query-{query.id}",
            "event": f"{ANSWER}{query.id}:{format_position(position)}",
            "text": "",
            "time": query.created,
            "received": query.created,
            "syntax": "",
        }
        super().__init__(pa.Table.from_pylist([entry], schema=ENTRIES))

    def summary(self, position: int) -> bytes:
        return self._summary


class ContinuousQueryCache(RegistryCache[AnswerPresenter]):
    """Continuous queries, each with its presenter."""

    kind, noun = QUERY, QUERY_NOUN

    def __init__(
        self,
        registry: Registry,
        log: EdgeLog,
        threads: ThreadPool,
        has_listeners: Callable[[ContinuousQuery], bool] = lambda query: False,
    ) -> None:
        super().__init__(registry, log, threads, lambda each: has_listeners(each.query))
        self._by_made: dict[int, str] = {}
        self._members = GroupMembers()

    def selectors(self, made: Iterable[int], *, slow: bool = False) -> list[MatchSelector]:
        return [_make_selector(self._known[self._by_made[each]].query) for each in made if each in self._by_made]

    def concerned(self, matches: pa.Table, topic: LiveTopic[int], *, slow: bool = False) -> list[MatchSelector]:
        return self.selectors(each for each in find_concerned(matches, self._members) if each in topic)

    def presenter(self, since: int) -> AnswerPresenter | None:
        return self._known.get(self._by_made.get(since, ""))

    def ended(self) -> list[EndedQuery]:
        return [EndedQuery(each.made, each.until, query_end_message(each)) for each in self.ended_queries()]

    def ended_queries(self) -> list[ContinuousQuery]:
        return [each.query for each in self._known.values() if each.is_ended]

    def is_ended(self, id: str) -> bool:
        known = self._known.get(id)
        return known is not None and known.is_ended

    async def _load(self, change: RegistryChange) -> None:
        presenter = await self._threads.run(_make_presenter, change)
        self._known[presenter.query.id] = presenter
        self._by_made[presenter.made] = presenter.query.id
        if (membership := _membership(presenter.query)) is not None:
            self._members.add(presenter.made, membership)

    async def _change(self, change: RegistryChange) -> bool:
        known = self._known[change.key]
        suspended = change.value is not None and query_from_change(change).state is QueryState.SUSPENDED
        if known.is_ended or not (change.value is None or suspended):
            return False
        state = QueryState.SUSPENDED if suspended else known.query.state
        self._known[change.key] = replace(known, query=replace(known.query, until=change.position, state=state))
        return True

    def _drop(self, entry: AnswerPresenter) -> None:
        del self._by_made[entry.made]
        if (membership := _membership(entry.query)) is not None:
            self._members.remove(entry.made, membership)


def _make_presenter(change: RegistryChange) -> AnswerPresenter:
    query = query_from_change(change)
    if query.state is QueryState.SUSPENDED:
        query = replace(query, until=change.position)
    return AnswerPresenter(query, asks=not query.windowed and parse_query(query.text).form == "ask")


def query_end_message(query: ContinuousQuery) -> ClosingMessage:
    """Return the last message of a query."""
    suspended = query.state is QueryState.SUSPENDED
    return end_message(query.id, QUERY_NOUN, "suspended, since its state was over the limit" if suspended else "ended")


def _membership(query: ContinuousQuery) -> Membership | None:
    """Return the membership in a group of queries with one text, which compare the oldest part of an answer with where
    they begin; None for a query that shares its answers with no other."""
    return None if query.group is None else Membership(query.group, (), query.after, Opcode.GREATER)


def _make_selector(query: ContinuousQuery) -> MatchSelector:
    """Select answers whose oldest part came after the query was registered, or as far as it looks back."""
    return MatchSelector(query.since, query.until, _membership(query), at_once=query.begins is not None)
