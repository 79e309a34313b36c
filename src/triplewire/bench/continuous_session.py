"""A session of `bench continuous`: one broker, the questions that stand there, and what is published to it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from triplewire.bench.broker import Broker
from triplewire.bench.continuous_conjunctions import Codes, Triples, Workload, bodies, lines, sparql
from triplewire.client import AsyncClient
from triplewire.model import parse_position
from triplewire.model.errors import Unavailable
from triplewire.storage.outbox import SqliteOutbox

STREAM = "triples"
BODY_TRIPLES = 2_000
PUBLISHERS = 2
LOOK_SECONDS = 0.02
PATIENCE = 240.0
"""Seconds without any progress after which there will be none."""


@dataclass(frozen=True)
class Sent:
    """What was published: of each triple the position; and the seconds until all was acknowledged."""

    positions: Codes
    seconds: float

    @property
    def last(self) -> int:
        return int(self.positions.max())


@dataclass
class Session:
    """Publishes, and waits for answers. Every event has a number of its own."""

    broker: Broker
    client: AsyncClient
    workload: Workload
    together: int = 1
    """Triples in an event."""
    ids: list[str] = field(default_factory=list)
    """Of the questions, in order."""
    published: int = 0

    def __post_init__(self) -> None:
        self.outbox = SqliteOutbox(self.broker.settings.continuous_outbox)

    async def register(self, options: Mapping[str, Any]) -> tuple[float, float]:
        """All questions, in bulk. The seconds until they were made, and until the pipeline has learned of all."""
        began = time.perf_counter()
        wishes = ({"query": sparql(self.workload, each), **options} for each in self.workload.questions)
        last = 0
        async for made in self.client.register_bulk(wishes):
            if "id" not in made:
                raise Unavailable(f"a question was refused: {made}")
            self.ids.append(made["id"])
            last = max(last, parse_position(made["position"]))
        taken = time.perf_counter() - began
        await self.passed(last)
        return taken, time.perf_counter() - began

    async def publish(self, triples: Triples) -> Sent:
        """As fast as they are taken, in any order of bodies."""
        return await self.send(lines(self.workload, triples))

    async def send(self, texts: Sequence[str]) -> Sent:
        waiting = iter(enumerate(bodies(texts, self.published, BODY_TRIPLES, self.together)))
        self.published += -(-len(texts) // self.together)
        found: dict[int, Codes] = {}
        began = time.perf_counter()
        await asyncio.gather(*(self._publisher(waiting, found) for _ in range(PUBLISHERS)))
        seconds = time.perf_counter() - began
        events = np.concatenate([found[number] for number in sorted(found)])
        return Sent(np.repeat(events, self.together)[: len(texts)], seconds)

    async def passed(self, position: int) -> None:
        """Until continuous queries have taken in all up to a position. Raises Unavailable where nothing goes on."""
        head, since = -1, time.perf_counter()
        while (now := self.outbox.head()) < position:
            if now != head:
                head, since = now, time.perf_counter()
            if time.perf_counter() - since > PATIENCE:
                raise Unavailable(f"continuous queries have stood at {now} for {PATIENCE:.0f} s, before {position}")
            await asyncio.sleep(LOOK_SECONDS)

    async def figures(self, position: int) -> dict[str, Any]:
        """What the pipeline tells of continuous queries, once it has told of that position."""
        while True:
            found: dict[str, Any] = self.broker.up.heartbeat().detail.get("ongoing", {})
            if found.get("position", -1) >= position:
                return found
            await asyncio.sleep(0.1)

    async def _publisher(self, waiting: Any, found: dict[int, Codes]) -> None:  # noqa: ANN401
        for number, body in waiting:
            receipt = await self.client.publish(STREAM, body)
            first, last = parse_position(receipt["first"]), parse_position(receipt["last"])
            if last - first + 1 != receipt["events"]:
                raise Unavailable(f"events of one body do not lie side by side: {receipt}")
            found[number] = np.arange(first, last + 1)
