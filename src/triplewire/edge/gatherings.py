"""`GET /notifications`: be told of many subscriptions, queries and streams over one connection."""

from __future__ import annotations

from functools import partial
from typing import Any

from aiohttp import web

from triplewire.access import Principal, Verb
from triplewire.config import limits
from triplewire.contract import serves
from triplewire.contract.callers import caller
from triplewire.contract.catalogue import consuming
from triplewire.edge.deliveries import Deliveries
from triplewire.edge.intake.doors import said
from triplewire.edge.outcomes import Outcomes
from triplewire.edge.past.resumptions import NOW, Asked
from triplewire.edge.streams import Streams
from triplewire.edge.telling.marks import Mark
from triplewire.edge.telling.receptions import Reception
from triplewire.edge.telling.sockets import upgrades
from triplewire.edge.telling.subjects import Subject
from triplewire.edge.telling.ways import Ways
from triplewire.model.errors import BadRequest
from triplewire.storage.registry.streams import check_stream_name

KINDS = ("subscription", "query", "stream")


class Gatherings:
    """Brings together what several others let clients listen to."""

    def __init__(
        self, streams: Streams, deliveries: Deliveries, outcomes: Outcomes, reception: Reception, ways: Ways
    ) -> None:
        self._streams = streams
        self._outcomes = outcomes
        self._deliveries = deliveries
        self._reception = reception
        self._ways = ways

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/notifications", self.gather, allow_head=False)]

    @serves(consuming.GATHER)
    async def gather(self, request: web.Request) -> web.StreamResponse:
        """Messages of all that the request names, in one order; over a WebSocket a client may name others later."""
        named = [(kind, name) for kind in KINDS for name in dict.fromkeys(request.query.getall(kind, []))]
        if not named and not upgrades(request):
            raise BadRequest("name what to listen to: ?subscription=, ?query=, ?stream=, each as often as you like")
        if len(named) > limits.GATHERED:
            raise BadRequest(f"{len(named)} are too many for one connection; name at most {limits.GATHERED}")
        self._reception.check_space()
        asked, mark = _asked(said(request))
        find = partial(self.find, caller(request))
        subjects = [await find(kind, name, asked) for kind, name in named]
        if mark is None:
            begin = min([each.after for each in subjects], default=None)
            mark = Mark(await self._reception.head() if begin is None else begin)
        return await self._ways.many(request, subjects, mark, find)

    async def find(self, by: Principal, kind: str, name: str, asked: Asked | None) -> Subject[Any]:
        """A subject by its kind and name. Raises NotFound, Forbidden or BadRequest."""
        if kind == "stream":
            by.require(Verb.CONSUME, check_stream_name(name))
            return await self._streams.subject(check_stream_name(name), asked, by)
        by.require(Verb.SUBSCRIBE)
        if kind == "query":
            return await self._outcomes.subject(name, asked, by)
        return await self._deliveries.subject(name, asked, by)


def _asked(text: str | None) -> tuple[Asked | None, Mark | None]:
    """After what to tell each of them, and the mark that stands for it in the order of all, where it is known."""
    if text is None:
        return None, None
    if ":" not in text and text != NOW:
        mark = Mark.parse(text)
        return Asked(text, position=mark.cursor), mark
    return Asked.parsed(text), None
