"""`POST /websub`: a WebSub hub (W3C) for all streams.

```
subscriber                                hub
    │── POST /websub  hub.mode=subscribe ──▶│
    │◀───────────────────────────── 202 ────│
    │◀── GET callback?hub.challenge=… ──────│   verification of intent
    │── 200 and the challenge ─────────────▶│
    │◀── POST callback  an event ───────────│   until the lease is over
```
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from hashlib import sha256
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit

from aiohttp import web

from triplewire.http.auth import caller
from triplewire.http.openapi import operation_of, routes_of, serves, stream_operations
from triplewire.http.webhooks.context import DeliveryContext
from triplewire.http.webhooks.deliverer import TOPIC_FORMATS
from triplewire.model.errors import BadRequest, BodyTooLarge, TriplewireError, Unavailable, UnknownMediaType
from triplewire.model.subscriptions import Owner
from triplewire.security import Principal, Verb
from triplewire.security.principals import owner_of
from triplewire.security.webhooks import AllowedNetworks, parse_target
from triplewire.storage.log.ports import EdgeLog
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

WEBSUB_LEASE_SECONDS: Final = 864_000
"""The default lease of a subscription by WebSub: ten days, as the specification suggests."""

WEBSUB_LEASE_SECONDS_LEAST: Final = 60
"""The shortest lease: each renewal is a change of the registry."""

WEBSUB_LEASE_SECONDS_MOST: Final = 2_592_000
"""The longest lease: subscribers that are gone are forgotten after a month."""

WEBSUB_SECRET_BYTES: Final = 200
"""A secret has fewer bytes (WebSub)."""

WEBSUB_BODY_BYTES: Final = 16_384
"""The form of a subscription: two URLs and a secret."""

WEBSUB_VERIFICATIONS: Final = 64
"""Concurrent verifications of intent in one edge."""


class HubMode(StrEnum):
    SUBSCRIBE = "subscribe"
    UNSUBSCRIBE = "unsubscribe"


@dataclass(frozen=True)
class HubTopic:
    """The URL of a stream, and the format in which it is sent."""

    url: str
    stream: str
    format: str

    @classmethod
    def parsed(cls, url: str, host: str) -> HubTopic:
        """Raises BadRequest for anything but a stream of this host."""
        parts = urlsplit(url)
        folder, _, name = parts.path.rpartition("/")
        if parts.scheme not in ("http", "https") or parts.netloc != host or folder != "/streams" or parts.fragment:
            raise BadRequest(f"hub.topic must be the URL of a stream here, such as http://{host}/streams/home")
        asked = dict(parse_qsl(parts.query, keep_blank_values=True))
        format = asked.pop("format", "nquads")
        if asked or format not in TOPIC_FORMATS:
            raise BadRequest(f"hub.topic may have ?format={' or '.join(TOPIC_FORMATS)}, and nothing else")
        return cls(url, check_stream_name(name), format)


@dataclass(frozen=True)
class HubRequest:
    """A request to subscribe or unsubscribe."""

    mode: HubMode
    topic: HubTopic
    callback: str
    lease: int
    secret: str | None = field(default=None, repr=False)
    challenge: str = field(default_factory=lambda: secrets.token_urlsafe(24))

    @classmethod
    def parsed(cls, form: Mapping[str, str], host: str, networks: AllowedNetworks) -> HubRequest:
        """Raises BadRequest."""
        try:
            mode = HubMode(form.get("hub.mode", ""))
        except ValueError:
            raise BadRequest(f"hub.mode must be {' or '.join(HubMode)}") from None
        callback = parse_target(form.get("hub.callback", ""), networks).url
        topic = HubTopic.parsed(form.get("hub.topic", ""), host)
        return cls(
            mode, topic, callback, _parse_lease(form.get("hub.lease_seconds")), _check_secret(form.get("hub.secret"))
        )

    @property
    def id(self) -> str:
        """Equal for equal topic and callback: a repeated request renews the subscription."""
        return sha256(f"{self.topic.url}\n{self.callback}".encode()).hexdigest()[:32]

    def question(self) -> str:
        """The URL of the verification of intent."""
        asked = {"hub.mode": self.mode.value, "hub.topic": self.topic.url, "hub.challenge": self.challenge}
        asked |= {"hub.lease_seconds": str(self.lease)} if self.mode is HubMode.SUBSCRIBE else {}
        return _add_query(self.callback, asked)

    def denial(self, reason: str) -> str:
        """The URL by which the subscriber learns that it is denied."""
        return _add_query(self.callback, {"hub.mode": "denied", "hub.topic": self.topic.url, "hub.reason": reason})


def _add_query(url: str, parameters: Mapping[str, str]) -> str:
    return f"{url}{'&' if urlsplit(url).query else '?'}{urlencode(parameters)}"


def _parse_lease(given: str | None) -> int:
    """The requested lease, within bounds."""
    if given is None or given == "":
        return WEBSUB_LEASE_SECONDS
    if not (given.isascii() and given.isdigit()):
        raise BadRequest(f"hub.lease_seconds must be a whole number of seconds, not {given!r}")
    return min(max(int(given[:12]), WEBSUB_LEASE_SECONDS_LEAST), WEBSUB_LEASE_SECONDS_MOST)


def _check_secret(given: str | None) -> str | None:
    if given is not None and not 0 < len(given.encode()) < WEBSUB_SECRET_BYTES:
        raise BadRequest(f"hub.secret has at least one and less than {WEBSUB_SECRET_BYTES} bytes")
    return given


FORM = "application/x-www-form-urlencoded"

logger = logging.getLogger(__name__)


class WebSubHub:
    """Accepts subscription requests, verifies their intent, and registers webhooks for them."""

    def __init__(self, context: DeliveryContext, registry: Registry, log: EdgeLog) -> None:
        self._context = context
        self._registry = registry
        self._log = log
        self.verifying: set[asyncio.Task[None]] = set()

    def routes(self) -> list[web.RouteDef]:
        return routes_of(self.request, self.discover)

    @serves(stream_operations.DISCOVER_HUB)
    async def discover(self, request: web.Request) -> web.Response:
        """An empty response whose `Link` headers name the hub and the topic."""
        check_stream_name(request.match_info["stream"])
        return web.Response(headers={"Vary": "Accept"}, content_type="text/event-stream")

    @serves(stream_operations.WEBSUB)
    async def request(self, request: web.Request) -> web.Response:
        """202: the request is valid. The callback learns whether it is granted."""
        wanted = HubRequest.parsed(await _read_form(request), request.host, self._context.outbound.networks)
        if len(self.verifying) >= WEBSUB_VERIFICATIONS:
            raise Unavailable("too many verifications of intent are in progress; try again")
        hub = str(request.url.with_path("/websub").with_query(None))
        task = asyncio.create_task(self._verify(wanted, hub, caller(request)))
        self.verifying.add(task)
        task.add_done_callback(self.verifying.discard)
        return web.Response(status=202)

    async def close(self) -> None:
        for task in tuple(self.verifying):
            task.cancel()
        await asyncio.gather(*self.verifying, return_exceptions=True)

    async def _verify(self, wanted: HubRequest, hub: str, by: Principal) -> None:
        try:
            if not by.may(Verb.CONSUME, wanted.topic.stream):
                await self._context.caller.get(wanted.denial("no grant to consume this stream"))
                return
            begin = await self._context.workers.run(self._log.head)
            answer = await self._context.caller.get(wanted.question())
            if answer.accepted and answer.body.strip() == wanted.challenge.encode():
                await self._context.workers.run(self._write, wanted, hub, begin, owner_of(by))
        except TriplewireError as error:
            logger.warning("a WebSub subscription could not be registered: %s", error)

    def _write(self, wanted: HubRequest, hub: str, begin: int, owner: Owner | None) -> None:
        """Create, renew or end a webhook. A renewed one continues at its position."""
        change, now = self._registry.get(WEBHOOK, wanted.id), self._context.clock.now()
        known = None if change is None else webhook_from_change(change)
        if wanted.mode is HubMode.UNSUBSCRIBE:
            if known is not None:
                self._registry.put([(WEBHOOK, known.id, webhook_to_value(replace(known, state=WebhookState.ENDED)))])
            return
        until = now + wanted.lease * 1_000_000
        if known is None or known.state is not WebhookState.ON or known.until <= now:
            topic = wanted.topic
            known = Webhook(
                wanted.id, wanted.callback, WebhookDialect.WEBSUB, created=now, stream=topic.stream, format=topic.format
            )
            known = replace(known, topic=topic.url, begin=begin)
        if wanted.secret is not None:
            self._context.store.put_secrets({known.id: wanted.secret})
        self._registry.put([(WEBHOOK, known.id, webhook_to_value(replace(known, hub=hub, until=until, owner=owner)))])


def add_hub_links(app: web.Application) -> None:
    """Add `Link` headers with hub and topic to responses about a stream."""

    async def name(request: web.Request, response: web.StreamResponse) -> None:
        operation = operation_of(request.match_info.handler)
        if operation in (stream_operations.CONSUME, stream_operations.DISCOVER_HUB) and response.status < 300:
            topic = request.url.with_query({"format": given} if (given := request.query.get("format")) else None)
            hub = request.url.with_path("/websub").with_query(None)
            response.headers.add("Link", f'<{hub}>; rel="hub"')
            response.headers.add("Link", f'<{topic}>; rel="self"')

    app.on_response_prepare.append(name)


async def _read_form(request: web.Request) -> dict[str, str]:
    if request.content_type != FORM:
        raise UnknownMediaType(request.headers.get("Content-Type", ""), (FORM,))
    body = await request.read()
    if len(body) > WEBSUB_BODY_BYTES:
        raise BodyTooLarge("the form", WEBSUB_BODY_BYTES)
    try:
        return dict(parse_qsl(body.decode(), keep_blank_values=True, strict_parsing=True, max_num_fields=64))
    except ValueError as error:
        raise BadRequest(f"the body is not a form: {error}") from None
