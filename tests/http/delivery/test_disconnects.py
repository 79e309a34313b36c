"""A client that is cut off at random a hundred times, and comes back to where it was, hears everything once."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace

import pytest

from tests.http.delivery.disconnects import (
    UPGRADE,
    Body,
    FrameReading,
    ItemReading,
    LineReading,
    RdfReading,
    Reading,
    Say,
    SseReading,
    read,
)
from tests.http.harness import House, house, run
from triplewire.http.app import EdgeLimits
from triplewire.http.delivery.channels import CONTEXT_LISTENERS
from triplewire.model import START, Subscription, format_position

CUTS = 100
TOLD = ("event", "notification", "item")


@dataclass(frozen=True)
class Transport:
    """How a client asks, and how it reads the answer."""

    name: str
    query: str
    reading: Callable[[], Reading]
    headers: dict[str, str] = field(default_factory=dict)
    acknowledges: bool = False
    budgets: tuple[int, ...] = (500, 2_000, 6_000)
    """Of the bytes after which it is cut off, the most."""

    def packed(self, encoding: str) -> Transport:
        headers = {**self.headers, "Accept_Encoding": encoding}
        return replace(self, name=f"{self.name}, {encoding}", headers=headers, budgets=(500, 1_000, 2_000))


PLAIN = [
    Transport("SSE", "format=sse", SseReading),
    Transport("NDJSON", "format=ndjson", LineReading),
    Transport("N-Quads", "format=nquads", RdfReading),
    Transport("TriG", "format=trig", RdfReading),
    Transport("Ztreamy", "format=ztreamy", ItemReading),
    Transport("poll", "format=ndjson&mode=poll&limit=3&wait=1", LineReading),
]
SSE, ITEMS, POLL = PLAIN[0], PLAIN[4], PLAIN[5]
PACKED = [each.packed(encoding) for each in (SSE, POLL) for encoding in ("gzip", "zstd")]
SOCKETS = [
    Transport("WebSocket", "", FrameReading, UPGRADE),
    Transport("WebSocket, acknowledged", "ack=1&window=2", FrameReading, UPGRADE, acknowledges=True),
]


class Source:
    """Publishes, and has everything matched by two subscriptions."""

    def __init__(self, at: House, *, matched: bool) -> None:
        self.matched = matched
        self._at = at
        self.made: list[Subscription] = [at.subscribe(id="s1"), at.subscribe(id="s2")]
        self.positions: list[int] = []

    def publish(self, count: int) -> None:
        if count:
            found = list(self._at.append(*range(count)))
            self.positions += found
            self._at.edge.log_wakeup.set()
            if self.matched:
                self._at.match([(position, each.since, None) for position in found for each in self.made])
                self._at.edge.topics.matches_wakeup.set()

    def wanted(self, path: str) -> list[str]:
        """The ids of all that is to be heard there, in order."""
        if path != MANY:
            return [format_position(position) for position in self.positions]
        orders = [START, *(each.since for each in self.made)]
        return [
            f"{format_position(position)}~{format_position(order)}" for position in self.positions for order in orders
        ]

    def count(self, path: str) -> int:
        """Of how many there are."""
        return len(self.positions) * (1 + len(self.made) if path == MANY else 1)


@dataclass
class Listener:
    """One that is cut off, again and again."""

    url: str
    path: str
    transport: Transport
    source: Source
    chance: random.Random
    last: str = "earliest"
    heard: list[str] = field(default_factory=list)

    async def connect(self, budget: int, *, enough: bool = False) -> Body:
        """Read so many bytes; or, at last, until everything was heard."""
        reading = self.transport.reading()

        async def take(data: bytes, body: Body, say: Say) -> bool:
            assert body.status in (0, 101, 200, 204), (body.status, data)
            for each in reading.feed(data):
                if each.type in TOLD:
                    self.heard.append(each.id or "")
                if each.type in TOLD or each.type == "position":
                    self.last = each.id or self.last
                    if self.transport.acknowledges and each.type in TOLD:
                        say({"ack": each.id})
            all_heard = len(self.heard) == self.source.count(self.path)
            if all_heard and not enough:
                self.source.publish(1)
            return not all_heard or not enough

        between = "&" if "?" in self.path else "?"
        path = f"{self.path}{between}after={self.last}&linger=0&{self.transport.query}"
        body = await read(self.url, path, budget, take, **self.transport.headers)
        self.last = body.headers.get("position", self.last) if body.whole else self.last
        return body


async def cut(at: House, path: str, transport: Transport, seed: str) -> None:
    source, chance = Source(at, matched=path != STREAM), random.Random(seed)
    listener = Listener(at.url, path, transport, source, chance)
    for _ in range(CUTS):
        source.publish(chance.choice([1, 2]))
        await listener.connect(chance.randint(1, chance.choice(transport.budgets)))
    assert len(listener.heard) > CUTS / 2, "most is heard between the cuts"
    source.publish(1)
    while len(listener.heard) < source.count(path):
        await listener.connect(1 << 30, enough=True)
    assert listener.heard == source.wanted(path)


STREAM, SUBSCRIPTION = "/streams/test", "/subscriptions/s1/notifications"
MANY = "/notifications?subscription=s2&subscription=s1&stream=test"
CASES = [
    *((STREAM, each) for each in (*PLAIN, *PACKED, *SOCKETS)),
    *((SUBSCRIPTION, each) for each in (SSE, POLL, *SOCKETS)),
    *((MANY, each) for each in (PACKED[0], ITEMS, POLL, *SOCKETS)),
]


@pytest.mark.parametrize(("path", "transport"), CASES, ids=[f"{path} {each.name}" for path, each in CASES])
def test_a_hundred_cuts_lose_and_repeat_nothing(path: str, transport: Transport) -> None:
    async def scene() -> None:
        async with house() as at:
            await cut(at, path, transport, f"{path} {transport.name}")

    run(scene())


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_nor_do_they_where_a_context_is_shared_that_begins_anew_all_the_time(encoding: str) -> None:
    async def scene() -> None:
        async with house(limits=EdgeLimits(context_seconds=0.0)) as at, AsyncExitStack() as others:
            headers = {"Accept-Encoding": encoding, "Accept": "text/event-stream"}
            for _ in range(CONTEXT_LISTENERS):
                asked = at.session.get(f"{at.url}/streams/test?linger=0", headers=headers, auto_decompress=False)
                await others.enter_async_context(asked)
            await cut(at, "/streams/test", SSE.packed(encoding), encoding)

    run(scene())
