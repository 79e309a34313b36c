"""A whole edge over real sockets, with stores in memory, and a client's view of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import aiohttp
import orjson
import pyarrow as pa
import uvloop
from aiohttp import web

from triplewire.client.feeds import SseMessage, SseParser
from triplewire.config.status import Heartbeat
from triplewire.history.requests import HistoryRequest
from triplewire.http.app import EDGE, Edge, EdgeLimits, EdgeParts, application
from triplewire.http.server import EdgeRunner, make_runner
from triplewire.matching.shapes import lift
from triplewire.model import MATCHES, Event, Kind, Subscription
from triplewire.model.errors import TriplewireError
from triplewire.sparql import Query, parse_query
from triplewire.storage.log.group_commit import GroupCommit
from triplewire.storage.log.ports import SEGMENT_LIMITS, SegmentLimits
from triplewire.storage.outbox import MemoryOutbox
from triplewire.storage.registry.subscriptions import SHAPE, SUBSCRIPTION, subscription_to_value
from triplewire.testing import Twin, event, open_twin, publication
from triplewire.testing.samples import EXAMPLE

T = TypeVar("T")

OBSERVATIONS = parse_query(f"SELECT ?o ?v {{ ?o a <{EXAMPLE}Observation> ; <{EXAMPLE}result> ?v }}")


class Restless:
    """A watch that always sees a change: the edge then looks at the store each time."""

    def changed(self) -> bool:
        return True


@dataclass
class Said:
    """An answer whose pieces are known. One that is an error is raised."""

    pieces: Sequence[bytes | TriplewireError]
    content_type: str = "application/sparql-results+json"
    deadline: float = float("inf")
    closed: bool = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self.pieces:
            if isinstance(piece, TriplewireError):
                raise piece
            yield piece

    def close(self) -> None:
        self.closed = True


class Echo:
    """Answers every query with what it was asked."""

    async def ask(self, request: HistoryRequest) -> Said:
        return Said([orjson.dumps(request.to_json())])


@dataclass
class House:
    """One edge, what it stands on, and a session to talk to it."""

    url: str
    twin: Twin
    outbox: MemoryOutbox
    edge: Edge
    runner: EdgeRunner
    session: aiohttp.ClientSession
    batches: int = field(default=0)

    def subscribe(self, kind: Kind = Kind.SIGNAL, id: str = "s1", query: Query = OBSERVATIONS) -> Subscription:
        lifted = lift(query, solutions=kind is Kind.BINDINGS)
        made = Subscription(id, "SELECT …", kind, lifted.shape.key, lifted.constants)
        positions = self.twin.registry.put(
            [(SHAPE, lifted.shape.key, lifted.shape.to_value()), (SUBSCRIPTION, id, subscription_to_value(made))]
        )
        return replace(made, since=positions[-1])

    def end(self, id: str) -> int:
        return self.twin.registry.put([(SUBSCRIPTION, id, None)])[0]

    def append(self, *numbers: int, stream: str = "test") -> Sequence[int]:
        return self.twin.log.append([publication(*numbers, stream=stream)])[0]

    def match(self, rows: Iterable[tuple[int, int, Sequence[int] | None]], through: int | None = None) -> None:
        """What the pipeline would write: (position, since, solutions) in any order."""
        table = pa.Table.from_pylist(
            [{"position": p, "subscription": s, "solutions": numbers} for p, s, numbers in rows], schema=MATCHES
        )
        self.write(table, through)

    def write(self, matches: pa.Table, through: int | None = None) -> None:
        """A batch of the pipeline's."""
        self.outbox.write(self.batches, self.twin.log.head() if through is None else through, matches)
        self.batches += 1

    @asynccontextmanager
    async def listen(self, path: str, **headers: str) -> AsyncIterator[Ear]:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        async with self.session.get(self.url + path, headers=given) as response:
            assert response.status == 200, await response.text()
            yield Ear(response)

    async def problem(self, method: str, path: str, **options: Any) -> dict[str, Any]:  # noqa: ANN401
        async with self.session.request(method, self.url + path, **options) as response:
            assert response.content_type == "application/problem+json", (response.status, await response.text())
            document: dict[str, Any] = orjson.loads(await response.read())
        assert document["status"] == response.status
        assert {"type", "title", "detail"} <= set(document)
        return document


class Ear:
    """Reads the messages of one response."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.response = response
        self._parser = SseParser()
        self._heard: list[SseMessage] = []
        self.begun: list[SseMessage] = []

    async def next(self) -> SseMessage:
        """The next message; raises EOFError when the server has closed the response."""
        while not self._heard:
            piece = await self.response.content.readany()
            if not piece:
                raise EOFError
            self._hear(piece)
        return self._heard.pop(0)

    def _hear(self, piece: bytes) -> None:
        """Where it begins is told first, and is looked at where a test is about it."""
        found = list(self._parser.feed(piece))
        self.begun += [each for each in found if each.event == "position"]
        self._heard += [each for each in found if each.event != "position"]

    async def take(self, count: int) -> list[SseMessage]:
        return [await self.next() for _ in range(count)]

    async def rest(self) -> list[SseMessage]:
        """All messages until the server closes the response."""
        found = []
        try:
            while True:
                found.append(await self.next())
        except EOFError:
            return found

    async def position(self) -> str | None:
        """The first id that the server tells, which comes before any message: from now on it listens."""
        while self._parser.last_id is None:
            self._hear(await self.response.content.readany())
        return self._parser.last_id


@asynccontextmanager
async def house(
    *,
    buffer: int | None = None,
    limits: EdgeLimits | None = None,
    heartbeat: Callable[[], Heartbeat] = Heartbeat,
    change: Callable[[EdgeParts], EdgeParts] = lambda parts: parts,
    prepare: Callable[[Twin], None] = lambda stores: None,
    segments: SegmentLimits = SEGMENT_LIMITS,
) -> AsyncIterator[House]:
    """An edge that serves. `prepare` fills the stores before it starts, `change` swaps parts for a test's own."""
    with open_twin("memory", segments=segments) as stores:
        prepare(stores)
        outbox = stores.outbox("")
        assert isinstance(outbox, MemoryOutbox)
        commits = GroupCommit(stores.log)
        parts = EdgeParts(
            commits, stores.log, stores.registry, outbox, Echo(), Restless(), Restless(), heartbeat, stores.clock
        )
        parts = parts if limits is None else replace(parts, limits=limits)
        app = application(change(parts if buffer is None else replace(parts, buffer=buffer)))
        runner = make_runner(app, stores.clock)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        try:
            async with aiohttp.ClientSession() as session:
                yield House(url, stores, outbox, app[EDGE], runner, session)
        finally:
            await runner.cleanup()
            commits.close()


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a test on the loop that production uses. Nothing here waits for long unless it hangs."""

    async def bounded() -> T:
        async with asyncio.timeout(30):
            return await work

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(bounded())


def data(message: SseMessage) -> dict[str, Any]:
    found: dict[str, Any] = orjson.loads(message.data)
    return found


def body(*events: Event) -> bytes:
    """The events as N-Quads."""
    lines = (f"{q.subject} {q.predicate} {q.object} {q.graph} .\n" for each in events for q in each.quads)
    return "".join(lines).encode()


__all__ = ["Ear", "House", "Said", "body", "data", "event", "house", "run"]
