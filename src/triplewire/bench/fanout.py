"""`bench fanout`: one stream to many clients, beside a loop that merely writes, and beside nchan."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from triplewire.bench.fanout_figures import Hearing
from triplewire.bench.fanout_links import more_files
from triplewire.bench.fanout_load import SPARE_FILES, Load, Say, clients_each, load
from triplewire.bench.fanout_nchan import available, nchan
from triplewire.bench.fanout_servers import USUAL, Manner, Server, bare, edges, wait_idle
from triplewire.bench.machine import description, own_seconds, own_usage, reference_ms
from triplewire.http.delivery.topics import LISTENERS
from triplewire.model.errors import Unavailable

_EVENLY = 0.97
"""How full edges are when the first of them has no more room: clients are spread by chance."""


@dataclass(frozen=True)
class Plan:
    """Who listens to how much, how, and for how long."""

    clients: int = 1_000
    rate: float = 10.0
    seconds: float = 10.0
    manner: Manner = USUAL
    processes: int = 1
    size: int = 500
    kind: str = "observation"
    against: str = ""
    warm: float = 6.0
    """Seconds of the same load before the measurement: longer than newcomers wait for the context that they share."""
    uneven: bool = False
    """Whether events come as a Poisson process has them, instead of evenly."""

    @property
    def events(self) -> int:
        return max(1, round(self.rate * self.seconds))

    @property
    def publisher(self) -> dict[str, Any]:
        return {"kind": self.kind, "size": self.size}


@dataclass(frozen=True)
class Measured:
    """What clients heard, and what it took: seconds, CPU seconds, and how many bytes the server grew by."""

    hearing: Hearing
    seconds: float
    cpu: float
    generator_cpu: float
    grown: int

    def per_delivery(self, seconds: float) -> float:
        """In microseconds."""
        return round(seconds * 1e6 / max(1, self.hearing.delivered), 3)

    def figures(self) -> dict[str, Any]:
        return {
            **self.hearing.figures(),
            "server_cpu_us_per_delivery": self.per_delivery(self.cpu),
            "deliveries_per_cpu_second": round(self.hearing.delivered / max(0.001, self.cpu)),
            "generator_cpu_us_per_delivery": self.per_delivery(self.generator_cpu),
            "kb_per_client": round(self.grown / 1_000 / max(1, self.hearing.clients), 2),
        }


def run(plan: Plan, say: Say) -> dict[str, Any]:
    """Edges, then bare writing of the same bytes, then the rival if there is one."""
    _check(plan)
    before = reference_ms()
    with tempfile.TemporaryDirectory(prefix="triplewire-trace-") as directory:
        trace = Path(directory) / "trace.json"
        say(f"{plan.processes} edges, {plan.clients:,} clients, {plan.rate:g} events a second")
        with edges(plan.processes, plan.manner) as server:
            ours = measured(plan, server, say, trace)
        say("a loop that writes the same bytes")
        least = _bare(plan, say, trace)
    theirs = {plan.against: _rival(plan, say)} if plan.against else {}
    return {
        "clients": plan.clients,
        "rate": plan.rate,
        "seconds": plan.seconds,
        "processes": plan.processes,
        "buffer": plan.manner.buffer,
        "encoding": plan.manner.encoding,
        "event_bytes": plan.size,
        **ours.figures(),
        "bare_cpu_us_per_delivery": ours.per_delivery(least.cpu),
        "ratio": round(ours.cpu / max(0.001, least.cpu), 2),
        **theirs,
        "machine": {**description(), "reference_ms": [round(before), round(reference_ms())]},
    }


def sweep(plan: Plan, clients: Sequence[int], say: Say) -> dict[str, Any]:
    """One run for each number of clients, and how many times as long a delivery takes with the most as with the
    fewest."""
    runs = [run(replace(plan, clients=count), say) for count in sorted(clients)]
    costs = [each["server_cpu_us_per_delivery"] for each in runs]
    return {"runs": runs, "growth": round(costs[-1] / max(0.001, costs[0]), 2)}


def measured(plan: Plan, server: Server, say: Say, trace: Path | None = None) -> Measured:
    """Connect, warm up, and then the seconds that count."""
    wait_idle(server.pids, 5 * plan.warm)
    empty = own_usage(server.pids).memory
    with load(server.targets, plan.clients, say, plan.publisher, trace) as clients:
        say(f"connected in {clients.connect():.1f} s; warming up")
        warm = clients.publish(max(1, round(plan.rate * plan.warm)), plan.rate)
        clients.drain(warm[-1])
        clients.settle()
        clients.mark()
        say(f"measuring for {plan.seconds:g} s")
        return _measure(plan, server, clients, empty)


def _measure(plan: Plan, server: Server, clients: Load, empty: int) -> Measured:
    clock = _Clock(server, clients)
    expected = clients.publish(plan.events, plan.rate, uneven=plan.uneven)
    clients.drain(expected[-1])
    spent = clock.spent()
    grown = own_usage(server.pids).memory - empty
    clients.settle()
    return Measured(clients.hearing(expected), *spent, grown)


class _Clock:
    """Seconds since it was made, and CPU seconds of a server and of its clients."""

    def __init__(self, server: Server, clients: Load) -> None:
        self._server = server
        self._clients = clients
        self._began = self._read()

    def spent(self) -> tuple[float, float, float]:
        now = self._read()
        return now[0] - self._began[0], now[1] - self._began[1], now[2] - self._began[2]

    def _read(self) -> tuple[float, float, float]:
        return time.monotonic(), own_seconds(self._server.pids), own_seconds(self._clients.pids)


def _bare(plan: Plan, say: Say, trace: Path) -> Measured:
    with (
        bare(plan.processes) as (server, bares),
        load(server.targets, plan.clients, say, {}) as clients,
    ):
        clients.connect(bares.accept)
        clients.settle()
        clients.mark()
        clock = _Clock(server, clients)
        bares.replay(trace, plan.seconds)
        spent = clock.spent()
        clients.settle()
        hearing = clients.hearing(range(0))
        if len({digest for digest, _ in hearing.digests}) != 1:
            raise Unavailable("clients did not get the same bytes from the loop that merely writes")
        return Measured(hearing, *spent, 0)


def _rival(plan: Plan, say: Say) -> dict[str, Any]:
    say(f"nginx with nchan, {plan.processes} workers")
    with nchan(plan.processes) as server:
        return measured(plan, server, say).figures()


def _check(plan: Plan) -> None:
    """What would end badly after minutes ends now."""
    if plan.against:
        available()
    if plan.clients > _EVENLY * plan.processes * LISTENERS:
        raise Unavailable(
            f"{plan.processes} edges have room for {plan.processes * LISTENERS:,} clients, spread by chance; "
            f"give {plan.clients:,} more of them with --processes"
        )
    files, needed = more_files(), max(plan.clients / plan.processes / _EVENLY, clients_each(plan.clients)) + SPARE_FILES
    if needed > files:
        raise Unavailable(f"{needed:,.0f} files would be open in a process, and {files:,} may be; see ulimit -n")
