"""Receivers over real sockets, a clock that moves when it is told to, and an edge that calls them."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from aiohttp import web

from tests.http.harness import House, house
from triplewire.http.app import EdgeParts
from triplewire.http.resources.explain import SubscriptionExplainer
from triplewire.http.resources.ontologies import OntologyManager
from triplewire.http.resources.routes import registry_routes
from triplewire.http.resources.subscription_requests import BackfillStarts, WebhookRegistrar
from triplewire.http.resources.subscriptions import SubscriptionManager
from triplewire.http.webhooks.calls import RetrySchedule
from triplewire.http.webhooks.context import OutboundOptions
from triplewire.model import parse_position
from triplewire.model.clock import ManualClock
from triplewire.security.webhooks import AllowedNetworks
from triplewire.storage.memory import MemoryWebhookStore
from triplewire.storage.webhooks import WebhookStore

LOCAL = AllowedNetworks.parsed(["127.0.0.0/8"])
LOOK = 0.002

Reply = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True)
class Call:
    """What a receiver was sent."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes


@dataclass
class Receiver:
    """Keeps what it is sent, and answers as it is told, 204 after that."""

    url: str = ""
    calls: asyncio.Queue[Call] = field(default_factory=asyncio.Queue)
    replies: deque[int | Reply] = field(default_factory=deque)
    hanging: int = 0

    async def take(self, request: web.Request) -> web.StreamResponse:
        query, headers = dict(request.query), {key.lower(): value for key, value in request.headers.items()}
        call = Call(request.method, request.path, query, headers, await request.read())
        reply = self.replies.popleft() if self.replies else 204
        self.calls.put_nowait(call)
        return web.Response(status=reply) if isinstance(reply, int) else await reply(request)

    async def hang(self, request: web.Request) -> web.StreamResponse:
        """A reply that does not come."""
        self.hanging += 1
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            self.hanging -= 1
        return web.Response()

    async def next(self) -> Call:
        return await self.calls.get()


@asynccontextmanager
async def receiver(port: int = 0) -> AsyncIterator[Receiver]:
    app, made = web.Application(), Receiver()
    app.router.add_route("*", "/{path:.*}", made.take)
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.01)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    made.url = f"http://127.0.0.1:{runner.addresses[0][1]}/hook"
    try:
        yield made
    finally:
        await runner.cleanup()


class Alarm:
    """Pauses that last until a test moves the clock."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self._waiting: list[tuple[float, asyncio.Future[None]]] = []
        self._asleep = asyncio.Condition()

    async def sleep(self, seconds: float) -> None:
        waking: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        entry = (self._clock.ticks() + seconds, waking)
        self._waiting.append(entry)
        async with self._asleep:
            self._asleep.notify_all()
        try:
            await waking
        finally:
            if entry in self._waiting:
                self._waiting.remove(entry)

    async def pauses(self, count: int = 1) -> list[float]:
        """When so many are asleep: for how many seconds each."""
        async with self._asleep:
            await self._asleep.wait_for(lambda: len(self._waiting) >= count)
        return sorted(at - self._clock.ticks() for at, _ in self._waiting)

    def advance(self, seconds: float) -> None:
        self._clock.advance(seconds)
        due = [each for each in self._waiting if each[0] <= self._clock.ticks()]
        self._waiting = [each for each in self._waiting if each not in due]
        for _, waking in due:
            waking.set_result(None)


@dataclass
class Scene:
    """An edge, somebody who receives, and the books of hooks."""

    at: House
    receiver: Receiver
    alarm: Alarm
    books: WebhookStore

    @property
    def clock(self) -> ManualClock:
        return self.at.twin.clock

    async def call(self, method: str, path: str, status: int = 200, **options: Any) -> Any:  # noqa: ANN401
        async with self.at.session.request(method, self.at.url + path, **options) as response:
            assert response.status == status, await response.text()
            return await response.json() if response.content_type == "application/json" else None

    async def subscribe(self, url: str | None = None, **webhook: Any) -> dict[str, Any]:  # noqa: ANN401
        """A subscription that is told by POST, to the receiver unless somebody else is named."""
        wish = {"sparql": "ASK { ?s ?p ?o }", "webhook": {"url": url or self.receiver.url, **webhook}}
        made: dict[str, Any] = await self.call("POST", "/subscriptions", 201, json=wish)
        return made

    def publish(self, *made: dict[str, Any], count: int = 1) -> list[int]:
        """Events that subscriptions match; their positions."""
        positions = list(self.at.append(*range(count)))
        since = [parse_position(each["since"]) for each in made]
        self.at.match([(position, each, None) for position in positions for each in since])
        return positions

    async def letters(self, made: dict[str, Any]) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (await self.call("GET", f"/subscriptions/{made['id']}/dead-letters"))["letters"]
        return found

    async def until(self, true: Callable[[], object]) -> None:
        """Goes on when the edge has come so far; the edge is asked something each time, so that it gets its turn."""
        while not true():
            await self.call("GET", "/hooks")


@asynccontextmanager
async def scene(
    *,
    books: WebhookStore | None = None,
    attempts: int = 3,
    seconds: float = 20.0,
    networks: AllowedNetworks = LOCAL,
    change: Callable[[EdgeParts], EdgeParts] = lambda parts: parts,
) -> AsyncIterator[Scene]:
    kept, alarms = books or MemoryWebhookStore(), list[Alarm]()

    def hooked(parts: EdgeParts) -> EdgeParts:
        assert isinstance(parts.clock, ManualClock)
        # Libraries that check signatures go by the time that it is.
        parts.clock.jump(int(time.time() * 1_000_000) - parts.clock.now())
        alarms.append(Alarm(parts.clock))
        schedule = RetrySchedule(attempts, replace(RetrySchedule().backoff, chance=lambda: 1.0))
        outbound = OutboundOptions(kept, networks, schedule, alarms[0].sleep, seconds, LOOK)
        subscriptions = SubscriptionManager(
            parts.registry,
            parts.clock,
            starts=BackfillStarts(parts.log, parts.clock),
            webhooks=WebhookRegistrar(kept, networks),
        )
        insights = SubscriptionExplainer(subscriptions, parts.registry, parts.log, parts.clock)
        served = registry_routes(subscriptions, OntologyManager(parts.registry), insights)
        return change(replace(parts, routes=served, outbound=outbound))

    async with receiver() as hearing, house(change=hooked) as at:
        yield Scene(at, hearing, alarms[0], kept)
