"""`/hooks` and `/subscriptions/{id}/dead-letters`: the state of webhooks, and the messages that their targets did
not
accept. Any edge answers for all webhooks, whichever delivers them.
"""

from __future__ import annotations

from typing import Any, Final

import orjson
from aiohttp import web

from triplewire.http.auth import caller
from triplewire.http.openapi import serves, stream_operations
from triplewire.http.ports import ThreadPool
from triplewire.model import END, START, format_position, parse_position
from triplewire.model.clock import format_timestamp
from triplewire.model.errors import BadRequest, Conflict, InvalidField, NotFound, UnknownMediaType
from triplewire.model.subscriptions import Owner
from triplewire.security.principals import may_see
from triplewire.storage.registry import subscriptions
from triplewire.storage.registry.ports import PAGE_ENTRIES, Registry
from triplewire.storage.registry.subscriptions import SUBSCRIPTION
from triplewire.storage.webhooks import (
    WEBHOOK,
    DeadLetter,
    Webhook,
    WebhookProgress,
    WebhookState,
    WebhookStore,
    webhook_from_change,
)

DEAD_LETTERS: Final = 10_000
"""Messages of one hook that are parked, some 100 bytes each. Where there are as many, the next is not parked but tried
for as long as it takes."""


JSON = "application/json"


class DeadLetters:
    """Any edge tells of all hooks, whichever delivers them."""

    def __init__(self, books: WebhookStore, registry: Registry, workers: ThreadPool) -> None:
        self._books = books
        self._registry = registry
        self._workers = workers

    def routes(self) -> list[web.RouteDef]:
        path = "/subscriptions/{id}/dead-letters"
        return [
            web.get("/hooks", self.all),
            web.get(path, self.page),
            web.delete(path, self.drop),
            web.post("/subscriptions/{id}/replay", self.replay),
        ]

    @serves(stream_operations.HOOKS)
    async def all(self, request: web.Request) -> web.Response:
        """By pages, in the order in which they were set."""
        after, limit = parse_position(request.query.get("cursor", "earliest")), _page_size(request)
        found = await self._workers.run(self._registry.list, WEBHOOK, after=after, limit=limit + 1)
        places = await self._workers.run(self._books.places)
        hooks = [webhook_from_change(each) for each in found[:limit]]
        following = format_position(hooks[-1].since) if len(found) > limit else None
        return _reply(
            {"hooks": [webhook_state_document(each, places.get(each.id)) for each in hooks], "next": following}
        )

    @serves(stream_operations.DEAD_LETTERS)
    async def page(self, request: web.Request) -> web.Response:
        id, after, limit = (
            await self._id(request),
            parse_position(request.query.get("cursor", "earliest")),
            _page_size(request),
        )
        found = await self._workers.run(self._books.letters, id, after, limit + 1)
        following = format_position(found[limit - 1].position) if len(found) > limit else None
        return _reply({"letters": [_letter_document(each) for each in found[:limit]], "next": following})

    @serves(stream_operations.REPLAY_DEAD_LETTERS)
    async def replay(self, request: web.Request) -> web.Response:
        """All of them, or those at the positions that the body names."""
        hook = await self._hook(request)
        if hook.state is not WebhookState.ON:
            raise Conflict(f"the target of {hook.id} has said that it is gone: nothing is delivered to it any more")
        asked = await self._workers.run(self._books.ask, hook.id, await _read_positions(request))
        return _reply({"id": hook.id, "replaying": asked}, 202)

    @serves(stream_operations.DROP_DEAD_LETTERS)
    async def drop(self, request: web.Request) -> web.Response:
        """All that are there now, or those at the positions that are named."""
        id, positions = await self._id(request), _parse_positions(request.query.getall("position", []))
        if positions is None:
            found = await self._workers.run(self._books.letters, id, START, DEAD_LETTERS)
            positions = [each.position for each in found]
        await self._workers.run(self._books.remove, id, positions)
        return web.Response(status=204)

    async def _id(self, request: web.Request) -> str:
        return (await self._hook(request)).id

    async def _hook(self, request: web.Request) -> Webhook:
        """The one that is meant. Raises NotFound, also for one of somebody else."""
        id = request.match_info["id"]
        hook, owner = await self._workers.run(self._found, id)
        if hook is None or not may_see(caller(request), owner):
            raise NotFound(f"{id} is not told by POST, or is not there")
        return hook

    def _found(self, id: str) -> tuple[Webhook | None, Owner | None]:
        """A hook, and whose it is: a webhook is its subscription's."""
        change = self._registry.get(WEBHOOK, id)
        hook = None if change is None else webhook_from_change(change)
        if hook is None or hook.state is WebhookState.ENDED:
            return None, None
        made = self._registry.get(SUBSCRIPTION, id) if hook.stream is None else None
        return hook, hook.owner if made is None else subscriptions.subscription_from_change(made).owner


def webhook_state_document(hook: Webhook, place: WebhookProgress | None) -> dict[str, Any]:
    """What is told of a hook: everything but its secret."""
    told: dict[str, Any] = {"id": hook.id, "dialect": hook.dialect.value, "url": hook.url, "state": hook.state.value}
    told |= {"stream": hook.stream, "topic": hook.topic} if hook.stream is not None else {}
    told |= {"created": format_timestamp(hook.created)}
    told |= {} if hook.until == END else {"expires": format_timestamp(hook.until)}
    at = place or WebhookProgress(hook.begin)
    told |= {"position": format_position(at.position), "failures": at.failures, "parked": at.parked}
    return {**told, "reason": at.reason} if at.reason else told


def _letter_document(letter: DeadLetter) -> dict[str, Any]:
    return {
        "id": f"{letter.hook}_{format_position(letter.position)}",
        "position": format_position(letter.position),
        "attempts": letter.attempts,
        "status": letter.status,
        "reason": letter.reason,
        "parked": format_timestamp(letter.parked),
    }


async def _read_positions(request: web.Request) -> list[int] | None:
    """The positions that a body names; None without any. Raises BadRequest, InvalidField or UnknownMediaType."""
    body = await request.read()
    if not body:
        return None
    if request.content_type != JSON:
        raise UnknownMediaType(request.headers.get("Content-Type", ""), (JSON,))
    try:
        given = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise BadRequest(f"the body is not JSON: {error}") from None
    if not isinstance(given, dict) or set(given) - {"positions"}:
        raise BadRequest('the body is {}, or names positions: {"positions": ["000000000000002a"]}')
    return _parse_positions(given.get("positions", []))


def _parse_positions(named: object) -> list[int] | None:
    if not isinstance(named, list) or not all(isinstance(each, str) for each in named):
        raise InvalidField("positions", "positions must be a list of some, such as 000000000000002a")
    if len(named) > PAGE_ENTRIES:
        raise InvalidField(
            "positions",
            f"{len(named)} positions are too many at once; name at most {PAGE_ENTRIES}, or none",
        )
    return [parse_position(each) for each in named] or None


def _page_size(request: web.Request) -> int:
    text = request.query.get("limit", str(PAGE_ENTRIES))
    if not (text.isascii() and text.isdigit()) or not 1 <= int(text[:9]) <= PAGE_ENTRIES:
        raise BadRequest(f"limit must be a number from 1 to {PAGE_ENTRIES}, not {text!r}")
    return int(text)


def _reply(value: object, status: int = 200) -> web.Response:
    return web.Response(status=status, body=orjson.dumps(value), content_type=JSON)
