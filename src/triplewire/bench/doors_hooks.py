"""Webhooks of `bench doors`: how many a second one edge delivers to many targets, and whether those who answer wait
for
those who do not.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

import pyarrow as pa

from triplewire.bench.broker import free_port
from triplewire.bench.doors_targets import Call
from triplewire.bench.fanout_links import Link, more_files
from triplewire.bench.fanout_servers import HOST, wait_idle, wait_listening
from triplewire.bench.report import percentile
from triplewire.client import Client
from triplewire.config import Settings
from triplewire.model import MATCHES, parse_position
from triplewire.model.clock import SystemClock
from triplewire.service.processes import ChildProcess, stop_all
from triplewire.storage.outbox import SqliteOutbox

_LOAD = 0.4
"""Of what it can deliver, how much is asked of it while delays are measured."""
_PATIENCE = 120.0


def webhooks(targets: int = 100, hanging: int = 10, events: int = 50, beats: int = 60) -> dict[str, Any]:
    """Deliveries a second of some events at once, and the delays of events that come one after the other, to targets
    that all answer, and to the same of which some hang; told of those that always answer. A subscription leads to each
    target, and every event matches all; matches are written as the pipeline writes them."""
    more_files()
    link = Link("triplewire.bench.doors_targets", {"targets": targets})
    try:
        ports = link.hear()["ports"]
        well = _measured(link, ports, hanging, events, beats, hang=False)
        ill = _measured(link, ports, hanging, events, beats, hang=True, interval=well["interval"])
    finally:
        link.close()
    ratios = {name: round(ill[name] / well[name], 3) for name in ("delay_mean", "delay_p95", "rate")}
    return {"targets": targets, "hanging": hanging, "events": events, "well": well, "some_hang": ill, "ratio": ratios}


def _measured(
    link: Link, ports: Sequence[int], hanging: int, events: int, beats: int, *, hang: bool, interval: float = 0.0
) -> dict[str, float]:
    numbers = list(range(hanging)) if hang else []
    link.ask({"hang": numbers})
    with _publisher(ports) as publisher:
        answering = len(ports) - len(numbers)
        _warm(link, publisher, answering)
        began = publisher.publish(events)
        calls = link.ask({"calls": answering * events}, _PATIENCE)["calls"]
        rate = len(calls) / (max(each[2] for each in calls) - began[0])
        interval = interval or len(ports) / (_LOAD * rate)
        delays = _delays(link, publisher, beats, interval, answering, hanging)
    told = {"rate": rate, "interval": interval, "delay_mean": fmean(delays), "delay_p50": percentile(delays, 0.5)}
    return {name: round(each, 5) for name, each in {**told, "delay_p95": percentile(delays, 0.95)}.items()}


def _warm(link: Link, publisher: _Publisher, answering: int) -> None:
    """Connections are made, and who hangs is known to hang or is being waited for."""
    publisher.publish(1)
    link.ask({"calls": answering}, _PATIENCE)


def _delays(
    link: Link, publisher: _Publisher, beats: int, interval: float, answering: int, hanging: int
) -> list[float]:
    """From when a match is written to when a target has it, of those targets that always answer."""
    written: dict[str, float] = {}
    began = time.monotonic()
    for beat in range(beats):
        time.sleep(max(0.0, began + beat * interval - time.monotonic()))
        at, positions = publisher.publish(1)
        written |= dict.fromkeys(positions, at)
    calls: list[Call] = link.ask({"calls": answering * beats}, _PATIENCE)["calls"]
    return [at - written[position] for target, position, at in calls if target >= hanging]


@dataclass
class _Publisher:
    """Publishes to an edge, and writes what matches, as the pipeline would."""

    client: Client
    outbox: SqliteOutbox
    since: Sequence[int]
    _batch: int = 0
    _number: int = field(default=0)

    def publish(self, count: int) -> tuple[float, list[str]]:
        """Some events that match all; when the matches were written, and their positions."""
        first, self._number = self._number, self._number + count
        lines = (f'<urn:s> <urn:p> "{each}" <urn:bench:{each}> .' for each in range(first, self._number))
        told = self.client.publish("bench", "\n".join(lines), "application/n-quads")
        begin, end = parse_position(told["first"]), parse_position(told["last"])
        rows = [(position, each) for position in range(begin, end + 1) for each in self.since]
        table = pa.Table.from_pylist([{"position": at, "subscription": each} for at, each in rows], schema=MATCHES)
        self.outbox.write(self._batch, end, table)
        self._batch += 1
        return time.monotonic(), [f"{position:016x}" for position in range(begin, end + 1)]


@contextmanager
def _publisher(ports: Sequence[int]) -> Iterator[_Publisher]:
    """Over an edge that is started for it, with a subscription for each target."""
    with tempfile.TemporaryDirectory(prefix="triplewire-bench-") as directory:
        settings = Settings(data=Path(directory), host=HOST, port=free_port(), webhook_networks=("127.0.0.0/8",))
        child = ChildProcess("edge", settings, SystemClock())
        try:
            child.start()
            wait_listening(child)
            wait_idle([child.pid or 0], 5.0)
            with Client(settings.url) as client:
                wishes = [_wish(port) for port in ports]
                since = [parse_position(each["since"]) for each in client.subscribe_all(wishes)]
                yield _Publisher(client, SqliteOutbox(settings.outbox), since)
        finally:
            stop_all([child])


def _wish(port: int) -> dict[str, Any]:
    return {"sparql": "ASK { ?s <urn:p> ?o }", "kind": "event", "webhook": {"url": f"http://{HOST}:{port}/hook"}}
