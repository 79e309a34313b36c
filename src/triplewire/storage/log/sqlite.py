"""The SQLite twin of the log, in a file that it shares with the registry.

Segments and volumes of streams are written in the transaction that stores their events.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import takewhile
from pathlib import Path
from sqlite3 import Connection
from typing import Any, Final

import orjson
import pyarrow as pa

from triplewire.model import START, Erasure, ErasureScope
from triplewire.model.clock import Clock
from triplewire.model.erasure import LOSSES, apply_erasures, compute_losses, find_affected
from triplewire.model.terms import iri
from triplewire.storage import sqlite
from triplewire.storage.log import appending, ports

TRIM_EVENTS: Final = 1_000
"""Log entries that one transaction drops. Appends wait for it: some 10 ms with events of 1 kB."""

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


_EVENTS = {
    # `start` is the running total of bytes before the entry: where the newest n bytes begin needs no sum.
    # `text` comes last, so that what retention looks at lies before any overflow page.
    "events": """
        CREATE TABLE events (
            position INTEGER PRIMARY KEY, stream TEXT NOT NULL, event TEXT NOT NULL, source TEXT, application TEXT,
            time INTEGER NOT NULL, received INTEGER NOT NULL, syntax TEXT NOT NULL, extensions TEXT,
            start INTEGER NOT NULL, text TEXT NOT NULL
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

SCHEMA = sqlite.POSITIONS | SEGMENT_SCHEMA | _EVENTS

_COLUMNS = "position, stream, event, text, source, application, time, received, syntax, extensions"
_INSERT = f"INSERT INTO events ({_COLUMNS}, start) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_READ = f"SELECT {_COLUMNS} FROM events WHERE position > ? AND position <= ? AND event <> '' ORDER BY position LIMIT ?"
_AT = f"""SELECT {_COLUMNS} FROM events
    WHERE position IN (SELECT value FROM json_each(?)) AND event <> '' ORDER BY position"""
_FIND = """SELECT position FROM events
    WHERE position > :oldest AND event = :event AND (:stream IS NULL OR stream = :stream)
    ORDER BY position DESC LIMIT 1"""
_TOTAL = """SELECT start + length(CAST(text AS BLOB)) + coalesce(length(CAST(extensions AS BLOB)), 0)
    FROM events ORDER BY position DESC LIMIT 1"""
_START = "SELECT start FROM events WHERE position > ? AND position <= ? ORDER BY position LIMIT 1"
_START_AT = "SELECT start FROM events WHERE position <= ? ORDER BY position DESC LIMIT 1"
_OLDEST = "SELECT position, received, start FROM events WHERE position < ? ORDER BY position LIMIT ?"
_DROP = "DELETE FROM events WHERE position <= ?"
_TRIMMED = """INSERT INTO trims (stream, position)
    SELECT stream, max(position) FROM events WHERE position <= :through AND event <> '' GROUP BY stream
    UNION ALL SELECT '', max(position) FROM events WHERE position <= :through AND event <> '' HAVING count(*)
    ON CONFLICT (stream) DO UPDATE SET position = excluded.position"""
_FLOOR = "SELECT position FROM trims WHERE stream = ?"
_KNOWN = "SELECT key, first, following FROM keys WHERE key IN (SELECT value FROM json_each(?))"
_KEEP = "INSERT INTO keys (key, first, following) VALUES (?, ?, ?)"
_NAMES = "SELECT first, hashes FROM names WHERE first > ? ORDER BY first"
_NAMED_AT = "SELECT first, hashes FROM names WHERE first <= ? ORDER BY first DESC LIMIT 1"
_NAME = "INSERT OR REPLACE INTO names (first, hashes) VALUES (?, ?)"
_UNNAME = "DELETE FROM names WHERE first <= ?1 AND first + length(hashes) / 8 - 1 <= ?1"
_TEXTS = """SELECT stream, event, position, text FROM events
    WHERE position IN (SELECT value FROM json_each(?)) ORDER BY position"""
_FORGET = "DELETE FROM keys WHERE following <= ?"
_BEGIN = "SELECT position FROM events ORDER BY position LIMIT 1"

_PART = f"SELECT {_COLUMNS} FROM events WHERE position > :after AND position <= :through AND"
_NAMED = {
    ErasureScope.EVENT: f"{_PART} event = :name",
    ErasureScope.SOURCE: f"{_PART} source = :name",
    ErasureScope.SUBJECT: f"{_PART} (event = :name OR instr(text, :term))",
}
# A row without a text stays where an event was: positions that nobody takes for trimmed away, and the total of bytes.
_ERASE = """UPDATE events SET stream = '', event = '', source = NULL, application = NULL, time = 0, syntax = '',
    extensions = NULL, text = '' WHERE position = ?"""
_LEAVE = "UPDATE events SET text = ? WHERE position = ?"

_PAGE = 500
"""Rows that are tuples at the same time while a table is made of them."""


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
        if not any(publication.events for publication in publications):
            return appending.plan_append(publications, appending.KnownEvents()).positions(self.head() + 1)
        arrivals: dict[str, list[ports.AppendedEvent]] = {}
        with self._database.writing() as connection:
            hashes = {name: appending.hash_key(name) for name in appending.collect_event_keys(publications)}
            planned = appending.plan_append(publications, self._known(connection, publications, hashes))
            taken = sqlite.take_positions(connection, len(planned.fresh))
            (start,) = connection.execute(_TOTAL).fetchone() or (0,)
            # Within the transaction, so that what several processes append is received in the order of positions.
            received = self._clock.now()
            rows = appending.entry_rows(planned.fresh, iter(taken), received)
            connection.executemany(_INSERT, _measure_rows(rows, start, arrivals))
            _write_segments(connection, arrivals, received, self._segments)
            _store_keys_and_hashes(connection, planned, taken, hashes)
        return planned.positions(taken.start)

    def _known(
        self,
        connection: Connection,
        publications: Sequence[ports.Publication],
        hashes: Mapping[appending.EventKey, int],
    ) -> appending.KnownEvents:
        events = self._events(connection, list(hashes.values())) if hashes else {}
        return appending.KnownEvents(_select_key_ranges(connection, appending.publication_keys(publications)), events)

    def _events(self, connection: Connection, asked: Sequence[int]) -> dict[appending.EventKey, tuple[int, str]]:
        """Known events by the hashes of their keys, with positions and texts."""
        self._learn(connection)
        likely = [at for at in self._names.find(asked) if _has_hash(connection, at)]
        rows = connection.execute(_TEXTS, (orjson.dumps(likely).decode(),)).fetchall() if likely else ()
        return {(stream, id): (position, text) for stream, id, position, text in rows}

    def _learn(self, connection: Connection) -> None:
        """Names that this and other processes have added since."""
        self._names.add(connection.execute(_NAMES, (self._names.position,)).fetchall())
        (oldest,) = connection.execute(_BEGIN).fetchone() or (0,)
        self._names.forget(oldest)

    def read(self, after: int, through: int, limit: int) -> pa.Table:
        return self._select(_READ, after, through, limit)

    def entries(self, positions: Sequence[int]) -> pa.Table:
        return self._select(_AT, orjson.dumps(list(positions)).decode())

    def find(self, event: str, stream: str | None = None) -> int | None:
        with self._database.reading() as connection:
            oldest = sqlite.newest_position(connection) - self._lookup
            found = connection.execute(_FIND, {"oldest": oldest, "event": event, "stream": stream}).fetchone()
        return None if found is None else int(found[0])

    def page_end(self, after: int, through: int, size: int) -> int:
        with self._database.reading() as connection:
            (begin,) = connection.execute(_START, (after, through)).fetchone() or (None,)
            # Entries begin in the order of their positions, so that a few look-ups find the last one.
            within, beyond = after, through + 1
            while begin is not None and beyond - within > 1:
                middle = through if beyond > through else (within + beyond) // 2
                (start,) = connection.execute(_START_AT, (middle,)).fetchone() or (begin,)
                within, beyond = (middle, beyond) if start - begin < max(size, 1) else (within, middle)
        return through if begin is None else within

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
            [LOSSES.empty_table(), *(compute_losses(part, erasure) for part in self._named(erasure))]
        )

    def erase(self, erasure: Erasure) -> None:
        for part in self._named(erasure):
            texts = apply_erasures(part, [erasure])
            rests = dict(zip(texts["position"].to_pylist(), texts["text"].to_pylist(), strict=True))
            gone = part["position"].take(find_affected(part, erasure)).to_pylist()
            with self._database.writing() as connection:
                for position in gone:
                    if (rest := rests.get(position)) is None:
                        connection.execute(_ERASE, (position,))
                    else:
                        connection.execute(_LEAVE, (rest, position))
                    _forget_hash(connection, position)
        self._database.scrub()

    def close(self) -> None:
        self._database.close()

    def _named(self, erasure: Erasure) -> Iterator[pa.Table]:
        """Entries in which the name of what is erased occurs, some positions at a time: nobody waits for the whole."""
        asked = {"name": erasure.name, "term": iri(erasure.name)}
        last = min(erasure.position - 1, self.head())
        for after in range(self.begin() - 1, last, ERASE_EVENTS):
            through = min(after + ERASE_EVENTS, last)
            with self._database.reading() as connection:
                cursor = connection.execute(_NAMED[erasure.scope], {**asked, "after": after, "through": through})
                yield appending.entries_table(iter(partial(cursor.fetchmany, _PAGE), []))

    def _select(self, sql: str, *values: int | str) -> pa.Table:
        with self._database.reading() as connection:
            cursor = connection.execute(sql, values)
            return appending.entries_table(iter(partial(cursor.fetchmany, _PAGE), []))

    def _trim_step(self, oldest: int, size: int | None, before: int) -> int:
        """Drop a bounded number of entries, so that appends wait for milliseconds and not for the whole of a trim."""
        began = self._clock.ticks()
        with self._database.reading() as connection:
            (total,) = connection.execute(_TOTAL).fetchone() or (0,)
            first = total - size if size is not None else -1
            rows = connection.execute(_OLDEST, (before, TRIM_EVENTS))
            gone = [row[0] for row in takewhile(lambda row: row[1] < oldest or row[2] < first, rows)]
            rows.close()
        if not gone:
            return 0
        with self._database.writing() as connection:
            connection.execute(_TRIMMED, {"through": gone[-1]})
            dropped = connection.execute(_DROP, (gone[-1],)).rowcount
            connection.execute(_FORGET, (gone[-1] + 1,))
            connection.execute(_UNNAME, (gone[-1],))
        # SQLite gives its write lock to whoever asks first: as long again without it lets the others have their turn.
        time.sleep(self._clock.ticks() - began)
        return dropped


