"""The load of `bench fanout`: clients and a publisher in processes of their own, and the figures of the clients."""

from __future__ import annotations

import math
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from bench.harness import Report, Say, summarize
from bench.links import Link, ask_all
from triplewire.model.errors import Unavailable

CLIENTS_EACH = 10_000
"""Connections of a process of the load generator: half of the files that it usually may open."""
SPARE_FILES = 300
"""Files that a process has open beside its connections, at most."""
_SAMPLED_EACH = 100
_CONNECT_SECONDS = 300.0
_DRAIN_SECONDS = 60.0
_QUIET_SECONDS = 0.4

Digest = tuple[int, int]
"""Bytes since the mark, and their checksum."""


@dataclass(frozen=True)
class ClientSample:
    """A connection that was read in full: numbers of events, delays, and the bytes at which each was complete."""

    digest: Digest
    plain: int
    numbers: Sequence[int]
    delays: Sequence[float]
    ends: Sequence[int]

    def count_lost(self, expected: range) -> int:
        return len(expected) - len(set(self.numbers).intersection(expected))


@dataclass(frozen=True)
class Received:
    """The messages that all clients received of the events that were expected."""

    expected: range
    digests: Sequence[tuple[Digest, int]]
    """Digests, and the number of clients that have each."""
    samples: Sequence[ClientSample]
    gone: int = 0
    """Clients that were disconnected."""

    @classmethod
    def read(cls, expected: range, reports: Sequence[dict[str, Any]]) -> Received:
        digests = [((size, checksum), count) for each in reports for size, checksum, count in each["digests"]]
        sampled = [sample for each in reports for sample in each["samples"]]
        samples = [ClientSample(**{**each, "digest": tuple(each["digest"])}) for each in sampled]
        return cls(expected, digests, samples, sum(each["gone"] for each in reports))

    @property
    def clients(self) -> int:
        return sum(count for _, count in self.digests)

    @cached_property
    def lost(self) -> int:
        """Messages, over all clients: exact for clients whose bytes are a sampled client's, and for those that got the
        beginning of a complete client's bytes. Nothing else is known of `unverified` ones."""
        return sum(self._count_missing(digest) * count for digest, count in self.digests)

    @property
    def unverified(self) -> int:
        """Clients that got as many bytes as a complete one, or more, but not the same ones."""
        unknown = [each for each in self.digests if each[0] not in self._known]
        return sum(count for digest, count in unknown if not self._count_missing(digest))

    @property
    def delivered(self) -> int:
        return self.clients * len(self.expected) - self.lost

    @cached_property
    def _known(self) -> dict[Digest, int]:
        """How much is lost with the bytes of each sampled connection."""
        return {sample.digest: sample.count_lost(self.expected) for sample in self.samples}

    @cached_property
    def _complete(self) -> ClientSample | None:
        return next((each for each in self.samples if not each.count_lost(self.expected)), None)

    def _count_missing(self, digest: Digest) -> int:
        if digest in self._known:
            return self._known[digest]
        if self._complete is None:
            return len(self.expected)
        return len(self.expected) - min(len(self.expected), bisect_right(self._complete.ends, digest[0]))

    def figures(self) -> Report:
        delays = [delay for sample in self.samples for delay in sample.delays]
        size = sum(size * count for (size, _), count in self.digests)
        plain = sum(sample.plain for sample in self.samples) / max(1, len(self.samples))
        return {
            "delivered": self.delivered,
            "lost": self.lost,
            "unverified": self.unverified,
            "gone": self.gone,
            "repeated": sum(len(each.numbers) - len(set(each.numbers)) for each in self.samples),
            **summarize(delays, {"p50_ms": 0.5, "p99_ms": 0.99, "most_ms": 1.0}, 1),
            "sampled": len(self.samples),
            "bytes_per_delivery": round(size / max(1, self.delivered), 1),
            "traffic_share": round(size / max(1.0, plain * self.clients), 4),
        }


@dataclass(frozen=True)
class Target:
    """A server for its clients and its publisher: the request of a client in full, and the path to publish at, which is
    empty where the server writes by itself."""

    address: tuple[str, int]
    listen: str
    publish: str = ""


@dataclass
class Load:
    """Clients that are connected, and a publisher to them."""

    clients: int
    links: Sequence[Link]
    say: Say
    publisher: Link | None
    _next: int = field(default=0, repr=False)

    @property
    def pids(self) -> list[int]:
        return [link.pid for link in self.links]

    def connect(self, between: Callable[[], object] = lambda: None) -> float:
        """Wait until every client has its first message, and call `between` again and again; return the seconds."""
        began, said = time.monotonic(), 0.0
        while (opened := self._sum("opened")) < self.clients:
            passed = time.monotonic() - began
            if passed > _CONNECT_SECONDS:
                raise Unavailable(f"{opened:,} of {self.clients:,} clients were answered within {passed:.0f} s")
            if passed - said >= 2:
                said = passed
                self.say(f"{opened:,} of {self.clients:,} clients are connected")
            between()
            time.sleep(0.05)
        return time.monotonic() - began

    def publish(self, count: int, rate: float, *, uneven: bool = False) -> range:
        """Publish so many events, and wait until the sampled clients that are still there have the last, or for long in
        vain. Return their numbers."""
        assert self.publisher is not None
        expected = range(self._next, self._next + count)
        self._next += count
        order = {"first": expected.start, "count": count, "rate": rate, "uneven": uneven}
        self.publisher.ask(order, patience=2 * count / rate + 120.0)
        end = time.monotonic() + _DRAIN_SECONDS
        while self._sum("behind", last=expected[-1]) > self._sum("gone"):
            if time.monotonic() > end:
                self.say(f"some clients have not heard the last event after {_DRAIN_SECONDS:.0f} s")
                break
            time.sleep(0.05)
        return expected

    def settle(self) -> None:
        """Wait until no bytes come any more."""
        before, end = -1, time.monotonic() + _DRAIN_SECONDS
        while (now := self._sum("bytes")) != before and time.monotonic() < end:
            before = now
            time.sleep(_QUIET_SECONDS)

    def mark(self) -> None:
        """Count from here on."""
        for answer in ask_all(self.links, {"do": "mark"}):
            if answer["gone"]:
                self.say(f"{answer['gone']} clients were disconnected before the measurement")

    def read(self, expected: range) -> Received:
        return Received.read(expected, ask_all(self.links, {"do": "report"}))

    def _sum(self, name: str, **order: int) -> int:
        return sum(answer[name] for answer in ask_all(self.links, {"do": "status", **order}))


@contextmanager
def start_load(
    targets: Sequence[Target], clients: int, say: Say, setup: Report, trace: Path | None = None
) -> Iterator[Load]:
    """Start processes of clients that begin to connect, spread evenly over the targets, and a publisher to the first of
    them, which is given `setup`."""
    processes = len(targets) * math.ceil(clients / len(targets) / CLIENTS_EACH)
    with ExitStack() as closing:
        links, publisher = [], None
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
            links.append(Link("bench.fanout_clients", order))
            closing.callback(links[-1].close)
        if targets[0].publish:
            first = {"address": targets[0].address, "path": targets[0].publish}
            publisher = Link("bench.fanout_publisher", {**first, **setup})
            closing.callback(publisher.close)
        yield Load(clients, links, say, publisher)
