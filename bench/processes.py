"""Real processes of a benchmark, publishers to them, and listeners.

A broker or an edge gets a free port and a directory that is thrown away.
"""

from __future__ import annotations

import asyncio
import re
import socket
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Event as Flag
from typing import Any, cast
from urllib.request import urlopen

import psutil
from prometheus_client.parser import text_string_to_metric_families

from bench.harness import Usage, make_directory, measure_java, measure_tree
from triplewire.client import AsyncClient
from triplewire.config import Settings
from triplewire.config.heap import freeze_survivors
from triplewire.model import parse_position
from triplewire.model.clock import SystemClock
from triplewire.model.errors import Unavailable
from triplewire.service.processes import ChildProcess, stop_all
from triplewire.service.supervisor import Supervisor

HOST = "127.0.0.1"

STEADY_CONNECTIONS = 256
"""Connections for events at a rate. Without a bound, a broker that falls behind is sent a flood of new ones."""

_START_SECONDS = 90.0
_IDLE_SECONDS = 20.0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass(frozen=True)
class Broker:
    """The running broker, and how long it took to be ready."""

    up: Supervisor
    ready_seconds: float

    @property
    def settings(self) -> Settings:
        return self.up.settings

    @property
    def address(self) -> tuple[str, int]:
        return self.settings.host, self.settings.port

    def measure_edges(self) -> Usage:
        return measure_tree([child.pid or 0 for child in self.up.edges.children])

    def measure_pipeline(self) -> Usage:
        return measure_tree([self.up.pipeline.pid or 0])

    def measure_java(self) -> float:
        return measure_java([self.up.pipeline.pid or 0])

    def read_edge_seconds(self) -> dict[str, float]:
        """Return the CPU seconds of the edges by part, from their own metrics."""
        with urlopen(f"{self.settings.url}/metrics") as response:
            families = text_string_to_metric_families(response.read().decode())
        found: defaultdict[str, float] = defaultdict(float)
        for family in families:
            for sample in family.samples if family.name == "triplewire_cpu_seconds" else ():
                found[sample.labels["part"]] += sample.value
        return dict(found)


@contextmanager
def start_broker(**given: Any) -> Iterator[Broker]:  # noqa: ANN401
    """Start a broker with these settings and wait until it is ready; stop it afterwards."""
    with make_directory() as directory:
        up = Supervisor(Settings(data=directory, port=free_port(), **given))
        began = time.perf_counter()
        up.start()
        try:
            up.wait_ready(Flag(), attempts=1)
            yield Broker(up, time.perf_counter() - began)
        finally:
            up.stop()


def edge_settings(folder: Path, **given: Any) -> Settings:  # noqa: ANN401
    """Return the settings of an edge that does not run yet, on a free port."""
    return Settings(data=folder, host=HOST, port=free_port(), **given)


@contextmanager
def start_edges(settings: Sequence[Settings], idle: float = _IDLE_SECONDS) -> Iterator[list[ChildProcess]]:
    """Start an edge for each of the settings, without a pipeline, and wait until all are ready and idle; `idle` limits
    how long. Stop them afterwards."""
    children = [ChildProcess("edge", each, SystemClock()) for each in settings]
    try:
        for child in children:
            child.settings.data.mkdir(exist_ok=True)
            child.start()
        for child in children:
            wait_listening(child)
        wait_idle([child.pid or 0 for child in children], idle)
        yield children
    finally:
        stop_all(children)


def wait_listening(child: ChildProcess) -> None:
    """Wait until an edge takes requests. Raises Unavailable, with the last lines of its log."""
    end = time.monotonic() + _START_SECONDS
    while child.pid is None or not is_listening(child.pid, child.settings.port):
        if child.pid is None or time.monotonic() > end:
            raise Unavailable(f"an edge does not start; see {child.output}:\n{child.read_tail()}")
        time.sleep(0.05)


def is_listening(pid: int, port: int) -> bool:
    found = psutil.Process(pid).net_connections("tcp4")
    return any(each.status == psutil.CONN_LISTEN and each.laddr.port == port for each in found)


def wait_idle(pids: Sequence[int], seconds: float) -> None:
    """Wait until processes that servers start beside themselves have started; for at most so long."""
    end, before = time.monotonic() + seconds, 0.0
    while (now := measure_tree(pids).cpu) - before > 0.1 and time.monotonic() < end:
        before = now
        time.sleep(min(0.5, seconds))


