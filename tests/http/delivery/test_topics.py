"""From history into the present: no gap and no repeat, whatever happens in which order."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.http.harness import OBSERVATIONS
from triplewire.client.feeds import SseParser
from triplewire.config.metrics import Metrics
from triplewire.http.delivery.channels import CachedMessages, Channel, Listener
from triplewire.http.delivery.connections import MemoryConnection
from triplewire.http.delivery.events import EventSource, SourceContext
from triplewire.http.delivery.filtered_events import FilteredEventSource
from triplewire.http.delivery.matches import MatchSource
from triplewire.http.delivery.options import DeliveryOptions, LoopLoad
from triplewire.http.delivery.replay import TieredHistory
from triplewire.http.delivery.subscriptions import SubscriptionCache
from triplewire.http.delivery.topics import LiveTopic
from triplewire.http.formats.messages import NO_MESSAGE, Frames, MessageFormat
from triplewire.http.formats.sse import SSE, render_sse
from triplewire.http.ports import ThreadPool
from triplewire.http.stream_filters.evaluator import FilterEvaluator
from triplewire.http.stream_filters.parameters import PluginCall, StreamFilter, StreamView
from triplewire.http.stream_filters.plugins import PluginFilters
from triplewire.matching.shapes import lift
from triplewire.model import MATCHES, Kind, Subscription, format_position
from triplewire.storage.registry.subscriptions import SHAPE, SUBSCRIPTION, subscription_to_value
from triplewire.testing import Twin, open_twin, publication

KINDS = ("append", "append", "burst", "other", "register", "batch", "step", "settle", "settle", "yield", "join", "mark")
MOVES = st.lists(st.sampled_from(KINDS), min_size=6, max_size=40)


ORDERLY = StreamFilter(plugin=PluginCall("orderly"))


class Nothing:
    """The past of what has none."""

    floor = 0

    async def step(self, cursor: int, format: MessageFormat) -> tuple[Frames, int]:
        raise AssertionError(cursor, format)


class Orderly:
    """A filter that lets even positions through, and does not bear to see an event twice or out of order."""

    def __init__(self) -> None:
        self._last = 0

    def passes(self, batch: pa.Table) -> list[bool]:
        positions = batch["position"].to_pylist()
        if [self._last, *positions] != sorted({self._last, *positions}):
            raise ValueError(self._last, positions)
        self._last = positions[-1]
        return [position % 2 == 0 for position in positions]


class Turns(ThreadPool):
    """Workers without threads: the work is done, then the loop has a number of turns before the answer is there."""

    def __init__(self, turns: list[int]) -> None:
        self._turns = turns

    async def run(self, work: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        result = work(*args, **kwargs)
        for _ in range(self._turns.pop() if self._turns else 1):
            await asyncio.sleep(0)
        return result


async def turns(count: int) -> None:
    """Let the loop turn: whoever can go on does."""
    for _ in range(count):
        await asyncio.sleep(0)


@dataclass
class Stage:
    """Stores, both feeds over them, driven by hand, and the listeners that joined so far."""

    stores: Twin
    turns: list[int]
    batches: int = 0
    tasks: set[asyncio.Task[None]] = field(default_factory=set)
    listening: list[asyncio.Task[None]] = field(default_factory=list)
    heard: list[tuple[int, str, MemoryConnection]] = field(default_factory=list)

    def __post_init__(self) -> None:
        workers, metrics = Turns(self.turns), Metrics()
        lifted = lift(OBSERVATIONS, solutions=False)
        made = Subscription("s", "…", Kind.SIGNAL, lifted.shape.key, ())
        entries = [(SHAPE, lifted.shape.key, lifted.shape.to_value()), (SUBSCRIPTION, "s", subscription_to_value(made))]
        self.since = self.stores.registry.put(entries)[-1]
        self.outbox = self.stores.outbox("")
        log, registry = self.stores.log, self.stores.registry
        context = SourceContext(workers, metrics, limit=2)
        self.events = EventSource(TieredHistory(log), workers, context)
        subscriptions = SubscriptionCache(registry, log, workers)
        sieves = FilterEvaluator(metrics, PluginFilters({"orderly": Orderly}), threads=workers)
        filtered_context = SourceContext(workers, metrics, limit=3)
        self.strains = FilteredEventSource(self.events, log, sieves, filtered_context)
        self.matches = MatchSource(self.outbox, log, subscriptions, context)
        self.metrics = metrics
        self.expected: dict[str, list[int]] = {"stream": [], "subscription": [], "sieve": []}

    async def play(self, move: str) -> None:
        match move:
            case "append" | "burst":
                self.append(1 if move == "append" else 5)
            case "other":
                self.stores.log.append([publication(0, stream="other")])
            case "register":
                self.stores.registry.put([("other", "thing", {})])
            case "batch":
                self.batch()
            case "step":
                # One tail at a time for each feed, as in an edge.
                await self.done(self.tasks)
                self.begin(self.events.step())
                self.begin(self.strains.step())
                self.begin(self.matches.step())
            case "settle":
                await self.play("step")
                await self.done(self.tasks)
                await turns(60)
            case "mark":
                self.strains.topic.keep_alive()
            case "join":
                await self.join()
            case _:
                await asyncio.sleep(0)

    def append(self, count: int) -> None:
        positions = self.stores.log.append([publication(*range(count))])[0]
        self.expected["stream"] += positions
        self.expected["subscription"] += positions
        self.expected["sieve"] += [position for position in positions if position % 2 == 0]

    def batch(self) -> None:
        rows = [p for p in self.expected["subscription"] if p > self.outbox.head()]
        table = pa.Table.from_pylist([{"position": p, "subscription": self.since} for p in rows], schema=MATCHES)
        self.outbox.write(self.batches, self.stores.log.head(), table)
        self.batches += 1

    async def join(self) -> None:
        """Listeners from the start, and from wherever things stand."""
        made, tap = await self.matches.queries.find("s", resuming=False), StreamView("test", ORDERLY)
        for after in (self.since, self.stores.log.head()):
            for kind, room, key, history in (
                ("stream", self.events.topic, StreamView("test"), self.events.history("test")),
                ("sieve", self.strains.topic, tap, self.strains.history(tap, Orderly())),
                ("subscription", self.matches.topic, made.since, self.matches.history(made.made)),
            ):
                wire = MemoryConnection(on_lost=room.lose)
                self.heard.append((after, kind, wire))
                listener = room.open(key, wire, after, self.metrics)  # type: ignore[arg-type]
                self.begin(room.listen(key, listener, history), stays=True)  # type: ignore[arg-type]

    def begin(self, work: Coroutine[Any, Any, None], stays: bool = False) -> None:
        task = asyncio.get_running_loop().create_task(work)
        if stays:
            self.listening.append(task)
        else:
            self.tasks.add(task)

    async def done(self, tasks: set[asyncio.Task[None]]) -> None:
        while tasks:
            await tasks.pop()

    async def finish(self) -> None:
        """Everything is matched and handed out; then the rooms close."""
        self.batch()
        await self.done(self.tasks)
        for _ in range(4):
            await turns(200)
            await self.events.step()
            await self.strains.step()
            await self.matches.step()
        self.events.topic.close(NO_MESSAGE)
        self.strains.topic.close(NO_MESSAGE)
        self.matches.topic.close(NO_MESSAGE)
        for task in self.listening:
            await task


@settings(max_examples=150, deadline=None)
@given(MOVES, st.lists(st.integers(0, 6), max_size=60))
@example(["burst", "batch", "settle", "join", "settle"], [])
@example(["join", "settle", "burst", "batch", "step", "yield", "join", "append", "settle"], [3] * 40)
@example(["settle", "join", "settle", "append", "batch", "settle"], [])
@example(["join", "settle", "burst", "batch", "step", "yield", "yield", "yield", "mark", "settle", "append"], [])
@example(["burst", "batch", "step", "yield", "yield", "join", "settle"], [0, 5, 4, 0, 3, 5, 1, 3, 5, 0, 4, 1])
def test_history_joins_the_present_without_gap_or_repeat(moves: list[str], turns: list[int]) -> None:
    async def scene() -> None:
        with open_twin("memory") as stores:
            stage = Stage(stores, [*turns])
            for move in moves:
                await stage.play(move)
            await stage.finish()
            for after, kind, wire in stage.heard:
                wanted = [format_position(position) for position in stage.expected[kind] if position > after]
                assert [found.id for found in SseParser().feed(bytes(wire.data))] == wanted, (kind, after)
                # Who is cut off anywhere comes back to the last id: it must not have gone beyond what was told.
                told = re.findall(rb"id: ([0-9a-f]{16})", bytes(wire.data))
                assert told == sorted(told), (kind, after)

    asyncio.run(scene())


def telling(*positions: int) -> CachedMessages:
    return CachedMessages(
        lambda format: Frames(
            positions, [render_sse(b"event", b"{}", format_position(position)) for position in positions]
        )
    )


def test_a_message_is_written_only_to_those_who_have_not_had_it() -> None:
    wire = MemoryConnection()
    channel = Channel(DeliveryOptions(), LoopLoad())
    channel.enter(Listener(wire, 2, Metrics()))
    for _ in range(2):
        channel.push(telling(1, 2, 3, 4))
    channel.push(telling(4, 5))
    assert [found.id for found in SseParser().feed(bytes(wire.data))] == [
        format_position(3),
        format_position(4),
        format_position(5),
    ]


def test_a_listener_that_reads_nothing_is_cut_off_at_its_limit_and_no_more_is_kept() -> None:
    wire, metrics = MemoryConnection(reader=lambda written: 0), Metrics()
    channel = Channel(DeliveryOptions(), LoopLoad())
    listener = Listener(wire, 0, metrics, limit=100, on_leave=channel.leave)
    channel.enter(listener)
    for position in range(1, 50):
        channel.push(telling(position))
    assert listener.closed
    assert wire.data.count(b"event: slow") == 1
    assert len(wire.data) < 100 + 250
    assert b"triplewire_listeners_cut_off_total 1.0" in metrics.exposition()
    last = [found.id for found in SseParser().feed(bytes(wire.data)) if found.event == "event"][-1]
    assert f'"position":"{last}"'.encode() in wire.data


def test_a_comment_keeps_a_connection_open_and_who_is_gone_is_forgotten() -> None:
    async def scene() -> None:
        room: LiveTopic[str] = LiveTopic()
        wire = MemoryConnection(on_lost=room.lose)
        await room.listen("k", room.open("k", wire, 0, Metrics()), Nothing())
        assert len(room) == 1
        room.keep_alive()
        assert bytes(wire.data) == SSE.comment
        wire.close()
        assert (len(room), list(room)) == (0, [])

    asyncio.run(scene())
