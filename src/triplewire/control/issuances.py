"""`/tokens`: the routes of tokens. Errors are raised; whoever serves them says them."""

from __future__ import annotations

import asyncio
from typing import Any

from aiohttp import web

from triplewire.access.tokens import Token
from triplewire.config import limits
from triplewire.contract import serves
from triplewire.contract.catalogue import admitting
from triplewire.control.bodies import json_of
from triplewire.control.replies import reply
from triplewire.control.tokens import Order, Tokens
from triplewire.matching.results import format_timestamp


def routes(tokens: Tokens) -> list[web.RouteDef]:
    issuances = _Issuances(tokens)
    return [
        web.post("/tokens", issuances.create),
        web.get("/tokens", issuances.all),
        web.get("/tokens/{id}", issuances.find),
        web.delete("/tokens/{id}", issuances.revoke),
    ]


def document(token: Token, now: int) -> dict[str, Any]:
    """What is told of a token; nothing by which anybody could come in."""
    return {
        "id": token.id,
        "name": token.name,
        "allow": list(token.allows),
        "roles": list(token.roles),
        "state": token.state(now),
        "created": format_timestamp(token.created),
        "expires": None if token.expires is None else format_timestamp(token.expires),
        "revoked": None if token.revoked is None else format_timestamp(token.revoked),
    }


class _Issuances:
    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens

    @serves(admitting.CREATE_TOKEN)
    async def create(self, request: web.Request) -> web.Response:
        """201, with the token itself: the only answer that ever has it."""
        given = await json_of(request, limits.TOKEN_BODY_BYTES)
        made, text = await asyncio.to_thread(self._tokens.create, Order.from_json(given))
        headers = {"Location": f"/tokens/{made.id}", "Cache-Control": "no-store"}
        return reply({**self._told(made), "token": text}, status=201, headers=headers)

    @serves(admitting.TOKENS)
    async def all(self, request: web.Request) -> web.Response:
        found = await asyncio.to_thread(self._tokens.all)
        return reply({"tokens": [self._told(each) for each in found]})

    @serves(admitting.FIND_TOKEN)
    async def find(self, request: web.Request) -> web.Response:
        return reply(self._told(await asyncio.to_thread(self._tokens.find, request.match_info["id"])))

    @serves(admitting.REVOKE_TOKEN)
    async def revoke(self, request: web.Request) -> web.Response:
        await asyncio.to_thread(self._tokens.revoke, request.match_info["id"])
        return web.Response(status=204)

    def _told(self, token: Token) -> dict[str, Any]:
        return document(token, self._tokens.now())