async def publish_bodies(
    client: AsyncClient, stream: str, bodies: Iterable[bytes], connections: int
) -> list[Mapping[str, Any]]:
    """Publish bodies over some connections, as fast as they are taken; return the receipts in the order of bodies."""
    waiting, receipts = iter(enumerate(bodies)), dict[int, Mapping[str, Any]]()

    async def publish() -> None:
        for number, body in waiting:
            receipts[number] = await client.publish(stream, body)

    await asyncio.gather(*(publish() for _ in range(connections)))
    return [receipts[number] for number in sorted(receipts)]


async def publish_steadily(
    client: AsyncClient, stream: str, bodies: Iterable[tuple[int, bytes]], rate: float
) -> tuple[dict[int, float], int]:
    """Publish numbered events one by one at a rate, without waiting for receipts; return when each was due, in seconds
    of `perf_counter`, and the last position. Waiting for a free connection counts as delay."""
    sent, tasks, began = dict[int, float](), [], time.perf_counter()
    connections = asyncio.Semaphore(STEADY_CONNECTIONS)

    async def publish(body: bytes) -> Mapping[str, Any]:
        async with connections:
            return await client.publish(stream, body)

    for index, (number, body) in enumerate(bodies):
        await asyncio.sleep(max(0.0, began + index / rate - time.perf_counter()))
        sent[number] = time.perf_counter()
        tasks.append(asyncio.create_task(publish(body)))
    return sent, last_position(await asyncio.gather(*tasks))


def last_position(receipts: Iterable[Mapping[str, Any]]) -> int:
    return max((parse_position(each["last"]) for each in receipts), default=0)


@dataclass
class Arrivals:
    """Notifications: how often each (question, event) arrived, and when last, in seconds of `perf_counter`."""

    counts: dict[tuple[int, int], int] = field(default_factory=dict)
    times: dict[tuple[int, int], float] = field(default_factory=dict)
    total: int = 0

    def add(self, question: int, event: int, at: float) -> None:
        key = (question, event)
        self.counts[key] = self.counts.get(key, 0) + 1
        self.times[key] = at
        self.total += 1

    def delays(self, sent: Mapping[int, float]) -> list[float]:
        """Return the milliseconds from when an event was sent to each of its arrivals."""
        return [(at - sent[event]) * 1_000 for (_, event), at in self.times.items() if event in sent]


class SseConnection(asyncio.Protocol):
    """A connection for one question. It reads as little of each message as the count needs."""

    def __init__(self, arrivals: Arrivals, event: re.Pattern[bytes], question: int, request: bytes) -> None:
        self._arrivals = arrivals
        self._event = event
        self._question = question
        self._request = request
        self._rest = b""
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast(asyncio.Transport, transport).write(self._request)

    def data_received(self, data: bytes) -> None:
        if not self.opened.done():
            self.opened.set_result(None)
        whole, end, self._rest = (self._rest + data).rpartition(b"\n\n")
        if end:
            at = time.perf_counter()
            for number in self._event.findall(whole):
                self._arrivals.add(self._question, int(number), at)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.opened.done():
            self.opened.set_exception(exc or ConnectionError("closed before the first byte"))


@asynccontextmanager
async def listen(
    address: tuple[str, int], paths: Sequence[str], base: str, source: str = HOST
) -> AsyncIterator[Arrivals]:
    """Open a connection for each path, from a source address, and wait until all were answered; close them afterwards.
    Ids of events are their numbers after `base` and `e/`."""
    # Else a collection of this process would count as a delay of the broker.
    freeze_survivors()
    loop, arrivals, (host, port) = asyncio.get_running_loop(), Arrivals(), address
    event = re.compile(rb'"event":"' + re.escape(base.encode()) + rb'e/(\d+)"')
    opened = []
    for question, path in enumerate(paths):
        request = f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nAccept: text/event-stream\r\n\r\n".encode()
        made = partial(SseConnection, arrivals, event, question, request)
        opened.append(await loop.create_connection(made, host, port, local_addr=(source, 0)))
    await asyncio.gather(*(connection.opened for _, connection in opened))
    yield arrivals
    for transport, _ in opened:
        transport.close()
