"""`GET|POST /sparql`: ask history, by the SPARQL 1.1 Protocol."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace

from aiohttp import web

from triplewire.access import Verb, sight_of
from triplewire.contract import serves
from triplewire.contract.callers import caller
from triplewire.contract.catalogue import querying
from triplewire.edge.descriptions import description
from triplewire.edge.ports import Answer, Answers
from triplewire.edge.questions import accepted, question
from triplewire.edge.workers import Workers
from triplewire.history.requests import HistoryRequest
from triplewire.model.errors import BadRequest, TriplewireError
from triplewire.storage.registry.security import PolicyStore

logger = logging.getLogger(__name__)


class Questions:
    """Takes queries over HTTP."""

    def __init__(self, answers: Answers, policies: PolicyStore, workers: Workers, *, federated: bool = False) -> None:
        """`federated` says whether SERVICE may ask any endpoint."""
        self._answers = answers
        self._policies = policies
        self._workers = workers
        self._federated = federated

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/sparql", self.get, allow_head=False), web.post("/sparql", self.post)]

    @serves(querying.ASK)
    async def get(self, request: web.Request) -> web.StreamResponse:
        """Without a query, what there is to ask."""
        asked = await question(request)
        if asked is None:
            return description(request, accepted(request), federated=self._federated)
        return await self._answer(request, asked)

    @serves(querying.ASK_BY_POST)
    async def post(self, request: web.Request) -> web.StreamResponse:
        asked = await question(request)
        if asked is None:
            raise BadRequest("there is no query; give it as ?query=, as a form field, or as the body")
        return await self._answer(request, asked)

    async def _answer(self, request: web.Request, asked: HistoryRequest) -> web.StreamResponse:
        policy = (await self._workers.run(self._policies.current)).policy
        sight = sight_of(caller(request), Verb.QUERY, policy)
        answer = await self._answers.ask(asked if sight is None else replace(asked, sight=sight))
        try:
            return await _sent(request, answer)
        finally:
            answer.close()


async def _sent(request: web.Request, answer: Answer) -> web.StreamResponse:
    """The answer, piece by piece as it is found. One that ends before it is whole is cut off, so that no client
    takes it for the whole."""
    pieces = aiter(answer)
    # What is refused before the first piece is there can still be told.
    first = await anext(pieces, b"")
    response = web.StreamResponse(headers={"Content-Type": answer.content_type, "Vary": "Accept"})
    await response.prepare(request)
    try:
        async with asyncio.timeout_at(answer.deadline):
            await response.write(first)
            async for piece in pieces:
                await response.write(piece)
            await response.write_eof()
    except (TriplewireError, TimeoutError) as error:
        logger.warning("an answer was cut off: %s", error or "it was read too slowly")
        _cut(request)
    return response


def _cut(request: web.Request) -> None:
    if request.transport is not None:
        request.transport.abort()
    raise ConnectionResetError("cut off")
