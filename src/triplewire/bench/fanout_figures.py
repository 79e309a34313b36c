"""From what clients heard to figures: what was lost, and how long it took."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from triplewire.bench.report import percentile

Digest = tuple[int, int]
"""Bytes since the mark, and their checksum."""


@dataclass(frozen=True)
class Sample:
    """A connection that was read in full."""

    digest: Digest
    plain: int
    numbers: Sequence[int]
    delays: Sequence[float]
    ends: Sequence[int]

    @classmethod
    def read(cls, told: dict[str, Any]) -> Sample:
        size, checksum = told["digest"]
        return cls((size, checksum), told["plain"], told["numbers"], told["delays"], told["ends"])

    def lost(self, expected: range) -> int:
        return len(expected) - len(set(self.numbers).intersection(expected))

    @property
    def repeated(self) -> int:
        return len(self.numbers) - len(set(self.numbers))


@dataclass(frozen=True)
class Hearing:
    """What all clients heard of the events that were expected."""

    expected: range
    digests: Sequence[tuple[Digest, int]]
    """With the number of clients that have each."""
    samples: Sequence[Sample]
    gone: int = 0
    """Clients that were cut off, or sent away."""

    @classmethod
    def read(cls, expected: range, reports: Iterable[dict[str, Any]]) -> Hearing:
        reports = list(reports)
        digests = [((size, checksum), count) for each in reports for size, checksum, count in each["digests"]]
        samples = [Sample.read(told) for each in reports for told in each["samples"]]
        return cls(expected, digests, samples, sum(each["gone"] for each in reports))

    @property
    def clients(self) -> int:
        return sum(count for _, count in self.digests)

    @property
    def bytes(self) -> int:
        return sum(size * count for (size, _), count in self.digests)

    @cached_property
    def _known(self) -> dict[Digest, int]:
        """What is lost with bytes that a sampled connection had too."""
        return {sample.digest: sample.lost(self.expected) for sample in self.samples}

    @cached_property
    def lost(self) -> int:
        """Messages, over all clients: exact for those whose bytes are a sampled client's, and for those that got the
        beginning of what a complete one got and no more. Of `unverified` ones nothing else is known."""
        return sum(self._missing(digest) * count for digest, count in self.digests)

    @property
    def unverified(self) -> int:
        """Clients that got as many bytes as a complete one, or more, but not the same ones."""
        return sum(count for digest, count in self.digests if digest not in self._known and not self._missing(digest))

    @property
    def delivered(self) -> int:
        return self.clients * len(self.expected) - self.lost

    @property
    def repeated(self) -> int:
        return sum(sample.repeated for sample in self.samples)

    @property
    def delays(self) -> list[float]:
        return [delay for sample in self.samples for delay in sample.delays]

    @property
    def plain_bytes(self) -> float:
        """Of a sampled client, on average, before compression."""
        return sum(sample.plain for sample in self.samples) / max(1, len(self.samples))

    @cached_property
    def _complete(self) -> Sample | None:
        return next((each for each in self.samples if not each.lost(self.expected)), None)

    def _missing(self, digest: Digest) -> int:
        if digest in self._known:
            return self._known[digest]
        if self._complete is None:
            return len(self.expected)
        return len(self.expected) - min(len(self.expected), bisect_right(self._complete.ends, digest[0]))

    def figures(self) -> dict[str, Any]:
        delays = self.delays
        return {
            "delivered": self.delivered,
            "lost": self.lost,
            "unverified": self.unverified,
            "gone": self.gone,
            "repeated": self.repeated,
            "p50_ms": round(percentile(delays, 0.5), 1),
            "p99_ms": round(percentile(delays, 0.99), 1),
            "most_ms": round(max(delays, default=0.0), 1),
            "sampled": len(self.samples),
            "bytes_per_delivery": round(self.bytes / max(1, self.delivered), 1),
            "traffic_share": round(self.bytes / max(1.0, self.plain_bytes * self.clients), 4),
        }
