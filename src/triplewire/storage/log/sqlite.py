"""The SQLite twin of the log, in a file that it shares with the registry.

Events are stored in blocks, one for each transaction, or several where that is large: they are read as they were
written, as columns. Segments and volumes of streams are written in the transaction that stores their events.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from pathlib import Path
from sqlite3 import Connection
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from triplewire.model import ENTRIES, START, Erasure
from triplewire.model.clock import Clock
from triplewire.model.erasure import LOSSES, blank_erased, compute_losses, find_affected
from triplewire.storage import sqlite
from triplewire.storage.log import appending, ports

TRIM_EVENTS: Final = 1_000
"""Log entries that one transaction drops. Appends wait for it: some 10 ms with events of 1 kB."""

LOG_BLOCK_EVENTS: Final = 1_000
"""Entries of one block: whoever needs one of them reads the block."""

LOG_BLOCK_BYTES: Final = 1024 * 1024
"""Bytes of the entries of one block, unless a single one has more."""

ERASE_EVENTS: Final = 10_000
"""Positions of the log that are looked through at once for what is to be erased: under 100 ms with events of 1 kB, and
what of them goes is one transaction, for which appends wait."""


SEGMENT_SCHEMA = {
    # The segment of a stream that is not full yet is in its row: each publication changes one row of one table.
    "streams": """
        CREATE TABLE streams (
            stream TEXT PRIMARY KEY, events INTEGER NOT NULL, size INTEGER NOT NULL, since INTEGER NOT NULL,
            until INTEGER NOT NULL, closed INTEGER NOT NULL, open TEXT, unordered INTEGER NOT NULL
        ) WITHOUT ROWID""",
    "segments": """
        CREATE TABLE segments (
            stream TEXT NOT NULL, number INTEGER NOT NULL, segment TEXT NOT NULL, PRIMARY KEY (stream, number)
        ) WITHOUT ROWID""",
}

_SEGMENT_COLUMNS = "stream, events, size, since, until, closed, open, unordered"
_SELECT_VOLUMES = f"SELECT {_SEGMENT_COLUMNS} FROM streams WHERE stream > ? ORDER BY stream LIMIT ?"
_SELECT_VOLUME = f"SELECT {_SEGMENT_COLUMNS} FROM streams WHERE stream = ?"
_EXTEND_VOLUME = f"INSERT OR REPLACE INTO streams ({_SEGMENT_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_CLOSE_SEGMENT = "INSERT INTO segments (stream, number, segment) VALUES (?, ?, ?)"
_SEGMENTS = """SELECT number, segment FROM segments
    WHERE stream = ? AND number IN (SELECT value FROM json_each(?)) ORDER BY number"""


def _write_segments(
    connection: Connection,
    arrivals: Mapping[str, Sequence[ports.AppendedEvent]],
    received: int,
    limits: ports.SegmentLimits,
) -> None:
    """Extend the volumes of streams, in the transaction that stores their events."""
    for stream, events in arrivals.items():
        before = _read_volume(connection, stream) or ports.StreamVolume(stream)
        volume, full = ports.extend_volume(before, events, received, limits)
        *counts, open, unordered = vars(volume).values()
        connection.execute(_EXTEND_VOLUME, (*counts, open and _format_segment(open), unordered))
        connection.executemany(_CLOSE_SEGMENT, [(stream, each.number, _format_segment(each)) for each in full])


def _read_volume(connection: Connection, stream: str) -> ports.StreamVolume | None:
    row = connection.execute(_SELECT_VOLUME, (stream,)).fetchone()
    return None if row is None else _parse_volume(row)


def _parse_volume(row: tuple[Any, ...]) -> ports.StreamVolume:
    stream, events, size, since, until, closed, open, unordered = row
    current = None if open is None else _parse_segment(closed, open)
    return ports.StreamVolume(stream, events, size, since, until, closed, current, unordered)


def _format_segment(segment: ports.Segment) -> str:
    return orjson.dumps([*vars(segment).values()][1:]).decode()


def _parse_segment(number: int, text: str) -> ports.Segment:
    ranges, *rest = orjson.loads(text)
    return ports.Segment(number, tuple((first, last) for first, last in ranges), *rest)


_BLOCKS = {
    # Entries at successive positions, received at one time, as an Arrow record batch. `start` is the number of bytes of
    # all entries before: where the newest n bytes begin needs no sum. `entries` comes last, so that what retention
    # looks at lies before any overflow page.
    "blocks": """
        CREATE TABLE blocks (
            first INTEGER PRIMARY KEY, last INTEGER NOT NULL, received INTEGER NOT NULL, start INTEGER NOT NULL,
            size INTEGER NOT NULL, entries BLOB NOT NULL
        )""",
    # Of publications that may come again; they go with the last of their events.
    "keys": """
        CREATE TABLE keys (key TEXT PRIMARY KEY, first INTEGER NOT NULL, following INTEGER NOT NULL) WITHOUT ROWID""",
    # Of each stream, and under no name of all, the newest event that was trimmed away: by it those who come too late
    # are told.
    "trims": "CREATE TABLE trims (stream TEXT PRIMARY KEY, position INTEGER NOT NULL) WITHOUT ROWID",
    "keys_following": "CREATE INDEX keys_following ON keys (following)",
    # Of events that may come again: eight bytes for each position from `first` on, as `names` has them.
    "names": "CREATE TABLE names (first INTEGER PRIMARY KEY, hashes BLOB NOT NULL)",
}

SCHEMA = sqlite.POSITIONS | SEGMENT_SCHEMA | _BLOCKS

_COLUMNS = "first, last, received, start, size, entries"
_INSERT = f"INSERT INTO blocks ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)"
_UPDATE = "UPDATE blocks SET entries = ? WHERE first = ?"
# The block that holds a position, or the last one before it, and all that follow.
_READ = f"""SELECT {_COLUMNS} FROM blocks
    WHERE first >= (SELECT coalesce(max(first), 0) FROM blocks WHERE first <= ?) AND first <= ? ORDER BY first"""
_NEWEST = f"SELECT {_COLUMNS} FROM blocks ORDER BY first DESC"
_AT = f"SELECT {_COLUMNS} FROM blocks WHERE first <= ? ORDER BY first DESC LIMIT 1"
_TOTAL = "SELECT start + size FROM blocks ORDER BY first DESC LIMIT 1"
_END_AT = "SELECT start + size FROM blocks WHERE first <= ? ORDER BY first DESC LIMIT 1"
_OLDEST = f"SELECT {_COLUMNS} FROM blocks WHERE first < ? ORDER BY first LIMIT 1"
_DROP = "DELETE FROM blocks WHERE first = ?"
_TRIMMED = """INSERT INTO trims (stream, position) VALUES (?, ?)
    ON CONFLICT (stream) DO UPDATE SET position = excluded.position"""
_FLOOR = "SELECT position FROM trims WHERE stream = ?"
_KNOWN = "SELECT key, first, following FROM keys WHERE key IN (SELECT value FROM json_each(?))"
_KEEP = "INSERT INTO keys (key, first, following) VALUES (?, ?, ?)"
_NAMES = "SELECT first, hashes FROM names WHERE first > ? ORDER BY first"
_NAMED_AT = "SELECT first, hashes FROM names WHERE first <= ? ORDER BY first DESC LIMIT 1"
_NAME = "INSERT OR REPLACE INTO names (first, hashes) VALUES (?, ?)"
_UNNAME = "DELETE FROM names WHERE first <= ?1 AND first + length(hashes) / 8 - 1 <= ?1"
_FORGET = "DELETE FROM keys WHERE following <= ?"
_BEGIN = "SELECT first FROM blocks ORDER BY first LIMIT 1"


@dataclass(frozen=True)
class LogBlock:
    """A row of `blocks`. An entry that was erased is a row without an event in it: positions that nobody takes for
    trimmed away."""

    first: int
    last: int
    received: int
    start: int
    size: int
    data: bytes

    @cached_property
    def entries(self) -> pa.RecordBatch:
        return pa.ipc.read_record_batch(pa.py_buffer(self.data), ENTRIES)

    @property
    def starts(self) -> npt.NDArray[np.int64]:
        """The bytes of all entries before each."""
        return self.start + _offsets(self.entries)[:-1]

    def between(self, after: int, through: int) -> pa.RecordBatch:
        """The entries at positions p with `after < p <= through` that were not erased."""
        begin, end = max(after + 1, self.first), min(through, self.last) + 1
        whole = begin == self.first and end > self.last
        return _drop_erased(self.entries if whole else self.entries.slice(begin - self.first, max(0, end - begin)))

    def at(self, positions: npt.NDArray[np.int64]) -> pa.RecordBatch:
        """The entries at some of its positions that were not erased."""
        return _drop_erased(self.entries.take(pa.array(positions - self.first)))

    def rest(self, dropped: int) -> LogBlock:
        """The block without its first entries."""
        start = int(self.starts[dropped])
        kept, size = self.entries.slice(dropped), self.size - (start - self.start)
        return LogBlock(self.first + dropped, self.last, self.received, start, size, _serialize(kept))


def _serialize(entries: pa.RecordBatch) -> bytes:
    data: bytes = entries.serialize().to_pybytes()
    return data


def _drop_erased(entries: pa.RecordBatch) -> pa.RecordBatch:
    # Offsets of an erased event's id are equal: to compare them takes less than to look at the ids.
    empty = pc.equal(pc.binary_length(entries["event"]), 0)
    return entries.filter(pc.invert(empty)) if pc.any(empty).as_py() else entries


def _offsets(entries: pa.RecordBatch) -> npt.NDArray[np.int64]:
    """The running total of bytes of text and extensions, before each entry and after the last."""
    extensions = pc.fill_null(pc.binary_length(entries["extensions"]), 0)
    sizes = pc.add(pc.binary_length(entries["text"]), extensions).to_numpy(zero_copy_only=False)
    return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])


def _as_table(batches: Sequence[pa.RecordBatch]) -> pa.Table:
    return pa.Table.from_batches(batches, ENTRIES).combine_chunks() if batches else appending.empty_entries()


def _make_blocks(entries: pa.RecordBatch, received: int, start: int) -> Iterator[LogBlock]:
    """Yield blocks of entries, each bounded in entries and bytes, unless a single entry has more."""
    offsets, first, begin = _offsets(entries), int(entries["position"][0].as_py()), 0
    while begin < entries.num_rows:
        full = int(np.searchsorted(offsets, offsets[begin] + LOG_BLOCK_BYTES, "right")) - 1
        end = min(max(full, begin + 1), begin + LOG_BLOCK_EVENTS, entries.num_rows)
        part = entries if end - begin == entries.num_rows else entries.slice(begin, end - begin)
        size = int(offsets[end] - offsets[begin])
        yield LogBlock(first + begin, first + end - 1, received, start + int(offsets[begin]), size, _serialize(part))
        begin = end


def _insert(connection: Connection, block: LogBlock) -> None:
    row = (block.first, block.last, block.received, block.start, block.size, block.data)
    connection.execute(_INSERT, row)


def _in_order(positions: Sequence[int]) -> npt.NDArray[np.int64]:
    """The positions in ascending order, each once."""
    ordered = np.sort(np.array(positions, np.int64))
    return ordered[np.append(True, ordered[1:] != ordered[:-1])] if len(ordered) else ordered


def _blocks_at(
    connection: Connection, positions: npt.NDArray[np.int64]
) -> Iterator[tuple[LogBlock, npt.NDArray[np.int64]]]:
    """Yield the blocks that have some of the positions, which are in order, each once, with these positions."""
    begin = 0
    while begin < len(positions):
        row = connection.execute(_AT, (int(positions[begin]),)).fetchone()
        end = int(np.searchsorted(positions, row[1], "right")) if row else begin
        if end > begin:
            yield LogBlock(*row), positions[begin:end]
        begin = max(end, begin + 1)


class SqliteLog:
    """Events in a file that any number of processes append to and read at once."""

    def __init__(
        self,
        path: Path,
        clock: Clock,
        *,
        segments: ports.SegmentLimits = ports.SEGMENT_LIMITS,
        lookup: int = ports.LOOKUP_POSITIONS,
    ) -> None:
        """`find` looks through the newest `lookup` positions."""
        self._clock = clock
        self._segments = segments
        self._lookup = lookup
        self._database = sqlite.Database(path, SCHEMA)
        self._names = appending.DeduplicationIndex()
        """Only whoever is in a transaction that writes has them."""

    def append(self, publications: Sequence[ports.Publication]) -> list[Sequence[int]]:
        hashes = [appending.hash_events(each) for each in publications]
        if not any(publication.events for publication in publications):
            return appending.plan_append(publications, hashes, appending.KnownEvents()).positions(self.head() + 1)
        with self._database.writing() as connection:
            planned = appending.plan_append(publications, hashes, self._known(connection, publications, hashes))
            taken = sqlite.take_positions(connection, planned.count)
            # Within the transaction, so that what several processes append is received in the order of positions.
            received = self._clock.now()
            if planned.count:
                entries = appending.entries_batch(planned.fresh, taken, received)
                (start,) = connection.execute(_TOTAL).fetchone() or (0,)
                for block in _make_blocks(entries, received, start):
                    _insert(connection, block)
                _write_segments(connection, _arrivals(entries), received, self._segments)
            _store_keys_and_hashes(connection, planned, taken)
        return planned.positions(taken.start)

    def _known(
        self, connection: Connection, publications: Sequence[ports.Publication], hashes: Sequence[appending.Hashes]
    ) -> appending.KnownEvents:
        given = np.concatenate(hashes)
        events = self._events(connection, given[given != appending.NO_HASH]) if given.any() else {}
        return appending.KnownEvents(_select_key_ranges(connection, appending.publication_keys(publications)), events)

    def _events(self, connection: Connection, asked: appending.Hashes) -> dict[appending.EventKey, tuple[int, str]]:
        """Known events by the hashes of their keys, with positions and texts."""
        self._learn(connection)
        likely = _with_hashes(connection, _in_order(self._names.find(asked)))
        if not len(likely):
            return {}
        found = [block.at(positions) for block, positions in _blocks_at(connection, likely)]
        columns = _as_table(found).select(["stream", "event", "position", "text"]).columns
        rows = zip(*(column.to_pylist() for column in columns), strict=True)
        return {(stream, id): (position, text) for stream, id, position, text in rows}

    def _learn(self, connection: Connection) -> None:
        """Names that this and other processes have added since."""
        self._names.add(connection.execute(_NAMES, (self._names.position,)).fetchall())
        (oldest,) = connection.execute(_BEGIN).fetchone() or (0,)
        self._names.forget(oldest)

    def read(self, after: int, through: int, limit: int) -> pa.Table:
        batches, count = list[pa.RecordBatch](), 0
        with self._database.reading() as connection, closing(connection.execute(_READ, (after + 1, through))) as rows:
            while count < limit and (row := rows.fetchone()):
                batches.append(LogBlock(*row).between(after, through))
                count += batches[-1].num_rows
        return _as_table(batches).slice(0, limit)

    def entries(self, positions: Sequence[int]) -> pa.Table:
        with self._database.reading() as connection:
            found = _blocks_at(connection, _in_order(positions))
            return _as_table([block.at(wanted) for block, wanted in found])

    def find(self, event: str, stream: str | None = None) -> int | None:
        with self._database.reading() as connection:
            oldest = sqlite.newest_position(connection) - self._lookup
            with closing(connection.execute(_NEWEST)) as rows:
                for block in takewhile(lambda block: block.last > oldest, (LogBlock(*row) for row in rows)):
                    entries = block.between(oldest, block.last)
                    found = pc.equal(entries["event"], event)
                    if stream is not None:
                        found = pc.and_(found, pc.equal(entries["stream"], stream))
                    if (newest := pc.max(entries["position"].filter(found)).as_py()) is not None:
                        return int(newest)
        return None

    def page_end(self, after: int, through: int, size: int) -> int:
        with self._database.reading() as connection:
            with closing(connection.execute(_READ, (after + 1, through))) as rows:
                found = next((block for block in (LogBlock(*row) for row in rows) if block.last > after), None)
            if found is None:
                return through
            begin = int(found.starts[max(0, after + 1 - found.first)])
            (end,) = connection.execute(_END_AT, (through,)).fetchone()
            if end - begin <= max(size, 1):
                return through
            with closing(connection.execute(_READ, (found.first, through))) as rows:
                for block in (LogBlock(*row) for row in rows):
                    if block.start + block.size - begin >= max(size, 1):
                        beyond = np.searchsorted(block.starts, begin + max(size, 1))
                        if beyond < len(block.starts):
                            return min(block.first + int(beyond) - 1, through)
        return through

    def head(self) -> int:
        with self._database.reading() as connection:
            return sqlite.newest_position(connection)

    def trim(self, retention: ports.LogRetention, before: int) -> int:
        oldest = -1 if retention.age is None else self._clock.now() - int(retention.age * 1_000_000)
        dropped = 0
        while step := self._trim_step(oldest, retention.size, before):
            dropped += step
        return dropped

    def begin(self) -> int:
        with self._database.reading() as connection:
            head = sqlite.newest_position(connection)
            (oldest,) = connection.execute(_BEGIN).fetchone() or (head + 1,)
        return int(oldest)

    def floor(self, stream: str | None = None) -> int:
        with self._database.reading() as connection:
            (position,) = connection.execute(_FLOOR, (stream or "",)).fetchone() or (START,)
        return int(position)

    def volumes(self, after: str = "", limit: int | None = None) -> list[ports.StreamVolume]:
        with self._database.reading() as connection:
            rows = connection.execute(_SELECT_VOLUMES, (after, -1 if limit is None else limit)).fetchall()
        return [_parse_volume(row) for row in rows]

    def volume(self, stream: str) -> ports.StreamVolume | None:
        with self._database.reading() as connection:
            return _read_volume(connection, stream)

    def segments(self, stream: str, numbers: Sequence[int]) -> list[ports.Segment]:
        with self._database.reading() as connection:
            rows = connection.execute(_SEGMENTS, (stream, orjson.dumps(list(numbers)).decode())).fetchall()
        return [_parse_segment(number, text) for number, text in rows]

    def losses(self, erasure: Erasure) -> pa.Table:
        return pa.concat_tables(
            [LOSSES.empty_table(), *(compute_losses(part, erasure) for part in self._earlier(erasure))]
        )

    def erase(self, erasure: Erasure) -> None:
        for part in self._earlier(erasure):
            gone = part["position"].take(find_affected(part, erasure)).to_numpy()
            if not len(gone):
                continue
            with self._database.writing() as connection:
                for block, positions in _blocks_at(connection, gone):
                    connection.execute(_UPDATE, (_serialize(_erase(block.entries, erasure)), block.first))
                    for position in positions.tolist():
                        _forget_hash(connection, position)
        self._database.scrub()

    def close(self) -> None:
        self._database.close()

    def _earlier(self, erasure: Erasure) -> Iterator[pa.Table]:
        """Entries before an erasure, some positions at a time: nobody waits for the whole."""
        last = min(erasure.position - 1, self.head())
        for after in range(self.begin() - 1, last, ERASE_EVENTS):
            yield self.read(after, min(after + ERASE_EVENTS, last), ERASE_EVENTS)

    def _trim_step(self, oldest: int, size: int | None, before: int) -> int:
        """Drop a bounded number of entries, so that appends wait for milliseconds and not for the whole of a trim."""
        began = self._clock.ticks()
        with self._database.reading() as connection:
            (total,) = connection.execute(_TOTAL).fetchone() or (0,)
            first = total - size if size is not None else -1
            block = _oldest_block(connection, before)
        if block is None or not _count_expired(block, oldest, first, before):
            return 0
        dropped = 0
        with self._database.writing() as connection:
            while dropped < TRIM_EVENTS and (block := _oldest_block(connection, before)):
                count = _count_expired(block, oldest, first, before)
                if not count:
                    break
                _drop_entries(connection, block, count)
                dropped += count
        # SQLite gives its write lock to whoever asks first: as long again without it lets the others have their turn.
        time.sleep(self._clock.ticks() - began)
        return dropped


def _oldest_block(connection: Connection, before: int) -> LogBlock | None:
    row = connection.execute(_OLDEST, (before,)).fetchone()
    return None if row is None else LogBlock(*row)


def _count_expired(block: LogBlock, oldest: int, first: int, before: int) -> int:
    """Count the entries at the beginning of a block that were received earlier than `oldest`, or begin before the byte
    `first`; those at positions below `before`."""
    if block.received < oldest:
        expired = block.last + 1 - block.first
    elif block.start >= first:
        return 0
    else:
        expired = int(np.searchsorted(block.starts, first))
    return min(expired, before - block.first)


def _drop_entries(connection: Connection, block: LogBlock, count: int) -> None:
    """Drop the first entries of the oldest block."""
    last = block.first + count - 1
    dropped = block.between(block.first - 1, last)
    newest = dict(zip(dropped["stream"].to_pylist(), dropped["position"].to_pylist(), strict=True))
    if newest:
        connection.executemany(_TRIMMED, [*newest.items(), ("", max(newest.values()))])
    connection.execute(_DROP, (block.first,))
    if last < block.last:
        _insert(connection, block.rest(count))
    connection.execute(_FORGET, (last + 1,))
    connection.execute(_UNNAME, (last,))


def _erase(entries: pa.RecordBatch, erasure: Erasure) -> pa.RecordBatch:
    """What an erasure leaves of the entries of a block: all rows, and those that go whole say nothing any more."""
    left = blank_erased(pa.Table.from_batches([entries]), [erasure])
    gone = pc.equal(left["event"], "")
    for name, nothing in (("stream", ""), ("syntax", ""), ("time", 0)):
        values = pc.if_else(gone, pa.scalar(nothing, ENTRIES.field(name).type), left[name])
        left = left.set_column(ENTRIES.get_field_index(name), ENTRIES.field(name), values)
    (batch,) = left.combine_chunks().to_batches()
    return batch


def _arrivals(entries: pa.RecordBatch) -> dict[str, Sequence[ports.AppendedEvent]]:
    """The positions and sizes of new entries, by stream."""
    sizes, streams = np.diff(_offsets(entries)), entries["stream"].dictionary_encode()
    positions, numbers = entries["position"].to_numpy(), streams.indices.to_numpy()
    parts = ((name, np.flatnonzero(numbers == at)) for at, name in enumerate(streams.dictionary.to_pylist()))
    return {name: list(zip(positions[rows].tolist(), sizes[rows].tolist(), strict=True)) for name, rows in parts}


def _select_key_ranges(connection: Connection, keys: Sequence[str]) -> dict[str, range]:
    rows = connection.execute(_KNOWN, (orjson.dumps(keys).decode(),)).fetchall() if keys else ()
    return {key: range(first, following) for key, first, following in rows}


def _store_keys_and_hashes(connection: Connection, planned: appending.AppendPlan, taken: range) -> None:
    keys = [(key, taken.start + places.start, taken.start + places.stop) for key, places in planned.keys.items()]
    connection.executemany(_KEEP, keys)
    if hashes := planned.pack_hashes():
        connection.execute(_NAME, (taken.start, hashes))


def _forget_hash(connection: Connection, position: int) -> None:
    """Forget by which name an entry is known: what comes by it is new."""
    first, data = connection.execute(_NAMED_AT, (position,)).fetchone() or (0, b"")
    hashes = appending.unpack_hashes(data).copy()
    if position - first < len(hashes):
        hashes[position - first] = appending.NO_HASH
        connection.execute(_NAME, (first, hashes.tobytes()))


def _with_hashes(connection: Connection, positions: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return those of the positions, which are in order, whose hash was not forgotten."""
    kept, begin = list[npt.NDArray[np.int64]](), 0
    while begin < len(positions):
        first, data = connection.execute(_NAMED_AT, (int(positions[begin]),)).fetchone() or (0, b"")
        hashes = appending.unpack_hashes(data)
        end = int(np.searchsorted(positions, first + len(hashes)))
        part = positions[begin:end]
        kept.append(part[hashes[part - first] != appending.NO_HASH])
        begin = max(end, begin + 1)
    return np.concatenate([np.zeros(0, np.int64), *kept])
