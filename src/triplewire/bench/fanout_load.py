"""The load of `bench fanout`: clients and a publisher in processes of their own, led through the phases of a run."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from triplewire.bench.fanout_figures import Hearing
from triplewire.bench.fanout_links import Link
from triplewire.model.errors import Unavailable

Say = Callable[[str], None]

CLIENTS_EACH = 10_000
"""Connections of a process of the load generator: half of the files that it usually may open."""

_SAMPLED_EACH = 100
_CONNECT_SECONDS = 300.0
_DRAIN_SECONDS = 60.0
_QUIET_SECONDS = 0.4
SPARE_FILES = 300
"""What a process has open beside its connections, at most."""


@dataclass(frozen=True)
class Target:
    """A server as its clients and its publisher see it."""

    address: tuple[str, int]
    listen: str
    """The request of a client, in full."""
    publish: str = ""
    """The path to publish at; nothing where the server writes by itself."""


@dataclass
class Load:
    """Clients that are connected, and who publishes to them."""

    clients: int
    links: Sequence[Link]
    say: Say
    publisher: Link | None = None
    _next: int = field(default=0, repr=False)

    def connect(self, between: Callable[[], None] = lambda: None) -> float:
        """Until every client has its first message; the seconds it took. `between` is called again and again."""
        began, told = time.monotonic(), 0.0
        while (opened := self._sum("opened")) < self.clients:
            passed = time.monotonic() - began
            if passed > _CONNECT_SECONDS:
                raise Unavailable(f"{opened:,} of {self.clients:,} clients were answered within {passed:.0f} s")
            if passed - told >= 2:
                told = passed
                self.say(f"{opened:,} of {self.clients:,} clients are connected")
            between()
            time.sleep(0.05)
        return time.monotonic() - began

    def publish(self, count: int, rate: float, *, uneven: bool = False) -> range:
        """Publish so many events, and wait until the sampled clients have the last, or for long in vain."""
        assert self.publisher is not None
        expected = range(self._next, self._next + count)
        self._next += count
        order = {"first": expected.start, "count": count, "rate": rate, "uneven": uneven}
        self.publisher.ask(order, patience=2 * count / rate + 120.0)
        return expected

    def drain(self, upto: int) -> bool:
        """Until every sampled client that is still there has heard that event; whether that came true."""
        end = time.monotonic() + _DRAIN_SECONDS
        while self._sum("behind", upto=upto) > self._sum("gone"):
            if time.monotonic() > end:
                self.say(f"some clients have not heard the last event after {_DRAIN_SECONDS:.0f} s")
                return False
            time.sleep(0.05)
        return True

    def settle(self) -> None:
        """Until nothing comes any more."""
        before = -1
        end = time.monotonic() + _DRAIN_SECONDS
        while (now := self._sum("bytes")) != before and time.monotonic() < end:
            before = now
            time.sleep(_QUIET_SECONDS)

    def mark(self) -> None:
        """From here on counts."""
        for answer in self._all({"do": "mark"}):
            if answer["gone"]:
                self.say(f"{answer['gone']} clients were sent away before the measurement")

    def hearing(self, expected: range) -> Hearing:
        return Hearing.read(expected, self._all({"do": "report"}))

    @property
    def pids(self) -> list[int]:
        return [link.pid for link in self.links]

    def _sum(self, name: str, **order: Any) -> int:  # noqa: ANN401 - JSON
        return sum(answer[name] for answer in self._all({"do": "status", **order}))

    def _all(self, order: dict[str, Any]) -> list[dict[str, Any]]:
        for link in self.links:
            link.tell(order)
        return [link.hear() for link in self.links]


def clients_each(clients: int) -> int:
    """How many a process of clients has at most."""
    return min(clients, CLIENTS_EACH)


@contextmanager
def load(
    targets: Sequence[Target], clients: int, say: Say, told: dict[str, Any], trace: Path | None = None
) -> Iterator[Load]:
    """Processes of clients that have begun to connect, spread evenly over the targets, and a publisher to the first of
    them. `told` is what the publisher is told more."""
    processes = len(targets) * math.ceil(clients / len(targets) / CLIENTS_EACH)
    with ExitStack() as closing:
        links = []
        for number in range(processes):
            count = clients // processes + (number < clients % processes)
            target = targets[number % len(targets)]
            order = {
                "address": target.address,
                "source": f"127.0.0.{2 + number}",
                "count": count,
                "request": target.listen,
                "every": max(1, count // _SAMPLED_EACH),
                "trace": str(trace) if trace and not number else "",
            }
            links.append(Link("triplewire.bench.fanout_clients", order))
            closing.callback(links[-1].close)
        made = Load(clients, links, say)
        if targets[0].publish:
            publisher = {"address": targets[0].address, "path": targets[0].publish, **told}
            made.publisher = Link("triplewire.bench.fanout_publisher", publisher)
            closing.callback(made.publisher.close)
        yield made
