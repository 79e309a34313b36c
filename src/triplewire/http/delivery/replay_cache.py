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

MEMORY_BYTES: Final = 8 * 1024 * 1024
"""Entries of streams that an edge remembers for those who come back, of all streams together, unless set otherwise:
half an hour of a stream with 10 events of 500 bytes a second."""

MEMORY_SECONDS: Final = 60.0
"""For how long an edge goes on remembering a stream that nobody listens to any more: who was cut off comes back within
seconds."""


# Recalls: how much of streams an edge remembers, as settings say it.

_SIZES = {"kB": 1024, "MB": 1024**2, "GB": 1024**3}
_AGES = {"s": 1.0, "m": 60.0, "h": 3_600.0}
_AMOUNT = re.compile(r"(?:(?P<stream>[^=\s]+)=)?(?:(?P<nothing>0)|(?P<count>[0-9]+)(?P<unit>kB|MB|GB|s|m|h))")


@dataclass(frozen=True)
class ReplayCacheConfig:
    """Bytes that are remembered of all streams together; of one stream by its name, bytes and seconds."""

    size: int = MEMORY_BYTES
    seconds: float = inf
    """Of streams that are not named."""
    sizes: Mapping[str, int] = field(default_factory=dict)
    ages: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def parsed(cls, texts: Iterable[str]) -> ReplayCacheConfig:
        """Of texts such as `64MB`, in all, `30s`, of each stream, and of one stream `home=8MB`, `home=10s` or
        `alerts=0`. Raises BadRequest."""
        size, seconds = MEMORY_BYTES, inf
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

    def of(self, stream: str) -> int:
        """Bytes of one stream."""
        return min(self.size, self.sizes.get(stream, self.size))

    def age(self, stream: str) -> float:
        """Seconds of one stream."""
        return self.ages.get(stream, self.seconds)


def _parse_amount(text: str) -> tuple[str | None, int | float]:
    found = _AMOUNT.fullmatch(text)
    if not found:
        raise BadRequest(
            f"{text!r} does not say what to remember: say 64MB for all streams, 30s for each, "
            "and for one of them home=8MB, home=10s or home=0"
        )
    if found["nothing"]:
        return found["stream"], 0
    count, unit = int(found["count"]), found["unit"]
    return found["stream"], count * _SIZES[unit] if unit in _SIZES else count * _AGES[unit]


# ```
# position            start ──────── a stream's ring ────────▶ upto
#                       │  every entry of the stream            │ up to where passes went
# read from   the log ◀─┘                                       └─▶ live
# ```
#
# What a pass of the feed has read for its listeners is kept here as it came, so that a returning listener costs the
# log nothing. Streams share one bound in bytes: where it is met, the stream that was used least recently gives way.

ErasureLookup = Callable[[int], int]
"""Given a position, that of the newest thing said about an erasure after it, or the position itself."""

_SMALL_CHUNK_BYTES = 16 * 1024
"""Bytes up to which the entries of a pass are joined with those of others: a table has a price of its own."""
_CHUNKS_JOINED = 16
_TABLE_BYTES = 2_048
"""What a table of few entries takes beside them."""


def nothing_erased(after: int) -> int:
    """Where nothing is ever erased."""
    return after


@dataclass(frozen=True)
class RingChunk:
    """Entries of one stream that came together."""

    entries: pa.Table
    last: int
    received: int
    size: int

    @classmethod
    def of(cls, entries: pa.Table) -> RingChunk:
        last, received = (entries[name][-1].as_py() for name in ("position", "received"))
        return cls(entries, last, received, entries.nbytes + _TABLE_BYTES)


@dataclass
class RingBuffer:
    """All entries of a stream above `start`, in order."""

    start: int
    used: float
    """When somebody last listened to the stream, by the clock's ticks."""
    chunks: list[RingChunk] = field(default_factory=list)
    size: int = 0

    def add(self, entries: pa.Table) -> None:
        self.chunks.append(RingChunk.of(entries))
        self.size += self.chunks[-1].size
        tail = self.chunks[-_CHUNKS_JOINED:]
        if len(tail) == _CHUNKS_JOINED and all(each.size <= _SMALL_CHUNK_BYTES for each in tail):
            self.chunks[-_CHUNKS_JOINED:] = [
                RingChunk.of(pa.concat_tables([each.entries for each in tail]).combine_chunks())
            ]
            self.size = sum(each.size for each in self.chunks)

    def drop(self) -> None:
        """Let the oldest go."""
        chunk = self.chunks.pop(0)
        self.start = chunk.last
        self.size -= chunk.size

    def above(self, after: int, upto: int, limit: int) -> pa.Table:
        first = bisect_right(self.chunks, after, key=lambda each: each.last)
        found, count = [ENTRIES.empty_table()], 0
        for chunk in self.chunks[first:]:
            part = _select_range(chunk.entries, after, upto)
            found.append(part)
            count += part.num_rows
            if count >= limit or chunk.last >= upto:
                break
        return pa.concat_tables(found).slice(0, limit)


