"""`/subscriptions`: the routes of control. Errors are raised; whoever serves the routes puts them into words."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import orjson
from aiohttp import web

from triplewire.config import limits
from triplewire.control.subscriptions import Subscriptions, Wish
from triplewire.errors import BadRequest, BodyTooLarge, UnknownMediaType
from triplewire.matching.expansion import timestamp
from triplewire.model import Subscription, parse_token, token

_JSON = "application/json"


def routes(subscriptions: Subscriptions) -> list[web.RouteDef]:
    """Everything about subscriptions but the delivery of their notifications."""
    resource = _Resource(subscriptions)
    return [
        web.post("/subscriptions", resource.make),
        web.get("/subscriptions", resource.page),
        web.get("/subscriptions/{id}", resource.find),
        web.delete("/subscriptions/{id}", resource.end),
    ]


class _Resource:
    """The registry waits for disks and the SPARQL parser takes its time: both happen in threads."""

    def __init__(self, subscriptions: Subscriptions) -> None:
        self._subscriptions = subscriptions

    async def make(self, request: web.Request) -> web.Response:
        """An object makes one subscription, an array makes all that it holds or none."""
        given = await _json(request)
        if isinstance(given, list):
            made = await self._make([Wish.from_json(each) for each in given])
            return _response([document(each) for each in made], status=201)
        (one,) = await self._make([Wish.from_json(given)])
        return _response(document(one), status=201, headers={"Location": f"/subscriptions/{one.id}"})

    async def page(self, request: web.Request) -> web.Response:
        cursor = parse_token(request.query.get("cursor", "earliest"))
        page = await asyncio.to_thread(self._subscriptions.page, cursor, _limit(request))
        following = None if page.next is None else token(page.next)
        return _response({"subscriptions": [document(each) for each in page.subscriptions], "next": following})

    async def find(self, request: web.Request) -> web.Response:
        return _response(document(await asyncio.to_thread(self._subscriptions.find, request.match_info["id"])))

    async def end(self, request: web.Request) -> web.Response:
        await asyncio.to_thread(self._subscriptions.end, request.match_info["id"])
        return web.Response(status=204)

    async def _make(self, wishes: Sequence[Wish]) -> list[Subscription]:
        if not wishes:
            raise BadRequest("the array holds no subscription")
        return await asyncio.to_thread(self._subscriptions.make, wishes)


def document(subscription: Subscription) -> dict[str, Any]:
    """A subscription as clients see it."""
    return {
        "id": subscription.id,
        "sparql": subscription.sparql,
        "kind": subscription.kind.value,
        "stream": subscription.stream,
        "created": timestamp(subscription.created),
        "since": token(subscription.since),
        "notifications": f"/subscriptions/{subscription.id}/notifications",
    }


async def _json(request: web.Request) -> object:
    if request.content_type != _JSON:
        raise UnknownMediaType(request.headers.get("Content-Type", ""), (_JSON,))
    if (request.content_length or 0) > limits.SUBSCRIPTION_BODY_BYTES:
        raise BodyTooLarge("the body", limits.SUBSCRIPTION_BODY_BYTES)
    body = await request.read()
    if len(body) > limits.SUBSCRIPTION_BODY_BYTES:
        raise BodyTooLarge("the body", limits.SUBSCRIPTION_BODY_BYTES)
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise BadRequest(f"the body is not JSON: {error}") from None


def _limit(request: web.Request) -> int:
    text = request.query.get("limit", str(limits.PAGE))
    if not (text.isascii() and text.isdigit()) or not 1 <= int(text[:9]) <= limits.PAGE:
        raise BadRequest(f"limit must be a number from 1 to {limits.PAGE}, not {text!r}")
    return int(text)


def _response(value: object, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    return web.Response(status=status, body=orjson.dumps(value), content_type=_JSON, headers=headers)
