"""`GET|POST /sparql`: ask history, by the SPARQL 1.1 Protocol."""

from __future__ import annotations

import orjson
from aiohttp import web

from triplewire.config import limits
from triplewire.edge.ports import Answers
from triplewire.errors import BadRequest, BodyTooLarge, UnknownMediaType

RESULTS = "application/sparql-results+json"
_QUERY = "application/sparql-query"
_FORM = "application/x-www-form-urlencoded"
_TAKEN = frozenset({RESULTS, "application/json", "application/*", "*/*"})


class Questions:
    """Takes queries over HTTP."""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/sparql", self.get, allow_head=False), web.post("/sparql", self.post)]

    async def get(self, request: web.Request) -> web.Response:
        return await self._answer(request, request.query.get("query"))

    async def post(self, request: web.Request) -> web.Response:
        """The query is the body, or the field `query` of a form."""
        if (request.content_length or 0) > 4 * limits.QUERY_BYTES:
            raise BodyTooLarge("the query", limits.QUERY_BYTES)
        if request.content_type == _QUERY:
            return await self._answer(request, await request.text())
        if request.content_type == _FORM:
            field = (await request.post()).get("query")
            return await self._answer(request, field if isinstance(field, str) else None)
        raise UnknownMediaType(request.headers.get("Content-Type", ""), (_QUERY, _FORM))

    async def _answer(self, request: web.Request, text: str | None) -> web.Response:
        _check_accept(request.headers.get("Accept", "*/*"))
        if not text:
            raise BadRequest("there is no query; give it as ?query=, as a form field, or as the body")
        if len(text.encode(errors="replace")) > limits.QUERY_BYTES:
            raise BodyTooLarge("the query", limits.QUERY_BYTES)
        return web.Response(body=orjson.dumps(await self._answers.answer(text)), content_type=RESULTS)


def _check_accept(accept: str) -> None:
    essences = {part.partition(";")[0].strip().lower() for part in accept.split(",")}
    if not essences & _TAKEN:
        raise web.HTTPNotAcceptable(text=f"{accept} cannot be given; results come as {RESULTS}")