class RecentEvents:
    """Of all streams of an edge. Passes add to it; any thread reads."""

    def __init__(
        self,
        recall: ReplayCacheConfig | None = None,
        clock: Clock | None = None,
        erased: ErasureLookup = nothing_erased,
    ) -> None:
        self.size = 0
        self._recall = recall or ReplayCacheConfig()
        self._clock = clock or SystemClock()
        self._erased = erased
        self._mark: int = START
        self._upto: int = START
        self._rings: OrderedDict[str, RingBuffer] = OrderedDict()
        """The one that was used least recently comes first."""
        self._turn = Lock()

    def __contains__(self, stream: str) -> bool:
        """Whether a pass is to hand over what it has of the stream, even if nobody listens to it now."""
        return stream in self._rings

    def __len__(self) -> int:
        return len(self._rings)

    def look(self) -> int:
        """Forget everything if anything was erased meanwhile. It gives the mark that goes with what is read next."""
        mark = self._erased(self._mark)
        with self._turn:
            if mark > self._mark:
                self._mark = mark
                self._forget()
            return self._mark

    def keep(
        self, parts: Mapping[str, pa.Table], after: int, upto: int, mark: int, listened: Collection[str] = ()
    ) -> None:
        """Take in what a pass has read between two positions, by streams: all entries of those that are listened to,
        and of those that are in here. `mark` is what `look` gave before it was read."""
        now = self._clock.ticks()
        with self._turn:
            if mark != self._mark or after != self._upto:
                self._forget()
            self._upto = upto
            if mark == self._mark:
                self._listened(listened, after, now)
                for stream, entries in parts.items():
                    self._add(stream, entries)
                self._give_way(now)

    def page(self, stream: str, after: int, upto: int, limit: int) -> tuple[pa.Table, int] | None:
        """At most `limit` entries of a stream at positions p with `after < p <= upto`, and the position up to which
        these are all; None where memory does not reach back so far."""
        with self._turn:
            ring, end = self._rings.get(stream), min(upto, self._upto)
            if ring is None or after < ring.start or after >= end:
                return None
            self._rings.move_to_end(stream)
            ring.used = self._clock.ticks()
            found, mark = ring.above(after, end, limit), self._mark
        # Looked at after the reading: what was read before somebody asked for its erasure is not shown either.
        if self.look() != mark:
            return None
        return found, end if found.num_rows < limit else found["position"][-1].as_py()

    def covers(self, stream: str, after: int) -> bool:
        """Whether it has every entry of a stream after a position, up to where passes went."""
        with self._turn:
            ring = self._rings.get(stream)
            return ring is not None and ring.start <= after < self._upto

    def find(self, stream: str, event: str) -> int | None:
        """The newest position of the event with this id, in a stream, if it is remembered."""
        with self._turn:
            ring = self._rings.get(stream)
            for chunk in reversed(ring.chunks if ring else []):
                rows = pc.indices_nonzero(pc.equal(chunk.entries["event"], event))
                if len(rows):
                    position: int = chunk.entries["position"][rows[-1].as_py()].as_py()
                    return position
        return None

    def _listened(self, streams: Collection[str], after: int, now: float) -> None:
        for stream in streams:
            ring = self._rings.get(stream)
            if ring is not None:
                ring.used = now
            elif self._recall.of(stream):
                self._rings[stream] = RingBuffer(after, now)

    def _add(self, stream: str, entries: pa.Table) -> None:
        ring = self._rings.get(stream)
        if ring is None or not entries.num_rows:
            return
        self._rings.move_to_end(stream)
        self.size -= ring.size
        ring.add(entries)
        most, oldest = self._recall.of(stream), self._clock.now() - self._recall.age(stream) * 1_000_000
        while ring.chunks and (ring.size > most or ring.chunks[0].received < oldest):
            ring.drop()
        self.size += ring.size

    def _give_way(self, now: float) -> None:
        """Streams to which nobody has come back for long go, and what is over the bound of all."""
        for stream in [name for name, ring in self._rings.items() if now - ring.used > MEMORY_SECONDS]:
            self.size -= self._rings.pop(stream).size
        while self.size > self._recall.size:
            stream, ring = next((name, each) for name, each in self._rings.items() if each.chunks)
            self.size -= ring.size
            ring.drop()
            self.size += ring.size

    def _forget(self) -> None:
        self._rings.clear()
        self.size = 0


def _select_range(entries: pa.Table, after: int, upto: int) -> pa.Table:
    """The rows at positions p with `after < p <= upto`, of rows in order."""
    positions = entries["position"]
    if positions[0].as_py() > after and positions[-1].as_py() <= upto:
        return entries
    return entries.filter(pc.and_(pc.greater(positions, after), pc.less_equal(positions, upto)))