def _select_key_ranges(connection: Connection, keys: Sequence[str]) -> dict[str, range]:
    rows = connection.execute(_KNOWN, (orjson.dumps(keys).decode(),)).fetchall() if keys else ()
    return {key: range(first, following) for key, first, following in rows}


def _store_keys_and_hashes(
    connection: Connection, planned: appending.AppendPlan, taken: range, hashes: Mapping[appending.EventKey, int]
) -> None:
    keys = [(key, taken.start + places.start, taken.start + places.stop) for key, places in planned.keys.items()]
    connection.executemany(_KEEP, keys)
    if any(planned.names):
        connection.execute(_NAME, (taken.start, appending.pack_hashes(planned.names, hashes)))


def _forget_hash(connection: Connection, position: int) -> None:
    """Forget by which name an entry is known: what comes by it is new."""
    first, data = connection.execute(_NAMED_AT, (position,)).fetchone() or (0, b"")
    hashes = appending.unpack_hashes(data).copy()
    if position - first < len(hashes):
        hashes[position - first] = appending.NO_HASH
        connection.execute(_NAME, (first, hashes.tobytes()))


def _has_hash(connection: Connection, position: int) -> bool:
    first, data = connection.execute(_NAMED_AT, (position,)).fetchone() or (0, b"")
    hashes = appending.unpack_hashes(data)
    return position - first < len(hashes) and hashes[position - first] != appending.NO_HASH


def _measure_rows(
    rows: Iterable[appending.EntryRow], start: int, arrivals: dict[str, list[ports.AppendedEvent]]
) -> Iterator[tuple[object, ...]]:
    """Rows with the offset of each."""
    for row in rows:
        yield (*row, start)
        size = appending.entry_size(row)
        arrivals.setdefault(row[1], []).append((row[0], size))
        start += size
