"""`bench notifications`: many clients, each with a subscription of its own and a connection; every event concerns one.

The cost of a notification must not depend on how many clients listen. Clients are in processes of their own, and times
are those of the machine's monotonic clock, which all processes share.
"""

from __future__ import annotations

import asyncio
import json
import math
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any

import uvloop
from rich.console import RenderableType

from bench.harness import BASE, SOSA, Machine, Report, Say, make_directory, summarize
from bench.links import Link, allow_files, answer, ask_all
from bench.processes import Arrivals, Broker, listen, publish_steadily, start_broker
from bench.tables import list_rows
from triplewire.client import AsyncClient
from triplewire.model import Kind
from triplewire.model.errors import Unavailable

STREAM = "bench"
BULK = 1_000
"""Subscriptions of one request."""
CLIENTS_EACH = 5_000
"""Connections of a process of clients."""
EDGE_CLIENTS = 12_000
"""Clients for which an edge more is started, below the limit of listeners: the kernel spreads them by chance."""
CONNECT_SECONDS = 300.0
DRAIN_SECONDS = 30.0


@dataclass(frozen=True)
class NotificationOptions:
    """How many clients there are, and how many events a second, for how long."""

    clients: int = 1_000
    rate: float = 500.0
    seconds: float = 20.0
    warm: float = 4.0
    """Seconds of the same load before the measurement."""

    @property
    def edges(self) -> int:
        return math.ceil(self.clients / EDGE_CLIENTS)


def run(options: NotificationOptions, say: Say) -> Report:
    """Raises Unavailable when not all clients are answered."""
    machine = Machine()
    allow_files()
    say(f"starting the broker, {options.edges} edges")
    with start_broker(edges=str(options.edges)) as broker, make_directory() as directory:
        say(f"making {options.clients:,} subscriptions")
        paths = uvloop.run(_subscribe(broker, options.clients))
        with _start_clients(broker, paths, directory, say) as links:
            report = uvloop.run(_measure(broker, options, links, say))
    return {"clients": options.clients, "edges": options.edges, "rate": options.rate, **report, **machine.describe()}


def sweep(options: Sequence[NotificationOptions], say: Say) -> Report:
    """Run once for each; `growth` is how many times as much CPU a notification takes with the most clients."""
    runs = [run(each, say) for each in options]
    costs = [each["cpu_us"] for each in runs]
    return {"runs": runs, "growth": round(costs[-1] / max(0.001, costs[0]), 2)}


async def _subscribe(broker: Broker, count: int) -> list[str]:
    """Return the path of the notifications of each client."""
    async with AsyncClient(broker.settings.url) as client:
        made = []
        for first in range(0, count, BULK):
            wanted = [_subscription(number) for number in range(first, min(count, first + BULK))]
            made += await client.subscribe_all(wanted)
    return [f"/subscriptions/{each['id']}/notifications" for each in made]


def _subscription(client: int) -> dict[str, str]:
    where = f"?o <{SOSA}madeBySensor> <{BASE}sensor/{client}> ; <{SOSA}hasSimpleResult> ?v"
    return {"sparql": f"SELECT * {{ {where} }}", "kind": Kind.BINDINGS.value, "stream": STREAM}


def client_of(event: int, clients: int) -> int:
    """Return the one client that an event concerns."""
    return event * 7_919 % clients


def _write_event(event: int, clients: int) -> bytes:
    subject, graph = f"<{BASE}o/{event}>", f"<{BASE}e/{event}>"
    sensor = f"{subject} <{SOSA}madeBySensor> <{BASE}sensor/{client_of(event, clients)}> {graph} .\n"
    return f'{sensor}{subject} <{SOSA}hasSimpleResult> "{event}" {graph} .\n'.encode()


