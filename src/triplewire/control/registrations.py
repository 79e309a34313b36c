"""`/queries`: the routes of continuous queries, but for their answers. Errors are raised; whoever serves them says
them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any

from aiohttp import web

from triplewire.access import Principal
from triplewire.config import limits
from triplewire.contract import serves
from triplewire.contract.callers import caller
from triplewire.contract.catalogue import continuing
from triplewire.control import bulks, documents
from triplewire.control.bodies import body_of, json_of
from triplewire.control.inquiries import Inquiry
from triplewire.control.queries import Queries
from triplewire.control.replies import JSON, page_size, reply
from triplewire.model import format_position, parse_position
from triplewire.model.errors import BadRequest

_TEXTS = (continuing.SPARQL, continuing.TEXT)


def routes(queries: Queries) -> list[web.RouteDef]:
    served = _Queries(queries)
    return [
        web.post("/queries", served.register),
        web.get("/queries", served.page),
        web.get("/queries/{id}", served.find),
        web.delete("/queries/{id}", served.end),
    ]


class _Queries:
    """The registry waits for disks and parsers take their time: in threads."""

    def __init__(self, queries: Queries) -> None:
        self._queries = queries

    @serves(continuing.REGISTER)
    async def register(self, request: web.Request) -> web.StreamResponse:
        """A text or an object registers one query, an array all that it holds or none, lines each one or not."""
        if request.content_type == bulks.MEDIA_TYPE:
            make = partial(self._queries.register_each, by=caller(request))
            return await bulks.reply(request, partial(bulks.answered, Inquiry.from_json, make))
        if request.content_type in _TEXTS:
            return await self._one(Inquiry.from_text(await _text(request), request.query.items()), caller(request))
        given = await json_of(request, limits.SUBSCRIPTION_BODY_BYTES, (JSON, *_TEXTS, bulks.MEDIA_TYPE))
        if not isinstance(given, list):
            return await self._one(Inquiry.from_json(given), caller(request))
        return reply(await self._all([Inquiry.from_json(each) for each in given], caller(request)), status=201)

    @serves(continuing.PAGE)
    async def page(self, request: web.Request) -> web.Response:
        cursor = parse_position(request.query.get("cursor", "earliest"))
        page = await asyncio.to_thread(self._queries.page, cursor, page_size(request), caller(request))
        following = None if page.next is None else format_position(page.next)
        return reply({"queries": [documents.query(each) for each in page.things], "next": following})

    @serves(continuing.FIND)
    async def find(self, request: web.Request) -> web.Response:
        return reply(await asyncio.to_thread(self._found, request.match_info["id"], caller(request)))

    def _found(self, id: str, by: Principal) -> dict[str, Any]:
        """With what the pipeline tells of it, if it does."""
        found, figures = self._queries.find(id, by), self._queries.figures(id)
        return documents.query(found) | ({} if figures is None else {"figures": dict(figures)})

    @serves(continuing.END)
    async def end(self, request: web.Request) -> web.Response:
        await asyncio.to_thread(self._queries.end, request.match_info["id"], caller(request))
        return web.Response(status=204)

    async def _one(self, inquiry: Inquiry, by: Principal) -> web.Response:
        (made,) = await self._all([inquiry], by)
        return reply(made, status=201, headers={"Location": f"/queries/{made['id']}"})

    async def _all(self, inquiries: Sequence[Inquiry], by: Principal) -> list[dict[str, Any]]:
        if not inquiries:
            raise BadRequest("the array holds no query")
        return [documents.query(each) for each in await asyncio.to_thread(self._queries.register, inquiries, by)]


async def _text(request: web.Request) -> str:
    body = await body_of(request, "the query", limits.QUERY_BYTES)
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise BadRequest(f"the query is not UTF-8 at byte {error.start}") from None
