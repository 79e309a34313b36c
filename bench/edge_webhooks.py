"""Webhooks of `bench edge`: how many a second one edge delivers to many targets, and whether targets that answer
wait for those that do not.

Run as a program, this module is the targets: ports that take each POST and answer, or do not answer at all.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from statistics import fmean
from typing import cast

import pyarrow as pa
import uvloop

from bench.harness import Report, make_directory, summarize
from bench.links import Link, allow_files, answer
from bench.processes import HOST, edge_settings, start_edges
from triplewire.client import Client
from triplewire.model import MATCHES, parse_position
from triplewire.storage.outbox import SqliteOutbox

_LOAD = 0.4
"""The share of the top rate that is asked of the edge while delays are measured."""
_PATIENCE = 120.0
_LENGTH = re.compile(rb"\r\ncontent-length: (\d+)", re.IGNORECASE)
_ID = re.compile(rb"\r\nwebhook-id: \w+_(\w{16})\r\n", re.IGNORECASE)


def measure_webhooks(targets: int = 100, hanging: int = 10, events: int = 50, beats: int = 60) -> Report:
    """Measure deliveries a second of some events at once, and the delays of events one after the other, to targets that
    all answer, and to the same of which some hang; figures are of those that always answer. A subscription leads to
    each target, and every event matches all; matches are written as the pipeline writes them."""
    allow_files()
    with closing(Link("bench.edge_webhooks", {"targets": targets})) as link:
        ports = link.hear()["ports"]

        def measure(numbers: Sequence[int], interval: float = 0.0) -> dict[str, float]:
            link.ask({"hang": list(numbers)})
            with _start_publisher(ports) as publisher:
                answering = targets - len(numbers)
                # Connections are made, and the edge waits for the targets that hang.
                publisher.publish(1)
                link.ask({"calls": answering}, _PATIENCE)
                began, _ = publisher.publish(events)
                calls = link.ask({"calls": answering * events}, _PATIENCE)["calls"]
                rate = len(calls) / (max(each[2] for each in calls) - began)
                interval = interval or targets / (_LOAD * rate)
                written = publisher.publish_steadily(beats, interval)
                calls = link.ask({"calls": answering * beats}, _PATIENCE)["calls"]
            delays = [at - written[position] for target, position, at in calls if target >= hanging]
            found = {"rate": rate, "interval": interval, "delay_mean": fmean(delays)}
            found |= summarize(delays, {"delay_p50": 0.5, "delay_p95": 0.95}, 5)
            return {name: round(each, 5) for name, each in found.items()}

        well = measure(())
        ill = measure(range(hanging), well["interval"])
    ratios = {name: round(ill[name] / well[name], 3) for name in ("delay_mean", "delay_p95", "rate")}
    return {"targets": targets, "hanging": hanging, "events": events, "well": well, "some_hang": ill, "ratio": ratios}


class MatchPublisher:
    """Publishes to an edge, and writes the matches into its outbox, as the pipeline would."""

    def __init__(self, client: Client, outbox: SqliteOutbox, since: Sequence[int]) -> None:
        self._client, self._outbox, self._since = client, outbox, since
        self._batch = self._number = 0

    def publish(self, count: int) -> tuple[float, list[str]]:
        """Publish events that match all; return when their matches began to be written, and their positions."""
        first, self._number = self._number, self._number + count
        lines = (f'<urn:s> <urn:p> "{each}" <urn:bench:{each}> .' for each in range(first, self._number))
        receipt = self._client.publish("bench", "\n".join(lines), "application/n-quads")
        positions = range(parse_position(receipt["first"]), parse_position(receipt["last"]) + 1)
        rows = [{"position": position, "subscription": each} for position in positions for each in self._since]
        matches, began = pa.Table.from_pylist(rows, schema=MATCHES), time.monotonic()
        self._outbox.write(self._batch, positions[-1], matches)
        self._batch += 1
        return began, [f"{position:016x}" for position in positions]

    def publish_steadily(self, beats: int, interval: float) -> dict[str, float]:
        """Publish one event after the other; return when the match of each was written, by its position."""
        written, began = dict[str, float](), time.monotonic()
        for beat in range(beats):
            time.sleep(max(0.0, began + beat * interval - time.monotonic()))
            at, positions = self.publish(1)
            written |= dict.fromkeys(positions, at)
        return written


@contextmanager
def _start_publisher(ports: Sequence[int]) -> Iterator[MatchPublisher]:
    """Start an edge with a subscription for each target."""
    with make_directory() as directory:
        settings = edge_settings(directory, webhook_networks=("127.0.0.0/8",))
        with start_edges([settings], idle=5.0), Client(settings.url) as client:
            urls = [f"http://{HOST}:{port}/hook" for port in ports]
            wanted = {"sparql": "ASK { ?s <urn:p> ?o }", "kind": "event"}
            made = client.subscribe_all([{**wanted, "webhook": {"url": url}} for url in urls])
            yield MatchPublisher(
                client, SqliteOutbox(settings.outbox), [parse_position(each["since"]) for each in made]
            )


class WebhookTargets:
    """All targets, and the calls since the last order: number of the target, position, and time."""

    def __init__(self) -> None:
        self.hanging: set[int] = set()
        self.calls: list[tuple[int, str, float]] = []
        self._wanted = 0
        self._enough = asyncio.Event()

    async def open(self, count: int) -> list[int]:
        """Return their ports."""
        loop = asyncio.get_running_loop()
        self._servers = [await loop.create_server(partial(TargetConnection, self, n), HOST, 0) for n in range(count)]
        return [server.sockets[0].getsockname()[1] for server in self._servers]

    def hang(self, numbers: Sequence[int]) -> None:
        self.hanging = set(numbers)
        self.calls.clear()

    def add(self, number: int, position: str) -> None:
        self.calls.append((number, position, time.monotonic()))
        if len(self.calls) == self._wanted:
            self._enough.set()

    async def wait_for(self, count: int) -> list[tuple[int, str, float]]:
        """Return the calls when there are so many."""
        self._wanted = count
        if len(self.calls) < count:
            self._enough.clear()
            await self._enough.wait()
        found, self.calls, self._wanted = self.calls, [], 0
        return found


class TargetConnection(asyncio.Protocol):
    """A connection to one target."""

    def __init__(self, targets: WebhookTargets, number: int) -> None:
        self._targets, self._number, self._rest = targets, number, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.WriteTransport, transport)

    def data_received(self, data: bytes) -> None:
        self._rest += data
        while b"\r\n\r\n" in self._rest and self._number not in self._targets.hanging:
            head, _, body = self._rest.partition(b"\r\n\r\n")
            length, id = _LENGTH.search(head), _ID.search(head + b"\r\n")
            if length is None or id is None or len(body) < int(length[1]):
                return
            self._rest = body[int(length[1]) :]
            self._targets.add(self._number, id[1].decode())
            self._transport.write(b"HTTP/1.1 204 No Content\r\n\r\n")


async def _serve() -> None:
    loop, targets = asyncio.get_running_loop(), WebhookTargets()
    answer(ports=await targets.open(json.loads(sys.stdin.readline())["targets"]))
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        order = json.loads(line)
        if "hang" in order:
            targets.hang(order["hang"])
            answer(hanging=len(order["hang"]))
        else:
            answer(calls=await targets.wait_for(order["calls"]))


if __name__ == "__main__":
    allow_files()
    uvloop.run(_serve())
