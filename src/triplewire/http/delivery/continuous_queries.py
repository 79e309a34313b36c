"""Continuous queries that have listeners here: a cache that follows the registry, and how their answers are rendered.

A suspended query has ended for its listeners: nothing more comes of it.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa

from triplewire.http.delivery.subscriptions import REMEMBERED_SUBSCRIPTIONS, EndedQuery
from triplewire.http.delivery.topics import ClientState, LiveTopic
from triplewire.http.formats.messages import EntryPieces, Notification, end_notice, format_time, render_members
from triplewire.http.formats.notifications import MatchSelector, Renderer, describe_limit
from triplewire.http.ports import EdgeLog, ThreadPool
from triplewire.matching.index import Membership
from triplewire.matching.index.programs import Opcode
from triplewire.matching.plans import SOLUTIONS
from triplewire.model import END, ENTRIES, Kind, LimitReached, format_position
from triplewire.model.errors import NotFound
from triplewire.model.subscriptions import ANSWER, ContinuousQuery, QueryState
from triplewire.model.terms import boolean_document, results_document
from triplewire.sparql import parse_query
from triplewire.storage.registry.ports import Registry, RegistryChange
from triplewire.storage.registry.subscriptions import QUERY, query_from_change

QUERY_NOUN = "query"


@dataclass(frozen=True)
class AnswerPresenter:
    """How answers are told: those that one event completes together. Of an ASK there is one, and it is yes."""

    query: ContinuousQuery
    asks: bool = False
    sight: None = None
    now: None = None

    @property
    def made(self) -> int:
        return self.query.made

    @property
    def is_over(self) -> bool:
        return self.query.until != END

    def finding(self, speaker: Renderer, position: int, rows: Sequence[int]) -> Notification:
        said = speaker.limit(rows) or self._said(speaker, rows)
        return Notification(self.query.id, Kind.BINDINGS.value, position, said, made=self.made, of=QUERY_NOUN)

    def lone(self, speaker: Renderer, position: int, rows: Sequence[int]) -> EntryPieces | None:
        """What the past answers is told where the query was registered, and that it is suspended wherever that was:
        no event has completed either."""
        if position != self.made and not speaker.limit(rows):
            return None
        return PlaceholderEntry(self.query, position)

    def _said(self, speaker: Renderer, rows: Sequence[int]) -> dict[str, Any]:
        if len(rows) > SOLUTIONS and not self.asks:
            return describe_limit(LimitReached.SOLUTIONS)
        return {"results": self._results(speaker.solutions.terms(rows))}

    def _results(self, terms: Sequence[str | None]) -> dict[str, Any]:
        names = self.query.variables
        width = 1 + len(names)
        rows = (terms[start + 1 : start + width] for start in range(0, len(terms), width))
        return boolean_document(True) if self.asks else results_document(names, rows)


class PlaceholderEntry(EntryPieces):
    """What stands in the place of an event where there is none."""

    def __init__(self, query: ContinuousQuery, position: int) -> None:
        self._brief = render_members({"position": format_position(position), "time": format_time(query.created)})
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

    def brief(self, position: int) -> bytes:
        return self._brief


class ContinuousQueryCache:
    """What is known here, up to a position of the registry. Those that are heard are never forgotten. One that was
    suspended has ended for those who listen: nothing more comes of it."""

    def __init__(self, registry: Registry, log: EdgeLog, workers: ThreadPool) -> None:
        self.rooms: list[LiveTopic[int]] = []
        self.heard: Callable[[ContinuousQuery], bool] = lambda query: False
        """Whether somebody listens to one elsewhere."""
        self._registry = registry
        self._log = log
        self._workers = workers
        self._position = log.head()
        self._known: OrderedDict[str, AnswerPresenter] = OrderedDict()
        self._by_made: dict[int, str] = {}
        # A look-up and a refresh never overlap, so that no end slips through between them.
        self._turn = asyncio.Lock()

    async def find(self, id: str, *, resuming: bool) -> ContinuousQuery:
        """The query. One that has ended is found only by those who come back to it. Raises NotFound."""
        async with self._turn:
            change = await self._workers.run(self._registry.get, QUERY, id)
            if change is not None and id not in self._known:
                await self._workers.run(self._note, change)
            known = self._known.get(id)
            if known is None or (change is None and not resuming):
                raise NotFound(f"there is no query {id}")
            self._known.move_to_end(id)
            self._forget_oldest()
            return known.query

    async def refresh(self) -> bool:
        async with self._turn:
            self._position, changes = await self._workers.run(self._news, self._position)
            ended = [self._change(each) for each in changes if each.kind == QUERY and each.key in self._known]
            return any(ended)

    def wanted(self, made: Iterable[int], *, slow: bool = False) -> list[MatchSelector]:
        return [_make_selector(self._known[self._by_made[each]].query) for each in made if each in self._by_made]

    def shown(self, since: int) -> AnswerPresenter | None:
        return self._known.get(self._by_made.get(since, ""))

    def leaving(self, room: LiveTopic[int], *, slow: bool) -> Sequence[int]:
        return ()

    def ended(self) -> list[EndedQuery]:
        return [EndedQuery(each.made, each.until, partial(render_query_end, each)) for each in self.over()]

    def over(self) -> list[ContinuousQuery]:
        """Those that have ended."""
        return [each.query for each in self._known.values() if each.is_over]

    def is_ended(self, id: str) -> bool:
        """Whether one has ended, as far as is known here."""
        known = self._known.get(id)
        return known is not None and known.is_over

    def _change(self, change: RegistryChange) -> bool:
        """Take in the end of one that is known; whether it ended."""
        known = self._known[change.key]
        suspended = change.value is not None and query_from_change(change).state is QueryState.SUSPENDED
        if known.is_over or not (change.value is None or suspended):
            return False
        state = QueryState.SUSPENDED if suspended else known.query.state
        self._known[change.key] = replace(known, query=replace(known.query, until=change.position, state=state))
        return True

    def _news(self, after: int) -> tuple[int, Sequence[RegistryChange]]:
        """How far the registry is, and what changed; where nothing is known here, nothing that changes matters."""
        head = self._log.head()
        return head, self._registry.changes(after, head) if head > after and self._known else ()

    def _note(self, change: RegistryChange) -> None:
        found = query_from_change(change)
        if found.state is QueryState.SUSPENDED:
            found = replace(found, until=change.position)
        asks = not found.windowed and parse_query(found.text).form == "ask"
        self._known[found.id] = AnswerPresenter(found, asks)
        self._by_made[found.made] = found.id

    def _forget_oldest(self) -> None:
        for id in list(self._known)[: max(0, len(self._known) - REMEMBERED_SUBSCRIPTIONS)]:
            known = self._known[id]
            if not self.heard(known.query) and not any(known.made in room for room in self.rooms):
                del self._known[id], self._by_made[known.made]


def render_query_end(query: ContinuousQuery, listener: ClientState) -> bytes:
    """The last message of a query."""
    why = "suspended, since it held more than it may" if query.state is QueryState.SUSPENDED else "ended"
    return end_notice(listener.manner.format, query.id, QUERY_NOUN, why)


def _make_selector(query: ContinuousQuery) -> MatchSelector:
    """An answer concerns those who were registered before the oldest piece of it, or look back so far."""
    if query.group is None:
        return MatchSelector(query.since, query.until, None)
    member = Membership(query.group, (), query.after, Opcode.GREATER)
    return MatchSelector(query.since, query.until, member, at_once=query.begins is not None)
