"""The outbox carries matches from the pipeline to the edges, in one store with three lanes.

```
progress   lane → head: everything is matched up to here
runs       lane, run → the newest batch that was written
parts      lane, part → its generation, and its head
chunks     lane, position → matches of a batch that ends there, and when they were written
```
A lane is written whole, batch by batch, or by several tasks at once, each of which has a part of it:

```
block             0    1    2    3    4    5        of some hundred positions each
part              0    1    2    0    1    2
written          ███  ███  █··  ███  ···  ···       part 1 may go on with block 4; part 2 is in block 2
head of the part            │         │    │        part 2, part 1, part 0: positions of others count as written
head of the lane            ▲                       the least of them; edges read up to here
```
A write changes heads and chunks in one transaction. Matches at or below the head of a lane, or of a part, were written
before and are dropped.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from operator import attrgetter
from pathlib import Path
from sqlite3 import Connection
from threading import Lock
from typing import Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from triplewire.model import END, MATCHES
from triplewire.model.clock import Clock, SystemClock
from triplewire.model.errors import Conflict
from triplewire.storage import sqlite

OUTBOX_CHUNK_BYTES: Final = 16 * 1024 * 1024
"""Matches in one chunk of the outbox, unless they are all of one position: an edge reads a chunk at once."""

MERGED_BYTES: Final = 256 * 1024
"""Size up to which small chunks are merged: a client that resumes reads a thousand matches at once, not one by one."""

MERGED_CHUNKS: Final = 2_000
"""Chunks that are looked at in one pass of merging: some 10 ms."""

PART_POSITIONS: Final = 512
"""Positions of a block, if a lane is divided: a backlog of more is matched by several tasks at once."""

Positions = npt.NDArray[np.int64]

_SYSTEM_CLOCK = SystemClock()
_POSITION = attrgetter("position")


class OutboxLane(StrEnum):
    """Lanes have heads of their own, so that none waits for another."""

    FAST = "fast"
    """Matches of subscriptions."""
    SLOW = "slow"
    """Matches of subscriptions whose shapes are too expensive for the fast lane."""
    CONTINUOUS = "continuous"
    """Answers of continuous queries. Such a match spans events: from the position in `value` to its own."""


@dataclass(frozen=True)
class OutboxChunk:
    """Matches of one batch. Chunks of a lane do not overlap, so a reader that resumes after a position reads from
    there."""

    position: int
    """The position up to which everything is in this chunk and those before it."""
    matches: pa.Table
    written: int = 0
    """Microseconds at which it was written."""


@dataclass(frozen=True)
class OutboxPart:
    """A part of a lane that has several, in blocks of equal length: the k-th block of positions belongs to the part
    whose number is k modulo their count."""

    lane: OutboxLane
    generation: int
    """The number of the division: parts of an older one are refused."""
    number: int
    count: int
    block: int
    """Positions of a block."""

    def reach(self, position: int) -> int:
        """Return the last position up to which this part has nothing above a position."""
        block = position // self.block
        others = (self.number - block) % self.count
        return (block + others) * self.block if others else position

    def ranges(self, after: int, through: int) -> Iterator[tuple[int, int]]:
        """Yield the positions p of this part with `after < p <= through` as ranges `(first - 1, last)`, in order. None
        has positions of other parts in between."""
        after = self.reach(after)
        while after < through:
            end = through if self.count == 1 else min(through, (after // self.block + 1) * self.block)
            yield after, end
            after = self.reach(end)


class PartProgress(NamedTuple):
    """How far a part and its lane are."""

    head: int
    """The position up to which everything of the part was written. Positions of other parts count as written."""
    lane_head: int


class Outbox(Protocol):
    """Matches on their way from the pipeline to the edges.

    A lane is written by `write`, or by `write_part` after it was divided. A run of a job numbers its batches from 0 on
    and writes them in order; an outbox is opened for one run, and all runs share the chunks. Called from any thread.
    """

    def write(self, batch: int, position: int, matches: pa.Table, lane: OutboxLane = OutboxLane.FAST) -> None:
        """Store the matches of a batch that ends at `position`.

        Answers of continuous queries are durable when it returns. A power failure may take the newest batches of the
        other lanes, heads included: they are matched again, with the same result, and `sync` makes them durable.
        A batch that was written before is left as it is, and matches at or below the head are dropped: no match is
        handed out twice, whether a batch is replayed or a new run begins further back. Raises StorageFull.
        """

    def divide(self, lane: OutboxLane, count: int, after: int = 0, block: int = PART_POSITIONS) -> Sequence[OutboxPart]:
        """Divide a lane anew, into parts that begin at its head, or at `after` if it has none yet.

        Parts of former divisions cannot be written from now on, and what they have written above the head is dropped:
        no edge has read it.
        """

    def write_part(self, part: OutboxPart, after: int, position: int, matches: pa.Table) -> PartProgress:
        """Store the matches of the positions p of a part with `after < p <= position`. `after` is the head of the part
        as the caller knows it.

        Matches at or below the head are dropped, so that a part may have two writers for a while. A power failure may
        take the newest, heads included, until `sync` has made them durable. Raises Conflict if the lane was divided
        anew, StorageFull.
        """

    def progress(self, part: OutboxPart) -> PartProgress:
        """Raises Conflict if the lane was divided anew."""

    def read(self, after: int, limit: int, lane: OutboxLane = OutboxLane.FAST) -> list[OutboxChunk]:
        """At most `limit` chunks with positions above `after`, up to the head, in order. Batches without matches have
        none."""

    def head(self, lane: OutboxLane = OutboxLane.FAST) -> int:
        """The position up to which everything was matched; 0 before the first batch."""

    def sync(self) -> None:
        """Make everything that was written durable. Raises StorageFull."""

    def trim(self, before: int) -> int:
        """Drop chunks of all lanes that end below a position; return their number."""

    def merge(self, before: int) -> int:
        """Merge small neighbours among the chunks that end below a position and not above the head of their lane;
        return how many chunks went.

        A reader that has come to the middle of a merged chunk reads all of it again, and skips what it has. Not to be
        called while `erase` runs.
        """

    def erase(self, positions: Collection[int]) -> int:
        """Delete the matches of the events at these positions, in all lanes, so that no byte of them is left; return
        their number.

        A match that spans events is deleted if such a position lies in its range: the events in between are not
        known. Doing it again does nothing. Raises StorageFull, or Unavailable where a reader is in the way; then it is
        to be done again.
        """


_SCHEMA = {
    "progress": "CREATE TABLE progress (lane TEXT PRIMARY KEY, head INTEGER NOT NULL) WITHOUT ROWID",
    "runs": "CREATE TABLE runs (lane TEXT, run TEXT, batch INTEGER NOT NULL, PRIMARY KEY (lane, run)) WITHOUT ROWID",
    "parts": """CREATE TABLE parts (
        lane TEXT, part INTEGER, generation INTEGER NOT NULL, head INTEGER NOT NULL, PRIMARY KEY (lane, part)
    ) WITHOUT ROWID""",
    "chunks": """CREATE TABLE chunks (
        lane TEXT, position INTEGER, written INTEGER NOT NULL, matches BLOB NOT NULL, PRIMARY KEY (lane, position)
    )""",
}

_HEAD = "SELECT head FROM progress WHERE lane = ?"
_ADVANCE = "INSERT INTO progress VALUES (?, ?) ON CONFLICT DO UPDATE SET head = max(head, excluded.head)"
_BATCH = "SELECT batch FROM runs WHERE lane = ? AND run = ?"
_DONE = "INSERT OR REPLACE INTO runs (lane, run, batch) VALUES (?, ?, ?)"
_INSERT = "INSERT INTO chunks (lane, position, written, matches) VALUES (?, ?, ?, ?)"
_READ = """SELECT position, written, matches FROM chunks
    WHERE lane = ?1 AND position > ?2 AND position <= (SELECT head FROM progress WHERE lane = ?1)
    ORDER BY position LIMIT ?3"""
_FROM = "SELECT lane, position FROM chunks WHERE position >= ? ORDER BY lane, position"
_ONE = "SELECT matches FROM chunks WHERE lane = ? AND position = ?"
_REDUCE = "UPDATE chunks SET matches = ? WHERE lane = ? AND position = ?"
_DROP = "DELETE FROM chunks WHERE lane = ? AND position = ?"
_TRIM = "DELETE FROM chunks WHERE position < ?"
_SIZES = """SELECT position, length(matches) FROM chunks
    WHERE lane = ?1 AND position > ?2 AND position < ?3 AND position <= (SELECT head FROM progress WHERE lane = ?1)
    ORDER BY position LIMIT ?4"""
_BETWEEN = "SELECT written, matches FROM chunks WHERE lane = ? AND position BETWEEN ? AND ? ORDER BY position"
_DROP_BETWEEN = "DELETE FROM chunks WHERE lane = ? AND position BETWEEN ? AND ?"
_DROP_ABOVE = "DELETE FROM chunks WHERE lane = ? AND position > ?"
_GENERATION = "SELECT max(generation) FROM parts WHERE lane = ?"
_DROP_PARTS = "DELETE FROM parts WHERE lane = ?"
_ADD_PART = "INSERT INTO parts (lane, part, generation, head) VALUES (?, ?, ?, ?)"
_PROGRESS = """SELECT (SELECT head FROM parts WHERE lane = ?1 AND part = ?2 AND generation = ?3),
    (SELECT min(head) FROM parts WHERE lane = ?1)"""
_ADVANCE_PART = "UPDATE parts SET head = ? WHERE lane = ? AND part = ?"


class SqliteOutbox:
    """The outbox in a file that one pipeline writes and any number of edges read.

    The jobs of the pipeline write their lanes at the same time. So a transaction holds only the writes: matches are
    encoded before it begins.
    """

    def __init__(
        self,
        path: Path,
        run: str = "",
        clock: Clock = _SYSTEM_CLOCK,
        *,
        chunk_bytes: int = OUTBOX_CHUNK_BYTES,
    ) -> None:
        """`run` names a sequence of batches: a job with a new checkpoint is a new run."""
        self._run = run
        self._clock = clock
        self._chunk_bytes = chunk_bytes
        self._database = sqlite.Database(path, _SCHEMA)
        self._matches = sqlite.Database(path, _SCHEMA, durable=False)
        """The same file for matches: they follow from the log, and a sync would delay each by some milliseconds."""
        self._merged: dict[OutboxLane, int] = {}
        """Positions up to which no chunks are left to be merged."""

    def write(self, batch: int, position: int, matches: pa.Table, lane: OutboxLane = OutboxLane.FAST) -> None:
        head = self.head(lane)
        chunks = self._encode(matches, head, position)
        database = self._database if lane is OutboxLane.CONTINUOUS else self._matches
        with database.writing() as connection:
            (done,) = connection.execute(_BATCH, (lane, self._run)).fetchone() or (-1,)
            if batch <= done:
                return
            (newest,) = connection.execute(_HEAD, (lane,)).fetchone() or (0,)
            if newest != head:
                chunks = self._encode(matches, newest, position)
            now = self._clock.now()
            connection.executemany(_INSERT, ((lane, end, now, chunk) for end, chunk in chunks))
            connection.execute(_ADVANCE, (lane, position))
            connection.execute(_DONE, (lane, self._run, batch))

    def divide(self, lane: OutboxLane, count: int, after: int = 0, block: int = PART_POSITIONS) -> Sequence[OutboxPart]:
        with self._database.writing() as connection:
            (head,) = connection.execute(_HEAD, (lane,)).fetchone() or (0,)
            (newest,) = connection.execute(_GENERATION, (lane,)).fetchone()
            parts = [OutboxPart(lane, (newest or 0) + 1, number, count, block) for number in range(count)]
            connection.execute(_DROP_ABOVE, (lane, head))
            connection.execute(_DROP_PARTS, (lane,))
            rows = ((lane, part.number, part.generation, part.reach(head or after)) for part in parts)
            connection.executemany(_ADD_PART, rows)
        return parts

    def write_part(self, part: OutboxPart, after: int, position: int, matches: pa.Table) -> PartProgress:
        chunks = self._encode_part(part, after, position, matches)
        with self._matches.writing() as connection:
            head = _read_progress(connection, part).head
            if head != after:
                chunks = self._encode_part(part, head, position, matches)
            now = self._clock.now()
            connection.executemany(_INSERT, ((part.lane, end, now, chunk) for end, chunk in chunks))
            connection.execute(_ADVANCE_PART, (max(head, part.reach(position)), part.lane, part.number))
            progress = _read_progress(connection, part)
            connection.execute(_ADVANCE, (part.lane, progress.lane_head))
        return progress

    def progress(self, part: OutboxPart) -> PartProgress:
        with self._database.reading() as connection:
            return _read_progress(connection, part)

    def read(self, after: int, limit: int, lane: OutboxLane = OutboxLane.FAST) -> list[OutboxChunk]:
        with self._database.reading() as connection:
            rows = connection.execute(_READ, (lane, after, limit)).fetchall()
        return [OutboxChunk(position, _decode(matches), written) for position, written, matches in rows]

    def head(self, lane: OutboxLane = OutboxLane.FAST) -> int:
        with self._database.reading() as connection:
            (head,) = connection.execute(_HEAD, (lane,)).fetchone() or (0,)
        return int(head)

    def sync(self) -> None:
        self._database.sync()

    def trim(self, before: int) -> int:
        with self._database.writing() as connection:
            return connection.execute(_TRIM, (before,)).rowcount

    def merge(self, before: int) -> int:
        return sum(self._merge_lane(lane, before) for lane in OutboxLane)

    def _merge_lane(self, lane: OutboxLane, before: int) -> int:
        with self._database.reading() as connection:
            scope = (lane, self._merged.get(lane, 0), before, MERGED_CHUNKS)
            groups = _group_by_size(connection.execute(_SIZES, scope).fetchall())
        if groups:
            # The last group may grow.
            self._merged[lane] = groups[-1][0] - 1
        return sum(self._merge_group(lane, group[0], group[-1]) for group in groups if len(group) > 1)

    def _merge_group(self, lane: OutboxLane, first: int, last: int) -> int:
        with self._database.writing() as connection:
            rows = connection.execute(_BETWEEN, (lane, first, last)).fetchall()
            if len(rows) > 1:
                connection.execute(_DROP_BETWEEN, (lane, first, last))
                merged = pa.concat_tables([_decode(chunk) for _, chunk in rows])
                connection.execute(_INSERT, (lane, last, rows[-1][0], _encode(merged)))
        return max(0, len(rows) - 1)

    def erase(self, positions: Collection[int]) -> int:
        with self._database.reading() as connection:
            chunks = connection.execute(_FROM, (min(positions, default=END),)).fetchall()
        erased = np.sort(np.fromiter(positions, np.int64, len(positions)))
        dropped = sum(self._erase_chunk(OutboxLane(lane), position, erased) for lane, position in chunks)
        self._database.scrub()
        return dropped

    def close(self) -> None:
        self._database.close()
        self._matches.close()

    def _erase_chunk(self, lane: OutboxLane, position: int, erased: Positions) -> int:
        """Each chunk is a transaction of its own, so that no batch waits for long."""
        with self._database.writing() as connection:
            (chunk,) = connection.execute(_ONE, (lane, position)).fetchone() or (None,)
            if chunk is None:
                return 0
            matches = _decode(chunk)
            rest = _drop_erased(matches, erased, lane)
            if rest.num_rows == 0:
                connection.execute(_DROP, (lane, position))
            elif rest.num_rows < matches.num_rows:
                connection.execute(_REDUCE, (_encode(rest), lane, position))
            return int(matches.num_rows - rest.num_rows)

    def _encode(self, matches: pa.Table, head: int, position: int) -> list[tuple[int, bytes]]:
        chunks = _split_matches(_drop_written(matches, head), position, self._chunk_bytes)
        return [(end, _encode(part)) for end, part in chunks]

    def _encode_part(self, part: OutboxPart, head: int, position: int, matches: pa.Table) -> list[tuple[int, bytes]]:
        chunks = _split_part(part, head, position, matches, self._chunk_bytes)
        return [(end, _encode(each)) for end, each in chunks]


def _read_progress(connection: Connection, part: OutboxPart) -> PartProgress:
    head, lane_head = connection.execute(_PROGRESS, (part.lane, part.number, part.generation)).fetchone()
    return _check_generation(part, head, lane_head)


def _check_generation(part: OutboxPart, head: int | None, lane_head: int) -> PartProgress:
    """Return the progress of a part; without a head it is of a former division."""
    if head is None:
        raise Conflict(f"the {part.lane} lane was divided anew; its part {part.number} was of {part.generation}")
    return PartProgress(head, lane_head)


@dataclass
class _MemoryLane:
    head: int = 0
    runs: dict[str, int] = field(default_factory=dict)
    parts: dict[OutboxPart, int] = field(default_factory=dict)
    """The heads of the parts of one generation."""
    chunks: list[OutboxChunk] = field(default_factory=list)

    def progress(self, part: OutboxPart) -> PartProgress:
        return _check_generation(part, self.parts.get(part), min(self.parts.values(), default=0))

    @property
    def readable(self) -> Sequence[OutboxChunk]:
        """The chunks up to the head."""
        return self.chunks[: bisect_right(self.chunks, self.head, key=_POSITION)]


class MemoryOutbox:
    """The outbox in the memory of one process."""

    def __init__(
        self,
        run: str = "",
        shared: MemoryOutbox | None = None,
        clock: Clock = _SYSTEM_CLOCK,
        *,
        chunk_bytes: int = OUTBOX_CHUNK_BYTES,
    ) -> None:
        """`shared` is the outbox of another run that holds the same chunks."""
        self._run = run
        self._clock = clock
        self._chunk_bytes = chunk_bytes
        self._lanes: dict[OutboxLane, _MemoryLane] = shared._lanes if shared else defaultdict(_MemoryLane)
        self._lock: Lock = shared._lock if shared else Lock()

    def write(self, batch: int, position: int, matches: pa.Table, lane: OutboxLane = OutboxLane.FAST) -> None:
        with self._lock:
            store = self._lanes[lane]
            if batch <= store.runs.get(self._run, -1):
                return
            fresh = _drop_written(matches, store.head)
            now, chunks = self._clock.now(), _split_matches(fresh, position, self._chunk_bytes)
            store.chunks += [OutboxChunk(end, part, now) for end, part in chunks]
            store.head = max(store.head, position)
            store.runs[self._run] = batch

    def divide(self, lane: OutboxLane, count: int, after: int = 0, block: int = PART_POSITIONS) -> Sequence[OutboxPart]:
        with self._lock:
            store = self._lanes[lane]
            generation = 1 + max((each.generation for each in store.parts), default=0)
            parts = [OutboxPart(lane, generation, number, count, block) for number in range(count)]
            store.chunks = [*store.readable]
            store.parts = {each: each.reach(store.head or after) for each in parts}
        return parts

    def write_part(self, part: OutboxPart, after: int, position: int, matches: pa.Table) -> PartProgress:
        with self._lock:
            store = self._lanes[part.lane]
            head, now = store.progress(part).head, self._clock.now()
            for end, each in _split_part(part, head, position, matches, self._chunk_bytes):
                insort(store.chunks, OutboxChunk(end, each, now), key=_POSITION)
            store.parts[part] = max(head, part.reach(position))
            progress = store.progress(part)
            store.head = max(store.head, progress.lane_head)
        return progress

    def progress(self, part: OutboxPart) -> PartProgress:
        with self._lock:
            return self._lanes[part.lane].progress(part)

    def read(self, after: int, limit: int, lane: OutboxLane = OutboxLane.FAST) -> list[OutboxChunk]:
        with self._lock:
            chunks = self._lanes[lane].readable
        first = bisect_right(chunks, after, key=_POSITION)
        return [*chunks[first : first + limit]]

    def head(self, lane: OutboxLane = OutboxLane.FAST) -> int:
        return self._lanes[lane].head

    def sync(self) -> None:
        """Memory has nothing to sync."""

    def trim(self, before: int) -> int:
        dropped = 0
        with self._lock:
            for store in self._lanes.values():
                rest = [chunk for chunk in store.chunks if chunk.position >= before]
                dropped += len(store.chunks) - len(rest)
                store.chunks = rest
        return dropped

    def merge(self, before: int) -> int:
        merged = 0
        with self._lock:
            for store in self._lanes.values():
                old = [chunk for chunk in store.readable if chunk.position < before]
                chunks = {chunk.position: chunk for chunk in old}
                groups = _group_by_size([(chunk.position, chunk.matches.nbytes) for chunk in old])
                parts = [[chunks[position] for position in group] for group in groups]
                joined = [
                    replace(part[-1], matches=pa.concat_tables([chunk.matches for chunk in part])) for part in parts
                ]
                store.chunks = joined + store.chunks[len(old) :]
                merged += len(old) - len(joined)
        return merged

    def erase(self, positions: Collection[int]) -> int:
        dropped, erased = 0, np.sort(np.fromiter(positions, np.int64, len(positions)))
        with self._lock:
            for lane, store in self._lanes.items():
                rest = [replace(chunk, matches=_drop_erased(chunk.matches, erased, lane)) for chunk in store.chunks]
                dropped += sum(
                    before.matches.num_rows - after.matches.num_rows
                    for before, after in zip(store.chunks, rest, strict=True)
                )
                store.chunks = [chunk for chunk in rest if chunk.matches.num_rows]
        return dropped


def _group_by_size(chunks: Sequence[tuple[int, int]]) -> list[list[int]]:
    """Group the positions of neighbours whose sizes together stay within the limit, given both of each chunk."""
    groups, total = list[list[int]](), 0
    for position, size in chunks:
        if not groups or total + size > MERGED_BYTES:
            groups.append([])
            total = 0
        groups[-1].append(position)
        total += size
    return groups


def _drop_erased(matches: pa.Table, erased: Positions, lane: OutboxLane) -> pa.Table:
    """The matches in whose range, which is one position outside the continuous lane, nothing was erased."""
    newest = matches["position"].to_numpy()
    oldest = newest
    if lane is OutboxLane.CONTINUOUS:
        values = matches["value"].to_numpy()
        # A row that reports a limit has no range.
        oldest = np.where(np.isfinite(values), values, newest).astype(np.int64)
    concerned = np.searchsorted(erased, oldest, "left") < np.searchsorted(erased, newest, "right")
    return matches.filter(pa.array(~concerned))


def _drop_written(matches: pa.Table, head: int) -> pa.Table:
    table = matches.cast(MATCHES)
    return table.filter(pc.greater(table.column("position"), head))


def _split_part(
    part: OutboxPart, head: int, position: int, matches: pa.Table, chunk_bytes: int
) -> Iterator[tuple[int, pa.Table]]:
    """Split the matches of a part above its head into chunks that hold no positions of other parts in between, each
    with the position at which it ends."""
    fresh = _drop_written(matches, head)
    if part.count == 1:
        yield from _split_matches(fresh, position, chunk_bytes)
        return
    positions = fresh["position"].to_numpy()
    for after, through in part.ranges(head, position) if fresh.num_rows else ():
        own = fresh.filter(pa.array((positions > after) & (positions <= through)))
        yield from _split_matches(own, through, chunk_bytes)


def _split_matches(matches: pa.Table, position: int, chunk_bytes: int) -> Iterator[tuple[int, pa.Table]]:
    """Split matches into chunks, each with the position at which it ends. Those of one position are in one chunk."""
    if matches.nbytes <= chunk_bytes:
        if matches.num_rows:
            yield position, matches
        return
    ordered = matches.sort_by("position")
    positions = ordered["position"].to_numpy()
    rows = max(1, ordered.num_rows * chunk_bytes // ordered.nbytes)
    start = 0
    while start < len(positions):
        stop = int(np.searchsorted(positions, positions[min(start + rows, len(positions)) - 1], "right"))
        yield (position if stop == len(positions) else int(positions[stop - 1])), ordered.slice(start, stop - start)
        start = stop


def _encode(matches: pa.Table) -> bytes:
    """Not compressed: zstd makes 50 rows half as large and ten times as slow, and every edge would pay to read."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, MATCHES) as stream:
        stream.write_table(matches)
    return bytes(sink.getvalue())


def _decode(chunk: bytes) -> pa.Table:
    return pa.ipc.open_stream(chunk).read_all()
