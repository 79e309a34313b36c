"""`GET /queries/{id}/answers`: hear what a continuous query finds.

```
SELECT, ASK, without windows    the pipeline's third outbox, as notifications
windows, CONSTRUCT              the stream that the query publishes into: those of its events that are its answers
```
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from functools import partial
from typing import Any, TypeVar

from aiohttp import web

from triplewire.access import Principal
from triplewire.access.owners import may_see
from triplewire.contract import serves
from triplewire.contract.callers import caller
from triplewire.contract.catalogue import continuing
from triplewire.edge.feeds.matches import Matches
from triplewire.edge.feeds.queries import Queries, farewell
from triplewire.edge.feeds.taps import Taps
from triplewire.edge.intake.doors import resumption
from triplewire.edge.past.resumptions import Asked, Resumptions, Start
from triplewire.edge.sieves import Tap
from triplewire.edge.telling.receptions import Reception
from triplewire.edge.telling.rooms import History, Room
from triplewire.edge.telling.subjects import Subject
from triplewire.edge.telling.ways import Ways
from triplewire.edge.telling.windows import Windows
from triplewire.model import START
from triplewire.model.errors import NotFound
from triplewire.model.subscriptions import ContinuousQuery

Key = TypeVar("Key", bound=Hashable)


class Outcomes:
    """Lets clients listen to continuous queries."""

    def __init__(
        self,
        matches: Matches[Queries],
        taps: Taps,
        reception: Reception,
        ways: Ways,
        resumptions: Resumptions,
        windows: Windows,
    ) -> None:
        self._matches = matches
        self._taps = taps
        self._reception = reception
        self._ways = ways
        self._resumptions = resumptions
        self._windows = windows
        matches.standing.heard = self._is_heard

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/queries/{id}/answers", self.answer, allow_head=False)]

    @serves(continuing.ANSWERS)
    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Messages until the client goes or the query ends."""
        asked = resumption(request)
        self._reception.check_space()
        return await self._ways.one(request, await self.subject(request.match_info["id"], asked, caller(request)))

    async def subject(self, id: str, asked: Asked | None, by: Principal) -> Subject[Any]:
        """A query. Raises NotFound, also for one of somebody else.

        Who does not say from where gets all that is kept since it was registered.
        """
        resuming = asked is not None and asked != Asked()
        query = await self._matches.standing.find(id, resuming=resuming)
        if not may_see(by, query.owner):
            raise NotFound(f"there is no query {id}")
        return await (self._found(query, asked) if query.into is None else self._published(query, query.into, asked))

    async def leaving(self) -> list[ContinuousQuery]:
        """Those that have ended, and have published all that they will, of which somebody hears the events."""
        heard = [query for query in self._matches.standing.over() if self._is_heard(query)]
        return [query for query in heard if await self._matches.settled(query.until)]

    def see_off(self, leaving: Iterable[ContinuousQuery]) -> None:
        """Tell those who hear the events of queries that nothing more comes; to be said once they heard all of them."""
        for query in leaving:
            self._taps.strains.room.finish(_tap(query), partial(farewell, query))

    async def _found(self, query: ContinuousQuery, asked: Asked | None) -> Subject[int]:
        # What the past answers is told where the query was registered.
        floor = query.since if query.begins is None else query.since - 1
        start = await self._resumptions.since(asked, floor, query.streams)
        room, history = self._matches.room, self._matches.history(query.made)
        return self._subject(query, query.made, room, history, start)

    async def _published(self, query: ContinuousQuery, into: str, asked: Asked | None) -> Subject[Tap]:
        start = await self._resumptions.of_stream(Asked(position=query.since) if asked is None else asked, into)
        tapped = await self._taps.answers(into, query.id, start.told)
        return self._subject(query, tapped.key, tapped.room, tapped.history, start)

    def _subject(
        self, query: ContinuousQuery, key: Key, room: Room[Key], history: History, start: Start
    ) -> Subject[Key]:
        return Subject(
            f"queries/{query.id}",
            key,
            room,
            history,
            start.after,
            start.earliest,
            # Events come before what they matched, whoever published them.
            order=query.made if query.into is None else START,
            window=self._windows.of(query.into),
            ended=partial(self._matches.standing.is_ended, query.id),
        )

    def _is_heard(self, query: ContinuousQuery) -> bool:
        return query.into is not None and _tap(query) in self._taps.strains.room


def _tap(query: ContinuousQuery) -> Tap:
    return Tap(query.into or "", query=query.id)
