"""Readers: in whatever order events, matches, passes and reads happen, each message is given out once, in order."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.http.harness import OBSERVATIONS
from triplewire.config.metrics import Metrics
from triplewire.http.delivery.events import EventSource, SourceContext
from triplewire.http.delivery.matches import MatchSource
from triplewire.http.delivery.merger import Merger
from triplewire.http.delivery.replay import TieredHistory
from triplewire.http.delivery.subscriptions import SubscriptionCache
from triplewire.http.delivery.topics import Subscribable
from triplewire.http.formats.messages import ResumeToken
from triplewire.http.formats.sse import SSE
from triplewire.http.openapi.operations import HISTORY_EVENTS
from triplewire.http.ports import ThreadPool
from triplewire.http.stream_filters.parameters import StreamView
from triplewire.matching.shapes import lift
from triplewire.model import MATCHES, START, Kind, Subscription
from triplewire.storage.outbox import MemoryOutbox
from triplewire.storage.registry.subscriptions import SHAPE, SUBSCRIPTION, subscription_to_value
from triplewire.testing import Twin, open_twin, publication

MOVES = st.lists(st.sampled_from(["append", "burst", "batch", "step", "steps", "read", "join"]), max_size=25)


class Stage:
    """A reader of a stream and of subscriptions that match everything, on feeds that move only when told to."""

    def __init__(self, stores: Twin, limit: int = HISTORY_EVENTS) -> None:
        self.stores = stores
        self.workers = ThreadPool(1, "stage")
        outbox = stores.outbox("")
        assert isinstance(outbox, MemoryOutbox)
        self.outbox = outbox
        self.batches = 0
        self.made = [self._subscribe(id) for id in ("a", "b", "c")]
        context = SourceContext(self.workers, Metrics(), limit=2)
        self.events = EventSource(TieredHistory(stores.log), self.workers, context)
        known = SubscriptionCache(stores.registry, stores.log, self.workers)
        self.matches = MatchSource(self.outbox, stores.log, known, context)
        self.begin = stores.log.head()
        self.reader = Merger(ResumeToken(self.begin), SSE, many=True, limit=limit)
        self.positions: list[int] = []
        self.told: list[ResumeToken] = []

    def _subscribe(self, id: str) -> Subscription:
        lifted = lift(OBSERVATIONS, solutions=False)
        made = Subscription(id, "SELECT …", Kind.SIGNAL, lifted.shape.key, lifted.constants)
        shape = (SHAPE, lifted.shape.key, lifted.shape.to_value())
        since = self.stores.registry.put([shape, (SUBSCRIPTION, id, subscription_to_value(made))])[-1]
        return replace(made, since=since)

    async def start(self) -> None:
        """The third of the subscriptions joins later."""
        room, history = self.events.topic, self.events.history("test")
        self.reader.add(Subscribable("streams/test", StreamView("test"), room, history, self.begin))
        for id in ("a", "b"):
            await self.join(id)

    async def join(self, id: str) -> None:
        if id not in self.reader:
            found = await self.matches.queries.find(id, resuming=False)
            history = self.matches.history(found.made)
            self.reader.add(Subscribable(id, found.made, self.matches.topic, history, self.begin, order=found.made))

    async def play(self, move: str) -> None:
        match move:
            case "append" | "burst":
                for _ in range(1 if move == "append" else 5):
                    self.positions += self.stores.log.append([publication(1)])[0]
            case "batch":
                self.batch()
            case "step":
                await self.events.step()
            case "steps":
                await self.matches.step()
            case "join":
                await self.join("c")
            case "read":
                await self.read()

    def batch(self) -> None:
        rows = [(p, each.since) for p in self.positions if p > self.outbox.head() for each in self.made]
        table = pa.Table.from_pylist([{"position": p, "subscription": s} for p, s in rows], schema=MATCHES)
        self.outbox.write(self.batches, self.stores.log.head(), table)
        self.batches += 1

    async def read(self) -> None:
        """What comes without waiting for anything but threads."""
        while batch := await self.reader.next(0):
            self.told += [mark for mark, _ in batch.messages]


def wanted(stage: Stage, orders: Sequence[int]) -> list[ResumeToken]:
    return [ResumeToken(position, order) for position in stage.positions for order in orders]


@settings(max_examples=60, deadline=None)
@given(MOVES)
@example(["burst", "batch", "step", "read", "steps", "read", "append", "step", "steps", "read"])
@example(["read", "append", "step", "burst", "batch", "steps", "read", "burst", "burst", "step", "batch", "steps"])
def test_everything_is_given_out_once_and_in_order(moves: list[str]) -> None:
    moves = [move for move in moves if move != "join"]

    async def scene() -> None:
        with open_twin("memory") as stores:
            stage = Stage(stores)
            await stage.start()
            for move in [*moves, "batch", "step", "steps", "read"]:
                await stage.play(move)
            orders = [START, *(each.since for each in stage.made[:2])]
            assert stage.told == wanted(stage, orders)
            stage.reader.close()
            assert (len(stage.events.topic), len(stage.matches.topic)) == (0, 0)

    asyncio.run(scene())


@settings(max_examples=40, deadline=None)
@given(MOVES)
@example(["burst", "step", "read", "join", "append", "step", "batch", "steps", "read"])
def test_one_that_joins_later_is_told_from_its_beginning_and_the_others_in_order(moves: list[str]) -> None:
    async def scene() -> None:
        with open_twin("memory") as stores:
            stage = Stage(stores)
            await stage.start()
            for move in [*moves, "join", "batch", "step", "steps", "read"]:
                await stage.play(move)
            *others, late = [START, *(each.since for each in stage.made)]
            assert [mark for mark in stage.told if mark.made != late] == wanted(stage, others)
            assert [mark for mark in stage.told if mark.made == late] == wanted(stage, [late])

    asyncio.run(scene())


def test_one_that_takes_nothing_holds_one_step_and_is_told_everything_later() -> None:
    async def scene() -> None:
        with open_twin("memory") as stores:
            stage = Stage(stores, limit=7)
            await stage.start()
            await stage.read()
            held: list[Any] = []
            for _ in range(10):
                await stage.play("burst")
                await stage.play("batch")
                await stage.play("step")
                await stage.play("steps")
                held += [len(each._waiting) for each in stage.reader._cursors.values()]
            assert 0 < max(held) <= 7
            await stage.read()
            orders = [START, *(each.since for each in stage.made[:2])]
            assert stage.told == wanted(stage, orders)

    asyncio.run(scene())
