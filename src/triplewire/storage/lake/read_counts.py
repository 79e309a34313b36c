"""Read counters: how often files of each zone were scanned of late, by all processes that answer queries.

Each process has a small file beside the table and replaces it every few seconds. Counts have a half-life of an hour.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from contextlib import suppress
from heapq import nlargest
from operator import itemgetter
from pathlib import Path
from typing import Final
from uuid import uuid4

import orjson

from triplewire.config.files import replace_file
from triplewire.model.clock import Clock

READ_COUNT_SECONDS: Final = 5.0
"""How often a process of queries writes down which zones it has read, if it has read any: a small file each time."""

READ_COUNT_ZONES: Final = 4_096
"""Zones of which it is remembered how often they were read, those that are read most: at worst 200 kB in each process
and in its file."""


_MINUTE = 60_000_000
_HOUR = 60 * _MINUTE
_FORGOTTEN = 24 * _HOUR
"""After so long next to nothing is left of a count."""


class ReadCounter:
    """Reads of one process by zone. Counts are worth no failing query: if they cannot be written, they are dropped."""

    def __init__(
        self,
        directory: Path,
        clock: Clock,
        *,
        name: str | None = None,
        zones: int = READ_COUNT_ZONES,
        seconds: float = READ_COUNT_SECONDS,
    ) -> None:
        """Counts of at most `zones` are kept, those that are read most, and written every `seconds` to a file that by
        default has a name of its own."""
        self._zones = zones
        self._seconds = seconds
        self._path = directory / f"{name or uuid4().hex}.json"
        self._clock = clock
        self._counts: dict[str, float] = {}
        self._counted = clock.now()
        self._saved = clock.ticks()
        self._changed = False

    def add(self, zones: Iterable[str | None]) -> None:
        """A scan of files in these zones; None is what lies in no zone yet."""
        if self._clock.now() - self._counted > _MINUTE:
            self._fade()
        for zone in zones:
            if zone is not None:
                self._counts[zone] = self._counts.get(zone, 0.0) + 1.0
                self._changed = True

    def save(self) -> None:
        """Write down what was counted, unless that was done just now or there is nothing new."""
        if not self._changed or self._clock.ticks() - self._saved < self._seconds:
            return
        self._saved, self._changed = self._clock.ticks(), False
        self._fade()
        with suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            _sweep(self._path.parent, self._clock.now())
            replace_file(self._path, orjson.dumps({"at": self._counted, "zones": self._counts}), durable=False)

    def _fade(self) -> None:
        now = self._clock.now()
        left = _decay(self._counted, now)
        most = nlargest(self._zones, self._counts.items(), key=itemgetter(1))
        self._counts, self._counted = {zone: count * left for zone, count in most}, now


def load_read_counts(directory: Path, now: int) -> Mapping[str, float]:
    """By zone, of all processes together. A file that is torn or gone is as if nothing had been read."""
    total: dict[str, float] = {}
    for path in sorted(directory.glob("*.json")):
        with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
            found = orjson.loads(path.read_bytes())
            left = _decay(found["at"], now)
            for zone, count in found["zones"].items():
                total[zone] = total.get(zone, 0.0) + count * left
    return total


def _decay(since: int, now: int) -> float:
    return math.exp2(-max(0, now - since) / _HOUR)


def _sweep(directory: Path, now: int) -> None:
    """Away with what processes left behind that are long gone."""
    for path in directory.iterdir():
        if path.stat().st_mtime_ns // 1_000 < now - _FORGOTTEN:
            path.unlink(missing_ok=True)
