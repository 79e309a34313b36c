"""`bench ztreamy`: the experiments of figures 3 to 6 of the paper on Ztreamy, on this machine, beside what it says."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from typing import Any

from triplewire.bench.fanout import Plan as Fanout
from triplewire.bench.fanout import measured
from triplewire.bench.fanout_load import Say
from triplewire.bench.fanout_servers import Manner, Server, edges
from triplewire.bench.machine import description, reference_ms
from triplewire.bench.ztreamy_paper import BUFFER, ITEM_BYTES, SAID, TRAFFIC_SHARE
from triplewire.bench.ztreamy_repeaters import repeated

PACKED = Manner(BUFFER, "gzip")
"""The paper's best: half a second of buffer, and compression."""
BARE = Manner(0.0)

_ROOM = 13_000
"""Clients of one process, with a little space left."""


@dataclass(frozen=True)
class Plan:
    """How far to go: at most so many clients, and so many seconds for each point."""

    clients: int = 40_000
    seconds: float = 20.0
    rates: tuple[float, ...] = (4, 10, 20, 40, 80, 160, 250)
    buffers: tuple[float, ...] = (0.0, 0.1, 0.25, 0.5, 1.0, 2.0)

    def upto(self, *counts: int) -> list[int]:
        """Those counts of clients that are within the plan, or else the plan's own."""
        return [count for count in counts if count <= self.clients] or [self.clients]


QUICK = Plan(2_000, 3.0, (4, 20, 80), (0.0, 0.5))


@dataclass(frozen=True)
class Point:
    """One measurement of a series of a figure."""

    figure: str
    series: str
    clients: int
    rate: float
    manner: Manner
    servers: int = 1
    processes: int = 1

    def fanout(self, seconds: float) -> Fanout:
        """As in the paper: posts of 881 bytes, which come as a Poisson process has them."""
        return Fanout(
            self.clients, self.rate, seconds, self.manner, self.processes, ITEM_BYTES, "post", uneven=True, warm=6.0
        )

    def server(self) -> AbstractContextManager[Server]:
        return edges(self.processes, self.manner) if self.servers == 1 else repeated(self.servers - 1, self.manner)


def points(plan: Plan) -> Iterator[Point]:
    """Everything that is measured, in the order of the figures."""
    for clients in plan.upto(500, 1_000, 2_000, 5_000, 8_000, 12_000, 40_000):
        processes = math.ceil(clients / _ROOM)
        yield Point("3a 3c 4a", "0.5 s, gzip", clients, 4, PACKED, processes=processes)
        if processes == 1:
            yield Point("3a 3c 4a", "plain", clients, 4, BARE)
    for rate in plan.rates:
        yield Point("3b 3d 4b", "0.5 s, gzip", min(500, plan.clients), rate, PACKED)
        yield Point("3b 3d 4b", "plain", min(500, plan.clients), rate, BARE)
    for clients in plan.upto(3_000, 6_000, 12_000):
        yield Point("5", "1 server", clients, 4, PACKED)
        yield Point("5", "3 servers", clients, 4, PACKED, servers=3)
    for buffer in plan.buffers:
        yield Point("6", f"{buffer:g} s, gzip", min(8_000, plan.clients), 20, Manner(buffer, "gzip"))


def run(plan: Plan, say: Say) -> dict[str, Any]:
    """Each point with servers of its own, one after the other."""
    before = reference_ms()
    todo = list(points(plan))
    found = []
    for number, point in enumerate(todo, 1):
        what = f"figure {point.figure}, {point.series}, {point.clients:,} clients, {point.rate:g}/s"
        say(f"{number} of {len(todo)}: {what}")
        found.append(_measured(point, plan.seconds, say))
    return {
        "seconds": plan.seconds,
        "points": found,
        "paper": {"traffic_share": TRAFFIC_SHARE, "said": [asdict(each) for each in SAID]},
        "machine": {**description(), "reference_ms": [round(before), round(reference_ms())]},
    }


def _measured(point: Point, seconds: float, say: Say) -> dict[str, Any]:
    with point.server() as server:
        found = measured(point.fanout(seconds), server, say)
    figures = found.figures()
    return {
        "figure": point.figure,
        "series": point.series,
        "clients": point.clients,
        "rate": point.rate,
        "buffer": point.manner.buffer,
        "servers": point.servers,
        "processes": point.processes,
        "cpu_percent": round(100 * found.cpu / found.seconds, 1),
        "lost_percent": round(100 * figures["lost"] / max(1, figures["lost"] + figures["delivered"]), 2),
        **{
            name: figures[name]
            for name in (
                "p50_ms",
                "p99_ms",
                "lost",
                "unverified",
                "server_cpu_us_per_delivery",
                "generator_cpu_us_per_delivery",
                "traffic_share",
                "kb_per_client",
            )
        },
    }


def beside(report: dict[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, Any] | None]]:
    """What the paper says, each with the point of ours that is nearest to it in clients and rate: at least as many of
    both, if there is one."""
    for said in report["paper"]["said"]:
        servers = 3 if "3 servers" in said["system"] else 1
        able = [
            each
            for each in report["points"]
            if each["servers"] == servers and each["clients"] >= said["clients"] and each["rate"] >= said["rate"]
        ]
        packed = [each for each in able if each["buffer"]] or able
        yield (
            said,
            min(packed, key=lambda each: (each["clients"], each["rate"], abs(each["buffer"] - BUFFER)), default=None),
        )
