"""`/hooks` and `/subscriptions/{id}/dead-letters`: the state of webhooks, and the messages that their targets did not
accept. Any edge answers for all webhooks, whichever delivers them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from aiohttp import web

from triplewire.http.auth import caller
from triplewire.http.openapi import resource_operations, routes_of, serves
from triplewire.http.openapi.documents import DeadLetterDocument, WebhookStatusDocument
from triplewire.http.openapi.schemas import ABSENT
from triplewire.http.ports import ThreadPool
from triplewire.http.resources.bodies import JSON, json_response, parse_json, parse_page_size
from triplewire.http.resources.registry_resource import ResourcePage, handle_page
from triplewire.model import END, START, format_position, parse_position
from triplewire.model.clock import format_timestamp
from triplewire.model.errors import BadRequest, Conflict, InvalidField, NotFound, UnknownMediaType
from triplewire.model.subscriptions import Owner
from triplewire.security import Principal
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
"""Dead letters of one webhook, some 100 bytes each. At the limit, the next message is retried without end."""


@dataclass(frozen=True)
class DeadLetters:
    """Endpoints for webhooks and their dead letters. Any edge answers for all webhooks, whichever delivers them."""

    store: WebhookStore
    registry: Registry
    workers: ThreadPool

    def routes(self) -> list[web.RouteDef]:
        def show(each: tuple[Webhook, WebhookProgress | None]) -> WebhookStatusDocument:
            return webhook_status_document(*each)

        hooks = handle_page(resource_operations.HOOKS, "hooks", self._page, show, self.workers.run)
        return routes_of(hooks, self.page, self.drop, self.replay)

    def _page(self, after: int, limit: int, by: Principal) -> ResourcePage[tuple[Webhook, WebhookProgress | None]]:
        hooks = [webhook_from_change(each) for each in self.registry.list(WEBHOOK, after=after, limit=limit + 1)]
        progress, following = self.store.progress(), hooks[limit - 1].since if len(hooks) > limit else None
        return ResourcePage([(each, progress.get(each.id)) for each in hooks[:limit]], following)

    @serves(resource_operations.DEAD_LETTERS)
    async def page(self, request: web.Request) -> web.Response:
        hook, limit = await self._hook(request), parse_page_size(request)
        after = parse_position(request.query.get("cursor", "earliest"))
        letters = await self.workers.run(self.store.dead_letters, hook.id, after, limit + 1)
        following = format_position(letters[limit - 1].position) if len(letters) > limit else None
        documents = [_letter_document(each).to_json() for each in letters[:limit]]
        return json_response({"letters": documents, "next": following})

    @serves(resource_operations.REPLAY_DEAD_LETTERS)
    async def replay(self, request: web.Request) -> web.Response:
        """Deliver all dead letters again, or those at the positions in the body."""
        hook = await self._hook(request)
        if hook.state is not WebhookState.ON:
            gone = f"the target of {hook.id} responded that it is gone (410): nothing is delivered to it any more"
            raise Conflict(gone)
        asked = await self.workers.run(self.store.request_redelivery, hook.id, await _read_positions(request))
        return json_response({"id": hook.id, "replaying": asked}, 202)

    @serves(resource_operations.DROP_DEAD_LETTERS)
    async def drop(self, request: web.Request) -> web.Response:
        """Delete all dead letters, or those at the positions that are named."""
        hook, positions = await self._hook(request), _parse_positions(request.query.getall("position", []))
        if positions is None:
            letters = await self.workers.run(self.store.dead_letters, hook.id, START, DEAD_LETTERS)
            positions = [each.position for each in letters]
        await self.workers.run(self.store.remove, hook.id, positions)
        return web.Response(status=204)

    async def _hook(self, request: web.Request) -> Webhook:
        """Raises NotFound, also if another principal owns it."""
        id = request.match_info["id"]
        hook, owner = await self.workers.run(self._find, id)
        if hook is None or not may_see(caller(request), owner):
            raise NotFound(f"there is no webhook {id}")
        return hook

    def _find(self, id: str) -> tuple[Webhook | None, Owner | None]:
        """A webhook and its owner, who is that of its subscription."""
        change = self.registry.get(WEBHOOK, id)
        hook = None if change is None else webhook_from_change(change)
        if hook is None or hook.state is WebhookState.ENDED:
            return None, None
        change = self.registry.get(SUBSCRIPTION, id) if hook.stream is None else None
        return hook, hook.owner if change is None else subscriptions.subscription_from_change(change).owner


def webhook_status_document(hook: Webhook, progress: WebhookProgress | None) -> WebhookStatusDocument:
    """A webhook and its progress, without its secret."""
    current = progress or WebhookProgress(hook.begin)
    return WebhookStatusDocument(
        id=hook.id,
        dialect=hook.dialect.value,
        url=hook.url,
        state=hook.state.value,
        stream=ABSENT if hook.stream is None else hook.stream,
        topic=ABSENT if hook.stream is None else hook.topic,
        created=format_timestamp(hook.created),
        expires=ABSENT if hook.until == END else format_timestamp(hook.until),
        position=format_position(current.position),
        failures=current.failures,
        parked=current.parked,
        reason=current.reason or ABSENT,
    )


def _letter_document(letter: DeadLetter) -> DeadLetterDocument:
    return DeadLetterDocument(
        id=f"{letter.hook}_{format_position(letter.position)}",
        position=format_position(letter.position),
        attempts=letter.attempts,
        status=letter.status,
        reason=letter.reason,
        parked=format_timestamp(letter.parked),
    )


async def _read_positions(request: web.Request) -> list[int] | None:
    """The positions in a body; None without any. Raises BadRequest, InvalidField or UnknownMediaType."""
    body = await request.read()
    if not body:
        return None
    if request.content_type != JSON:
        raise UnknownMediaType(request.headers.get("Content-Type", ""), (JSON,))
    given = parse_json(body)
    if not isinstance(given, dict) or set(given) - {"positions"}:
        raise BadRequest('the body must be {} or a list of positions: {"positions": ["000000000000002a"]}')
    return _parse_positions(given.get("positions", []))


def _parse_positions(named: object) -> list[int] | None:
    if not isinstance(named, list) or not all(isinstance(each, str) for each in named):
        raise InvalidField("positions", "positions must be a list of positions such as 000000000000002a")
    if len(named) > PAGE_ENTRIES:
        raise InvalidField(
            "positions", f"{len(named)} positions are too many at once; name at most {PAGE_ENTRIES}, or none"
        )
    return [parse_position(each) for each in named] or None
