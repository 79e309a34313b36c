"""The replay cache: a ring buffer with the newest entries of each stream that has listeners, for clients that
reconnect after a short while.

Entries that the live source has read are kept as they came, so that a reconnecting client costs the log nothing.
Streams share one bound in bytes; the least recently used gives way. An erasure empties the cache.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from math import inf
from threading import Lock
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from triplewire.model import ENTRIES, START
from triplewire.model.clock import Clock, SystemClock
from triplewire.model.errors import BadRequest

REPLAY_CACHE_BYTES: Final = 8 * 1024 * 1024
"""Size of the replay cache for all streams together, unless set otherwise: half an hour of a stream with 10 events of
500 bytes a second."""

REPLAY_CACHE_SECONDS: Final = 60.0
"""How long a stream stays in the cache after its last client left: a client that was cut off reconnects within
seconds."""

_SIZES = {"kB": 1024, "MB": 1024**2, "GB": 1024**3}
_AGES = {"s": 1.0, "m": 60.0, "h": 3_600.0}
_AMOUNT = re.compile(r"(?:(?P<stream>[^=\s]+)=)?(?:(?P<nothing>0)|(?P<count>[0-9]+)(?P<unit>kB|MB|GB|s|m|h))")

_SMALL_CHUNK_BYTES = 16 * 1024
"""Bytes up to which the entries of a pass are joined with those of others: each table has an overhead."""
_CHUNKS_JOINED = 16
_TABLE_BYTES = 2_048
"""Overhead of a table of few entries."""


@dataclass(frozen=True)
class ReplayCacheConfig:
    """Sizes and ages of the replay cache."""

    size: int = REPLAY_CACHE_BYTES
    """Bytes of all streams together."""
    seconds: float = inf
    """Age of streams without one of their own."""
    sizes: Mapping[str, int] = field(default_factory=dict)
    ages: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def parsed(cls, texts: Iterable[str]) -> ReplayCacheConfig:
        """Parse texts such as `64MB` for all streams together, `30s` for each stream, and `home=8MB`, `home=10s` or
        `alerts=0` for one. Raises BadRequest."""
        size, seconds = REPLAY_CACHE_BYTES, inf
        sizes: dict[str, int] = {}
        ages: dict[str, float] = {}
        for stream, amount in map(_parse_amount, texts):
            match stream, amount:
                case None, int():
                    size = amount
                case None, float():
                    seconds = amount
                case str(), int():
                    sizes[stream] = amount
                case str(), float():
                    ages[stream] = amount
        return cls(size, seconds, sizes, ages)

    def size_of(self, stream: str) -> int:
        """Return the bytes of one stream."""
        return min(self.size, self.sizes.get(stream, self.size))

    def age_of(self, stream: str) -> float:
        """Return the seconds of one stream."""
        return self.ages.get(stream, self.seconds)


def _parse_amount(text: str) -> tuple[str | None, int | float]:
    match = _AMOUNT.fullmatch(text)
    if not match:
        raise BadRequest(
            f"{text!r} is no size or age of the replay cache: give 64MB for all streams, 30s for each, "
            "and for one of them home=8MB, home=10s or home=0"
        )
    if match["nothing"]:
        return match["stream"], 0
    count, unit = int(match["count"]), match["unit"]
    return match["stream"], count * _SIZES[unit] if unit in _SIZES else count * _AGES[unit]


ErasureLookup = Callable[[int], int]
"""Returns the position of the newest registry change about an erasure after a position, or the position itself."""


def nothing_erased(after: int) -> int:
    """Look erasures up in a broker that has none."""
    return after


@dataclass(frozen=True)
class RingChunk:
    """Entries of one stream from one pass."""

    entries: pa.Table
    last: int
    received: int
    size: int

    @classmethod
    def make(cls, entries: pa.Table) -> RingChunk:
        last, received = (entries[name][-1].as_py() for name in ("position", "received"))
        return cls(entries, last, received, entries.nbytes + _TABLE_BYTES)


@dataclass
class RingBuffer:
    """All entries of a stream above `start`, in order."""

    start: int
    used: float
    """Clock ticks when a client last listened to the stream."""
    chunks: list[RingChunk] = field(default_factory=list)
    size: int = 0

    def add(self, entries: pa.Table) -> None:
        self.chunks.append(RingChunk.make(entries))
        self.size += self.chunks[-1].size
        tail = self.chunks[-_CHUNKS_JOINED:]
        if len(tail) == _CHUNKS_JOINED and all(each.size <= _SMALL_CHUNK_BYTES for each in tail):
            joined = pa.concat_tables([each.entries for each in tail]).combine_chunks()
            self.chunks[-_CHUNKS_JOINED:] = [RingChunk.make(joined)]
            self.size = sum(each.size for each in self.chunks)

    def drop_oldest(self) -> None:
        chunk = self.chunks.pop(0)
        self.start = chunk.last
        self.size -= chunk.size

    def read(self, after: int, end: int, limit: int) -> pa.Table:
        first = bisect_right(self.chunks, after, key=lambda each: each.last)
        parts, count = [ENTRIES.empty_table()], 0
        for chunk in self.chunks[first:]:
            part = _select_range(chunk.entries, after, end)
            parts.append(part)
            count += part.num_rows
            if count >= limit or chunk.last >= end:
                break
        return pa.concat_tables(parts).slice(0, limit)


class RecentEvents:
    """The rings of all streams of an edge. The live source adds to them; any thread reads."""

    def __init__(
        self,
        config: ReplayCacheConfig | None = None,
        clock: Clock | None = None,
        erased: ErasureLookup = nothing_erased,
    ) -> None:
        self.size = 0
        self._config = config or ReplayCacheConfig()
        self._clock = clock or SystemClock()
        self._erased = erased
        self._erasure: int = START
        self._end: int = START
        self._rings: OrderedDict[str, RingBuffer] = OrderedDict()
        """The least recently used comes first."""
        self._lock = Lock()

    def __contains__(self, stream: str) -> bool:
        """Return whether the live source must add entries of a stream, even if no client listens to it now."""
        return stream in self._rings

    def __len__(self) -> int:
        return len(self._rings)

    def check_erasures(self) -> int:
        """Empty the cache if there was an erasure meanwhile; return the erasure position that goes with what is read
        next."""
        erasure = self._erased(self._erasure)
        with self._lock:
            if erasure > self._erasure:
                self._erasure = erasure
                self._clear()
            return self._erasure

    def keep(
        self, parts: Mapping[str, pa.Table], after: int, end: int, erasure: int, listened: Collection[str] = ()
    ) -> None:
        """Add what a pass has read between two positions, by stream: all entries of streams that are listened to, and
        of those that are in here. `erasure` is what `check_erasures` returned before the reading."""
        now = self._clock.ticks()
        with self._lock:
            if erasure != self._erasure or after != self._end:
                self._clear()
            self._end = end
            if erasure == self._erasure:
                self._touch(listened, after, now)
                for stream, entries in parts.items():
                    self._add(stream, entries)
                self._evict(now)

    def page(self, stream: str, after: int, end: int, limit: int) -> tuple[pa.Table, int] | None:
        """Return at most `limit` entries of a stream at positions p with `after < p <= end`, and the position up to
        which these are all; None if the cache does not reach back so far."""
        with self._lock:
            ring, end = self._rings.get(stream), min(end, self._end)
            if ring is None or after < ring.start or after >= end:
                return None
            self._rings.move_to_end(stream)
            ring.used = self._clock.ticks()
            entries, erasure = ring.read(after, end, limit), self._erasure
        # Checked after the reading: entries that were read before their erasure was requested are not sent either.
        if self.check_erasures() != erasure:
            return None
        return entries, end if entries.num_rows < limit else entries["position"][-1].as_py()

    def covers(self, stream: str, after: int) -> bool:
        """Return whether every entry of a stream after a position is here, up to the last pass."""
        with self._lock:
            ring = self._rings.get(stream)
            return ring is not None and ring.start <= after < self._end

    def find(self, stream: str, event: str) -> int | None:
        """Return the newest position of the event with this id in a stream, if it is here."""
        with self._lock:
            ring = self._rings.get(stream)
            for chunk in reversed(ring.chunks if ring else []):
                rows = pc.indices_nonzero(pc.equal(chunk.entries["event"], event))
                if len(rows):
                    position: int = chunk.entries["position"][rows[-1].as_py()].as_py()
                    return position
        return None

    def _touch(self, streams: Collection[str], after: int, now: float) -> None:
        for stream in streams:
            ring = self._rings.get(stream)
            if ring is not None:
                ring.used = now
            elif self._config.size_of(stream):
                self._rings[stream] = RingBuffer(after, now)

    def _add(self, stream: str, entries: pa.Table) -> None:
        ring = self._rings.get(stream)
        if ring is None or not entries.num_rows:
            return
        self._rings.move_to_end(stream)
        self.size -= ring.size
        ring.add(entries)
        most, oldest = self._config.size_of(stream), self._clock.now() - self._config.age_of(stream) * 1_000_000
        while ring.chunks and (ring.size > most or ring.chunks[0].received < oldest):
            ring.drop_oldest()
        self.size += ring.size

    def _evict(self, now: float) -> None:
        """Drop streams without clients for long, and what exceeds the bound of all."""
        for stream in [name for name, ring in self._rings.items() if now - ring.used > REPLAY_CACHE_SECONDS]:
            self.size -= self._rings.pop(stream).size
        while self.size > self._config.size:
            ring = next(each for each in self._rings.values() if each.chunks)
            self.size -= ring.size
            ring.drop_oldest()
            self.size += ring.size

    def _clear(self) -> None:
        self._rings.clear()
        self.size = 0


def _select_range(entries: pa.Table, after: int, end: int) -> pa.Table:
    """Select the rows at positions p with `after < p <= end`, of rows in order."""
    positions = entries["position"]
    if positions[0].as_py() > after and positions[-1].as_py() <= end:
        return entries
    return entries.filter(pc.and_(pc.greater(positions, after), pc.less_equal(positions, end)))
