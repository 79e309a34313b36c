"""Continuous queries that are listened to here, kept up to date from the registry's changes, as subscriptions are."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa

from triplewire.config import limits
from triplewire.edge.feeds.entries import Pieces, moment
from triplewire.edge.feeds.notifications import Speaker, Wanted, reached
from triplewire.edge.feeds.standing import Ended
from triplewire.edge.formats import Finding
from triplewire.edge.formats.ports import end
from triplewire.edge.ports import Entries
from triplewire.edge.telling.frames import members
from triplewire.edge.telling.rooms import Addressee, Room
from triplewire.edge.workers import Workers
from triplewire.matching.index import Membership
from triplewire.matching.index.programs import Opcode
from triplewire.model import END, ENTRIES, Kind, LimitReached, format_position
from triplewire.model.errors import NotFound
from triplewire.model.subscriptions import ANSWER, ContinuousQuery, QueryState
from triplewire.model.terms import boolean_document, results_document
from triplewire.sparql import parse_query
from triplewire.storage.registry.ports import Registry, RegistryChange
from triplewire.storage.registry.subscriptions import QUERY, query_from_change

NOUN = "query"


@dataclass(frozen=True)
class Answering:
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

    def finding(self, speaker: Speaker, position: int, rows: Sequence[int]) -> Finding:
        said = speaker.limit(rows) or self._said(speaker, rows)
        return Finding(self.query.id, Kind.BINDINGS.value, position, said, made=self.made, of=NOUN)

    def lone(self, speaker: Speaker, position: int, rows: Sequence[int]) -> Pieces | None:
        """What the past answers is told where the query was registered, and that it is suspended wherever that was:
        no event has completed either."""
        if position != self.made and not speaker.limit(rows):
            return None
        return Nowhere(self.query, position)

    def _said(self, speaker: Speaker, rows: Sequence[int]) -> dict[str, Any]:
        if len(rows) > limits.SOLUTIONS and not self.asks:
            return reached(LimitReached.SOLUTIONS)
        return {"results": self._results(speaker.solutions.terms(rows))}

    def _results(self, terms: Sequence[str | None]) -> dict[str, Any]:
        names = self.query.variables
        width = 1 + len(names)
        rows = (terms[start + 1 : start + width] for start in range(0, len(terms), width))
        return boolean_document(True) if self.asks else results_document(names, rows)


class Nowhere(Pieces):
    """What stands in the place of an event where there is none."""

    def __init__(self, query: ContinuousQuery, position: int) -> None:
        self._brief = members({"position": format_position(position), "time": moment(query.created)})
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


class Queries:
    """What is known here, up to a position of the registry. Those that are heard are never forgotten. One that was
    suspended has ended for those who listen: nothing more comes of it."""

    def __init__(self, registry: Registry, log: Entries, workers: Workers) -> None:
        self.rooms: list[Room[int]] = []
        self.heard: Callable[[ContinuousQuery], bool] = lambda query: False
        """Whether somebody listens to one elsewhere."""
        self._registry = registry
        self._log = log
        self._workers = workers
        self._position = log.head()
        self._known: OrderedDict[str, Answering] = OrderedDict()
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

    def wanted(self, made: Iterable[int], *, slow: bool = False) -> list[Wanted]:
        return [_listened(self._known[self._by_made[each]].query) for each in made if each in self._by_made]

    def shown(self, since: int) -> Answering | None:
        return self._known.get(self._by_made.get(since, ""))

    def leaving(self, room: Room[int], *, slow: bool) -> Sequence[int]:
        return ()

    def ended(self) -> list[Ended]:
        return [Ended(each.made, each.until, partial(farewell, each)) for each in self.over()]

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
        self._known[found.id] = Answering(found, asks)
        self._by_made[found.made] = found.id

    def _forget_oldest(self) -> None:
        for id in list(self._known)[: max(0, len(self._known) - limits.REMEMBERED_SUBSCRIPTIONS)]:
            known = self._known[id]
            if not self.heard(known.query) and not any(known.made in room for room in self.rooms):
                del self._known[id], self._by_made[known.made]


def farewell(query: ContinuousQuery, listener: Addressee) -> bytes:
    """The last message of a query."""
    why = "suspended, since it held more than it may" if query.state is QueryState.SUSPENDED else "ended"
    return end(listener.manner.format, query.id, NOUN, why)


def _listened(query: ContinuousQuery) -> Wanted:
    """An answer concerns those who were registered before the oldest piece of it, or look back so far."""
    if query.group is None:
        return Wanted(query.since, query.until, None)
    member = Membership(query.group, (), query.after, Opcode.GREATER)
    return Wanted(query.since, query.until, member, at_once=query.begins is not None)
