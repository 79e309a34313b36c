"""The outbox carries matches from the pipeline to the edges.

```
progress   head: matched up to here        runs   run → its newest batch        chunks   upto → matches
```
A write moves all three at once. Matches at or below `head` were written before and are dropped.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from threading import Lock
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from triplewire.model import END, MATCHES
from triplewire.storage import sqlite
from triplewire.storage.log.ports import OutboxChunk

OUTBOX_CHUNK_BYTES: Final = 16 * 1024 * 1024
"""Matches that lie together in an outbox, unless they are of one position: those who tell them read them at once."""


Numbers = npt.NDArray[np.int64]

SCHEMA = {
    "progress": "CREATE TABLE progress AS SELECT 0 AS head",
    "runs": "CREATE TABLE runs (run TEXT PRIMARY KEY, batch INTEGER NOT NULL) WITHOUT ROWID",
    "chunks": "CREATE TABLE chunks (upto INTEGER PRIMARY KEY, matches BLOB NOT NULL)",
}

_HEAD = "SELECT head FROM progress"
_ADVANCE = "UPDATE progress SET head = max(head, ?)"
_BATCH = "SELECT batch FROM runs WHERE run = ?"
_DONE = "INSERT OR REPLACE INTO runs (run, batch) VALUES (?, ?)"
_INSERT = "INSERT INTO chunks (upto, matches) VALUES (?, ?)"
_READ = "SELECT upto, matches FROM chunks WHERE upto > ? ORDER BY upto LIMIT ?"
_FROM = "SELECT upto FROM chunks WHERE upto >= ? ORDER BY upto"
_ONE = "SELECT matches FROM chunks WHERE upto = ?"
_LEAVE = "UPDATE chunks SET matches = ? WHERE upto = ?"
_DROP = "DELETE FROM chunks WHERE upto = ?"
_TRIM = "DELETE FROM chunks WHERE upto < ?"


class SqliteOutbox:
    """Chunks in a file that one pipeline writes and any number of edges read."""

    def __init__(self, path: Path, run: str = "") -> None:
        """`run` tells one sequence of batches from another: a pipeline with a new checkpoint is a new run."""
        self._run = run
        self._database = sqlite.Database(path, SCHEMA)

    def write(self, batch: int, upto: int, matches: pa.Table) -> None:
        with self._database.writing() as connection:
            (done,) = connection.execute(_BATCH, (self._run,)).fetchone() or (-1,)
            if batch <= done:
                return
            (head,) = connection.execute(_HEAD).fetchone()
            fresh = _drop_written(matches, head)
            connection.executemany(_INSERT, ((end, _encode(part)) for end, part in _split_matches(fresh, upto)))
            connection.execute(_ADVANCE, (upto,))
            connection.execute(_DONE, (self._run, batch))

    def read(self, after: int, limit: int) -> list[OutboxChunk]:
        with self._database.reading() as connection:
            found = connection.execute(_READ, (after, limit)).fetchall()
        return [OutboxChunk(upto, upto, _decode(matches)) for upto, matches in found]

    def head(self) -> int:
        with self._database.reading() as connection:
            (head,) = connection.execute(_HEAD).fetchone()
        return int(head)

    def trim(self, before: int) -> int:
        with self._database.writing() as connection:
            return connection.execute(_TRIM, (before,)).rowcount

    def erase(self, positions: Collection[int], *, across: bool = False) -> int:
        with self._database.reading() as connection:
            chunks = [upto for (upto,) in connection.execute(_FROM, (min(positions, default=END),)).fetchall()]
        gone = np.sort(np.fromiter(positions, np.int64, len(positions)))
        dropped = sum(self._erased(upto, gone, across) for upto in chunks)
        self._database.scrub()
        return dropped

    def close(self) -> None:
        self._database.close()

    def _erased(self, upto: int, gone: Numbers, across: bool) -> int:
        """From one chunk: each in a transaction of its own, so that no batch waits for long."""
        with self._database.writing() as connection:
            (chunk,) = connection.execute(_ONE, (upto,)).fetchone() or (None,)
            if chunk is None:
                return 0
            matches = _decode(chunk)
            kept = _drop_erased(matches, gone, across)
            if kept.num_rows == 0:
                connection.execute(_DROP, (upto,))
            elif kept.num_rows < matches.num_rows:
                connection.execute(_LEAVE, (_encode(kept), upto))
            return int(matches.num_rows - kept.num_rows)


@dataclass
class _SharedChunks:
    """What the outboxes of all runs in one process hold together."""

    chunks: list[OutboxChunk] = field(default_factory=list)
    runs: dict[str, int] = field(default_factory=dict)
    head: int = 0
    lock: Lock = field(default_factory=Lock)


class MemoryOutbox:
    """Chunks in a list, gone with the process."""

    def __init__(self, run: str = "", shared: MemoryOutbox | None = None) -> None:
        """`shared` is an outbox of another run that holds the same chunks."""
        self._run = run
        self._shelf: _SharedChunks = shared._shelf if shared else _SharedChunks()

    def write(self, batch: int, upto: int, matches: pa.Table) -> None:
        shelf = self._shelf
        with shelf.lock:
            if batch <= shelf.runs.get(self._run, -1):
                return
            fresh = _drop_written(matches, shelf.head)
            shelf.chunks += [OutboxChunk(end, end, part) for end, part in _split_matches(fresh, upto)]
            shelf.head = max(shelf.head, upto)
            shelf.runs[self._run] = batch

    def read(self, after: int, limit: int) -> list[OutboxChunk]:
        chunks = self._shelf.chunks
        first = bisect_right(chunks, after, key=attrgetter("sequence"))
        return chunks[first : first + limit]

    def head(self) -> int:
        return self._shelf.head

    def erase(self, positions: Collection[int], *, across: bool = False) -> int:
        shelf, gone = self._shelf, np.sort(np.fromiter(positions, np.int64, len(positions)))
        with shelf.lock:
            left = [
                OutboxChunk(each.sequence, each.upto, _drop_erased(each.matches, gone, across)) for each in shelf.chunks
            ]
            dropped = _count_matches(shelf.chunks) - _count_matches(left)
            shelf.chunks = [each for each in left if each.matches.num_rows]
        return dropped

    def trim(self, before: int) -> int:
        shelf = self._shelf
        with shelf.lock:
            kept = [chunk for chunk in shelf.chunks if chunk.upto >= before]
            dropped = len(shelf.chunks) - len(kept)
            shelf.chunks = kept
        return dropped


def _count_matches(chunks: Sequence[OutboxChunk]) -> int:
    return sum(each.matches.num_rows for each in chunks)


def _drop_erased(matches: pa.Table, gone: Numbers, across: bool) -> pa.Table:
    """Those between whose ends, which are one where it is not `across` events, nothing is gone."""
    newest = matches["position"].to_numpy()
    oldest = newest
    if across:
        values = matches["value"].to_numpy()
        # The row that tells of a limit has none.
        oldest = np.where(np.isfinite(values), values, newest).astype(np.int64)
    concerned = np.searchsorted(gone, oldest, "left") < np.searchsorted(gone, newest, "right")
    return matches.filter(pa.array(~concerned))


def _drop_written(matches: pa.Table, head: int) -> pa.Table:
    table = matches.cast(MATCHES)
    return table.filter(pc.greater(table.column("position"), head))


def _split_matches(matches: pa.Table, upto: int) -> Iterator[tuple[int, pa.Table]]:
    """Matches as one chunk, or as several where they are many, each with the position up to which it speaks: all of one
    position are in one."""
    if matches.nbytes <= OUTBOX_CHUNK_BYTES:
        if matches.num_rows:
            yield upto, matches
        return
    ordered = matches.sort_by("position")
    positions = ordered["position"].to_numpy()
    rows = max(1, ordered.num_rows * OUTBOX_CHUNK_BYTES // ordered.nbytes)
    start = 0
    while start < len(positions):
        stop = int(np.searchsorted(positions, positions[min(start + rows, len(positions)) - 1], "right"))
        yield (upto if stop == len(positions) else int(positions[stop - 1])), ordered.slice(start, stop - start)
        start = stop


def _encode(matches: pa.Table) -> bytes:
    """Not compressed: zstd makes 50 rows half as large and ten times as slow, and every edge would pay to read."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, MATCHES) as stream:
        stream.write_table(matches)
    return bytes(sink.getvalue())


def _decode(chunk: bytes) -> pa.Table:
    return pa.ipc.open_stream(chunk).read_all()
