"""`POST /websub`: the hub of all streams, as the W3C's WebSub has it."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from urllib.parse import parse_qsl

from aiohttp import web

from triplewire.access import Principal, Verb
from triplewire.access.owners import owner_of
from triplewire.config import limits
from triplewire.contract import operation_of, serves
from triplewire.contract.callers import caller
from triplewire.contract.catalogue import consuming, hooking
from triplewire.edge.hooks.intents import Intent, Mode
from triplewire.edge.hooks.offices import Office
from triplewire.edge.ports import Entries
from triplewire.model.errors import BadRequest, BodyTooLarge, TriplewireError, Unavailable, UnknownMediaType
from triplewire.model.subscriptions import Owner
from triplewire.storage.registry.ports import Registry
from triplewire.storage.registry.streams import check_stream_name
from triplewire.storage.webhooks import (
    WEBHOOK,
    Webhook,
    WebhookDialect,
    WebhookState,
    webhook_from_change,
    webhook_to_value,
)

FORM = "application/x-www-form-urlencoded"

logger = logging.getLogger(__name__)


class Hub:
    """Takes wishes, asks whoever is meant whether they are theirs, and has hooks of them."""

    def __init__(self, office: Office, registry: Registry, log: Entries) -> None:
        self._office = office
        self._registry = registry
        self._log = log
        self.under_way: set[asyncio.Task[None]] = set()

    def routes(self) -> list[web.RouteDef]:
        return [web.post("/websub", self.take), web.head("/streams/{stream}", self.discover)]

    @serves(hooking.DISCOVER)
    async def discover(self, request: web.Request) -> web.Response:
        """Nothing but where to subscribe, which the headers of every answer about a stream say."""
        check_stream_name(request.match_info["stream"])
        return web.Response(headers={"Vary": "Accept"}, content_type="text/event-stream")

    @serves(hooking.WEBSUB)
    async def take(self, request: web.Request) -> web.Response:
        """The answer says that it is understood; whether it is granted, the callback is told."""
        intent = Intent.parsed(await _form(request), request.host, self._office.outbound.networks)
        if len(self.under_way) >= limits.WEBSUB_INTENTS:
            raise Unavailable("many subscribers are being asked whether they meant it; try again")
        hub = str(request.url.with_path("/websub").with_query(None))
        task = asyncio.create_task(self._settle(intent, hub, caller(request)))
        self.under_way.add(task)
        task.add_done_callback(self.under_way.discard)
        return web.Response(status=202)

    async def close(self) -> None:
        for task in tuple(self.under_way):
            task.cancel()
        await asyncio.gather(*self.under_way, return_exceptions=True)

    async def _settle(self, intent: Intent, hub: str, by: Principal) -> None:
        try:
            if not by.may(Verb.CONSUME, intent.topic.stream):
                await self._office.caller.get(intent.denial("no grant to consume this stream"))
                return
            begin = await self._office.workers.run(self._log.head)
            answer = await self._office.caller.get(intent.question())
            if answer.taken and answer.body.strip() == intent.challenge.encode():
                await self._office.workers.run(self._write, intent, hub, begin, owner_of(by))
        except TriplewireError as error:
            logger.warning("a subscription by WebSub was not made: %s", error)

    def _write(self, intent: Intent, hub: str, begin: int, owner: Owner | None) -> None:
        """Make, renew or end a hook. One that is renewed goes on where it is."""
        change, now = self._registry.get(WEBHOOK, intent.id), self._office.clock.now()
        known = None if change is None else webhook_from_change(change)
        if intent.mode is Mode.UNSUBSCRIBE:
            if known is not None:
                self._registry.put([(WEBHOOK, known.id, webhook_to_value(replace(known, state=WebhookState.ENDED)))])
            return
        until = now + intent.lease * 1_000_000
        if known is None or known.state is not WebhookState.ON or known.until <= now:
            topic = intent.topic
            known = Webhook(
                intent.id, intent.callback, WebhookDialect.WEBSUB, created=now, stream=topic.stream, format=topic.format
            )
            known = replace(known, topic=topic.url, begin=begin)
        if intent.secret is not None:
            self._office.books.keep({known.id: intent.secret})
        self._registry.put([(WEBHOOK, known.id, webhook_to_value(replace(known, hub=hub, until=until, owner=owner)))])


def announce(app: web.Application) -> None:
    """Let answers about a stream say where it can be subscribed to, and as what."""

    async def name(request: web.Request, response: web.StreamResponse) -> None:
        operation = operation_of(request.match_info.handler)
        if operation in (consuming.CONSUME, hooking.DISCOVER) and response.status < 300:
            topic = request.url.with_query({"format": given} if (given := request.query.get("format")) else None)
            hub = request.url.with_path("/websub").with_query(None)
            response.headers.add("Link", f'<{hub}>; rel="hub"')
            response.headers.add("Link", f'<{topic}>; rel="self"')

    app.on_response_prepare.append(name)


async def _form(request: web.Request) -> dict[str, str]:
    if request.content_type != FORM:
        raise UnknownMediaType(request.headers.get("Content-Type", ""), (FORM,))
    body = await request.read()
    if len(body) > limits.WEBSUB_BODY_BYTES:
        raise BodyTooLarge("the form", limits.WEBSUB_BODY_BYTES)
    try:
        return dict(parse_qsl(body.decode(), keep_blank_values=True, strict_parsing=True, max_num_fields=64))
    except ValueError as error:
        raise BadRequest(f"the body is no form: {error}") from None
