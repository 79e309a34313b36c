"""SQLite files that several threads and processes write and read at once.

The log and the registry share one file and, in it, one sequence of positions. All stores open their files by this
module, and errors of SQLite are translated here, once. A `CommitWatch` detects commits of any process, and
every commit sends a signal.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from weakref import WeakValueDictionary

from triplewire.model.errors import StorageFull, TriplewireError, Unavailable
from triplewire.storage.signals import SignalSender, signal_folder

LOCK_SECONDS = 10.0
"""How long a writer waits for others. A transaction of the largest size takes under a second."""

WAL_BYTES = 64 * 1024 * 1024
"""Length of the write-ahead log at which a writer waits for readers and starts it over."""

_READERS_SECONDS = 0.25
"""How long such a writer waits for readers."""

_RETRY_SECONDS = 0.005

PRAGMAS = (
    # Rows of some 600 bytes fill pages of 4 KiB well; larger pages make the commit of a single event dearer.
    "PRAGMA page_size = 4096",
    # A commit past this many pages copies them into the file: 16 MiB makes that rare and keeps reading fast.
    "PRAGMA wal_autocheckpoint = 4096",
    # After a burst the write-ahead log gives its disk space back.
    f"PRAGMA journal_size_limit = {WAL_BYTES}",
    # Deleted content is overwritten with zeros, at the price of writing the pages that retention frees once more:
    # content that is erased later must not be left in pages that were not used since.
    "PRAGMA secure_delete = ON",
    # A file that is truncated under a memory map kills the process; without a map it is an error.
    "PRAGMA mmap_size = 0",
)

_write_locks: WeakValueDictionary[Path, _WriteLock] = WeakValueDictionary()
"""One lock per file for all writers of this process: SQLite's own waiting is polling, with pauses of up to 0.1 s."""

# A lock that a thread of the parent held would never be released in the child.
os.register_at_fork(after_in_child=_write_locks.clear)


POSITIONS = {"positions": "CREATE TABLE positions AS SELECT 0 AS head"}
"""The sequence of positions: one row, made with its table. It outlives every entry, so no position is used twice."""

_TAKE = "UPDATE positions SET head = head + ? RETURNING head"
_HEAD = "SELECT head FROM positions"

_READING: Mapping[int, type[TriplewireError]] = {
    sqlite3.SQLITE_BUSY: Unavailable,
    sqlite3.SQLITE_LOCKED: Unavailable,
    sqlite3.SQLITE_CANTOPEN: Unavailable,
    sqlite3.SQLITE_READONLY: Unavailable,
    sqlite3.SQLITE_IOERR: Unavailable,
    sqlite3.SQLITE_FULL: StorageFull,
}
# A quota and a limit on file sizes refuse a write as an I/O error and not as a full disk.
_WRITING = {**_READING, sqlite3.SQLITE_IOERR: StorageFull}


class _WriteLock:
    """A lock that can be referenced weakly."""

    def __init__(self) -> None:
        self.lock = Lock()