@contextmanager
def _start_clients(broker: Broker, paths: Sequence[str], directory: Path, say: Say) -> Iterator[list[Link]]:
    """Start processes of clients, and wait until all of them listen."""
    with ExitStack() as closing:
        links = []
        for number, first in enumerate(range(0, len(paths), CLIENTS_EACH)):
            file = directory / f"paths-{number}.json"
            file.write_text(json.dumps(paths[first : first + CLIENTS_EACH]))
            setup = {"address": broker.address, "source": f"127.0.0.{2 + number}"}
            links.append(Link("bench.notifications", {**setup, "paths": str(file), "first": first}))
            closing.callback(links[-1].close)
        opened = sum(link.hear(CONNECT_SECONDS)["opened"] for link in links)
        if opened < len(paths):
            raise Unavailable(f"{opened:,} of {len(paths):,} clients were answered")
        say(f"{opened:,} clients listen")
        yield links


async def _measure(broker: Broker, options: NotificationOptions, links: Sequence[Link], say: Say) -> Report:
    warm, count = round(options.rate * options.warm), round(options.rate * options.seconds)
    async with AsyncClient(broker.settings.url) as client:
        say(f"{options.rate:g} events a second for {options.warm + options.seconds:g} s")
        await _publish(client, options, range(warm))
        before = broker.measure_edges().cpu + broker.measure_pipeline().cpu
        sent = await _publish(client, options, range(warm, warm + count))
        arrivals = await _drain(links, warm + count)
        cpu = broker.measure_edges().cpu + broker.measure_pipeline().cpu - before
    due = {(client_of(event, options.clients), event) for event in range(warm + count)}
    delays = arrivals.delays(sent)
    return {
        **summarize(delays, {"p50_ms": 0.5, "p90_ms": 0.9, "p99_ms": 0.99, "most_ms": 1.0}, 1),
        "notifications": len(delays),
        "lost": len(due - arrivals.counts.keys()),
        "unexpected": len(arrivals.counts.keys() - due),
        "duplicated": arrivals.total - len(arrivals.counts),
        "cpu_us": round(cpu / max(1, count) * 1e6, 1),
    }


async def _publish(client: AsyncClient, options: NotificationOptions, events: range) -> dict[int, float]:
    """Return when each event was sent."""
    bodies = ((event, _write_event(event, options.clients)) for event in events)
    sent, _ = await publish_steadily(client, STREAM, bodies, options.rate)
    return sent


async def _drain(links: Sequence[Link], expected: int) -> Arrivals:
    """Wait until all notifications arrived, or no more come."""
    end = time.monotonic() + DRAIN_SECONDS
    while sum(each["total"] for each in ask_all(links, {"do": "count"})) < expected and time.monotonic() < end:
        await asyncio.sleep(0.2)
    arrivals = Arrivals()
    for each in ask_all(links, {"do": "report"}):
        for client, event, at in each["arrivals"]:
            arrivals.add(client, event, at)
    return arrivals


def make_tables(report: Report) -> list[RenderableType]:
    runs = report.get("runs", [report])
    names = ("clients", "edges", "p50_ms", "p90_ms", "p99_ms", "most_ms", "lost", "duplicated", "cpu_us")
    return [list_rows("notifications", {name: name for name in names}, runs)]


async def _run_clients(setup: dict[str, Any]) -> None:
    """Hold the connections of this process, and obey orders until there are no more."""
    loop, orders = asyncio.get_running_loop(), asyncio.Queue[bytes]()
    Thread(target=_read_orders, args=(loop, orders), daemon=True).start()
    paths, first = json.loads(Path(setup["paths"]).read_text()), setup["first"]
    async with listen(tuple(setup["address"]), paths, BASE, setup["source"]) as arrivals:
        answer(opened=len(paths))
        while line := await orders.get():
            if json.loads(line)["do"] == "count":
                answer(total=arrivals.total)
            else:
                answer(arrivals=[(first + client, event, at) for (client, event), at in arrivals.times.items()])


def _read_orders(loop: asyncio.AbstractEventLoop, orders: asyncio.Queue[bytes]) -> None:
    for line in sys.stdin.buffer:
        loop.call_soon_threadsafe(orders.put_nowait, line)
    loop.call_soon_threadsafe(orders.put_nowait, b"")


def main() -> None:
    allow_files()
    uvloop.run(_run_clients(json.loads(sys.stdin.buffer.readline())))


if __name__ == "__main__":
    main()