class Database:
    """One file with some tables. Any thread may use it; a process that forks opens its own after the fork.

    Connections are pooled, so there are as many as were ever used at the same moment.
    """

    def __init__(
        self,
        path: Path,
        schema: Mapping[str, str],
        *,
        lock_seconds: float = LOCK_SECONDS,
        wal_bytes: int = WAL_BYTES,
        readers_seconds: float = _READERS_SECONDS,
        durable: bool = True,
    ) -> None:
        """Open the file; create it, and the tables and indexes of `schema` (SQL by name) that are missing in it.

        Commits that are not `durable` survive the end of any process; a power failure may take the newest of them.
        """
        self.path = path
        self._idle: list[sqlite3.Connection] = []
        self._write_lock = _write_locks.setdefault(path.absolute(), _WriteLock())
        self._lock_seconds = lock_seconds
        self._durable = durable
        self._readers_seconds = readers_seconds
        self._signals = SignalSender(signal_folder(path))
        self._wal = path.with_name(path.name + "-wal")
        self._wal_bytes = self._wal_limit = wal_bytes
        path.parent.mkdir(parents=True, exist_ok=True)
        # Checked before anything is locked: a reader that opens a busy file must not queue behind its writers.
        if self._missing(schema):
            with self.writing() as connection:
                for name in self._missing(schema):
                    connection.execute(schema[name])

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Lend a connection to read with. Rows that must be consistent are read with one statement, to its end."""
        with self._lend(_READING) as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Run one transaction: durable once the block has ended, rolled back where the block or the disk fails."""
        with self._lend(_WRITING) as connection, self._hold_write_lock():
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
            self._signals.send()
            # The transaction is committed, even if the disk has no room left for a checkpoint.
            with suppress(sqlite3.OperationalError):
                self._shorten_wal(connection)

    def scrub(self) -> None:
        """Move everything into the file and empty the write-ahead log, which may still hold overwritten content.
        Raises Unavailable if a reader or writer takes too long; then try again."""
        with self._lend(_READING) as connection, self._hold_write_lock():
            (busy, _, _) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy:
            raise Unavailable(f"{self.path.name}: the write-ahead log cannot be emptied while it is read or written")

    def sync(self) -> None:
        """Make all commits durable. Raises StorageFull."""
        with self._lend(_WRITING) as connection:
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()

    def close(self) -> None:
        """Close idle connections. The last process to close a file moves its write-ahead log into it."""
        while self._idle:
            self._idle.pop().close()

    @contextmanager
    def _hold_write_lock(self) -> Iterator[None]:
        if not self._write_lock.lock.acquire(timeout=self._lock_seconds):
            raise Unavailable(f"{self.path.name}: database is locked")
        try:
            yield
        finally:
            self._write_lock.lock.release()

    @contextmanager
    def _lend(self, errors: Mapping[int, type[TriplewireError]]) -> Iterator[sqlite3.Connection]:
        """Lend a connection, and translate errors of SQLite by `errors`; others, such as wrong SQL, stay."""
        connection = None
        try:
            connection = self._take_connection()
            yield connection
        except sqlite3.OperationalError as error:
            kind = errors.get(_family(error))
            if kind is None:
                raise
            raise kind(f"{self.path.name}: {error}") from error
        finally:
            if connection:
                self._idle.append(connection)

    def _take_connection(self) -> sqlite3.Connection:
        try:
            return self._idle.pop()
        except IndexError:
            return connect(self.path, lock_seconds=self._lock_seconds, durable=self._durable)

    def _shorten_wal(self, connection: sqlite3.Connection) -> None:
        """Keep the write-ahead log short: SQLite starts it over only when no reader uses it."""
        size = self._wal.stat().st_size
        if size <= self._wal_limit:
            return
        connection.execute(f"PRAGMA busy_timeout = {int(self._readers_seconds * 1000)}")
        (busy, _, _) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        connection.execute(f"PRAGMA busy_timeout = {int(self._lock_seconds * 1000)}")
        # If a reader does not end, wait for it again only after as much was written again.
        self._wal_limit = size + self._wal_bytes if busy else self._wal_bytes

    def _missing(self, schema: Mapping[str, str]) -> list[str]:
        with self.reading() as connection:
            present = {name for (name,) in connection.execute("SELECT name FROM sqlite_master").fetchall()}
        return [name for name in schema if name not in present]


def connect(
    path: Path, mode: str = "rwc", *, lock_seconds: float = LOCK_SECONDS, durable: bool = True
) -> sqlite3.Connection:
    """Open a connection with our pragmas and without implicit transactions; `mode` is that of SQLite's file URIs. A
    durable one syncs the write-ahead log at every commit."""
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        uri=True,
        timeout=lock_seconds,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        for pragma in PRAGMAS:
            connection.execute(pragma)
        connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
        _enable_wal(connection, lock_seconds)
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _enable_wal(connection: sqlite3.Connection, lock_seconds: float) -> None:
    """Switch the file to a write-ahead log, so that readers and writers do not wait for each other.

    Processes that open a new file at the same moment collide here, and SQLite gives up at once instead of waiting.
    """
    deadline = time.monotonic() + lock_seconds
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if _family(error) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(_RETRY_SECONDS)


def take_positions(connection: sqlite3.Connection, count: int) -> range:
    """Take the next `count` positions, in the transaction of the connection."""
    (head,) = connection.execute(_TAKE, (count,)).fetchone()
    return range(head - count + 1, head + 1)


def newest_position(connection: sqlite3.Connection) -> int:
    """The newest position that was taken; 0 before the first."""
    (newest,) = connection.execute(_HEAD).fetchone()
    return int(newest)


def _family(error: sqlite3.OperationalError) -> int:
    """The primary code of an error, without the extension that SQLite adds for the call that failed."""
    code: int = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    return code & 0xFF


class CommitWatch:
    """Detects commits of any process to a SQLite file, for a few microseconds. For one thread.

    A change may be reported once too often, never once too seldom.
    """

    def __init__(self, path: Path) -> None:
        """The file need not exist yet. Content that it already has counts as a change."""
        self._path = path
        self._connection: sqlite3.Connection | None = None
        self._version: int | None = None

    def changed(self) -> bool:
        """Whether there was a commit since the last call. False while the file does not exist or does not open."""
        try:
            (version,) = self._open().execute("PRAGMA data_version").fetchone()
        except sqlite3.OperationalError:
            return False
        before, self._version = self._version, version
        return bool(version != before)

    def close(self) -> None:
        if self._connection:
            self._connection.close()
            self._connection = None

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = connect(self._path, mode="rw")
        return self._connection
