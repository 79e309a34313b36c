"""SQLite files that several threads and processes write and read at once.

The log and the registry share one file and, in it, one sequence of positions. Both stand on this module, so that
everyone opens the file the same way and foreign errors are translated here, once. A `CommitWatch` tells for a few
microseconds whether any process has committed to a file.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock

from triplewire.model.errors import StorageFull, TriplewireError, Unavailable

# The log and the registry share one file and, in it, one sequence of positions. Both stand on this module, so that
# everyone opens the file the same way and foreign errors are translated here, once.

LOCK_SECONDS = 10.0
"""How long a writer waits for those of other processes. A transaction of the largest size takes under a second."""

WAL_BYTES = 64 * 1024 * 1024
"""How long the write-ahead log may get where readers leave no gap; then a writer waits for them and starts over."""

_RETRY_SECONDS = 0.005
_READERS_SECONDS = 0.25

PRAGMAS = (
    # Rows of some 600 bytes fill pages of 4 KiB well; larger pages make the commit of a single event dearer.
    "PRAGMA page_size = 4096",
    # Acknowledged means durable: the write-ahead log is synced at every commit.
    "PRAGMA synchronous = FULL",
    # Who commits past this many pages copies them into the file: 16 MiB makes that rare and keeps reading fast.
    "PRAGMA wal_autocheckpoint = 4096",
    # After a burst the write-ahead log gives its disk space back.
    f"PRAGMA journal_size_limit = {WAL_BYTES}",
    # What is deleted is overwritten with zeros, at the price of writing the pages that retention lets go once more:
    # what is erased later must not lie in pages that nobody has used since.
    "PRAGMA secure_delete = ON",
    # A file that is cut short under a memory map kills the process; without one it is an error that can be told.
    "PRAGMA mmap_size = 0",
)

POSITIONS = {"positions": "CREATE TABLE positions AS SELECT 0 AS head"}
"""The sequence of positions: one row, made with its table. It outlives every entry, so no position comes twice."""

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


class Database:
    """One file with some tables. Any thread may use it; a process that forks opens its own after the fork.

    Connections are kept and lent out, so there are as many as were ever used at the same moment.
    """

    def __init__(self, path: Path, schema: Mapping[str, str]) -> None:
        """Open the file; make it, and what is missing in it. `schema` gives the SQL of each table and index by name."""
        self.path = path
        self._idle: list[sqlite3.Connection] = []
        self._turn = Lock()
        self._wal = path.with_name(path.name + "-wal")
        self._wal_limit = WAL_BYTES
        path.parent.mkdir(parents=True, exist_ok=True)
        # Looked at before anything is locked: a reader that opens a busy file must not queue behind its writers.
        if self._missing(schema):
            with self.writing() as connection:
                for name in self._missing(schema):
                    connection.execute(schema[name])

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection to read with. What must be seen in one state is read with one statement, to its end."""
        with self._lent(_READING) as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction: durable once the block has ended; without a trace where the block or the disk fails."""
        # Threads take turns by a lock; SQLite's own waiting is polling, and is left for other processes.
        with self._lent(_WRITING) as connection, self._turn:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
            # What was committed stands, also where the disk has no room left for tidying up.
            with suppress(sqlite3.OperationalError):
                self._start_over(connection)

    def scrub(self) -> None:
        """Move everything into the file and empty the write-ahead log, in which what was overwritten would still be.
        Raises Unavailable where somebody reads or writes for too long; then try again."""
        with self._lent(_READING) as connection, self._turn:
            (busy, _, _) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy:
            raise Unavailable(f"{self.path.name}: somebody is in the way of its write-ahead log being emptied")

    def close(self) -> None:
        """Close what is not in use. Whoever closes a file last moves its write-ahead log into it."""
        while self._idle:
            self._idle.pop().close()

    @contextmanager
    def _lent(self, errors: Mapping[int, type[TriplewireError]]) -> Iterator[sqlite3.Connection]:
        """Lend a connection; raise what `errors` has for SQLite's. A fault of ours stays what it is."""
        connection = None
        try:
            connection = self._borrowed()
            yield connection
        except sqlite3.OperationalError as error:
            kind = errors.get(_family(error))
            if kind is None:
                raise
            raise kind(f"{self.path.name}: {error}") from error
        finally:
            if connection:
                self._idle.append(connection)

    def _borrowed(self) -> sqlite3.Connection:
        try:
            return self._idle.pop()
        except IndexError:
            return connect(self.path)

    def _start_over(self, connection: sqlite3.Connection) -> None:
        """Keep the write-ahead log short: SQLite goes back to its beginning only when nobody reads from it."""
        size = self._wal.stat().st_size
        if size <= self._wal_limit:
            return
        connection.execute(f"PRAGMA busy_timeout = {int(_READERS_SECONDS * 1000)}")
        (busy, _, _) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        connection.execute(f"PRAGMA busy_timeout = {int(LOCK_SECONDS * 1000)}")
        # Where a reader does not end, it is waited for again only after as much was written again.
        self._wal_limit = size + WAL_BYTES if busy else WAL_BYTES

    def _missing(self, schema: Mapping[str, str]) -> list[str]:
        with self.reading() as connection:
            present = {name for (name,) in connection.execute("SELECT name FROM sqlite_master").fetchall()}
        return [name for name in schema if name not in present]


def connect(path: Path, mode: str = "rwc") -> sqlite3.Connection:
    """A connection with our pragmas and no transactions of its own making; `mode` is that of SQLite's file URIs."""
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        uri=True,
        timeout=LOCK_SECONDS,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        for pragma in PRAGMAS:
            connection.execute(pragma)
        _keep_write_ahead_log(connection)
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _keep_write_ahead_log(connection: sqlite3.Connection) -> None:
    """Switch the file to its write-ahead log, so that readers and writers do not wait for each other.

    Processes that open a new file at the same moment collide here, and SQLite gives up at once instead of waiting.
    """
    deadline = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if _family(error) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(_RETRY_SECONDS)


def take_positions(connection: sqlite3.Connection, count: int) -> range:
    """The next `count` positions, for the transaction that the connection is in."""
    (head,) = connection.execute(_TAKE, (count,)).fetchone()
    return range(head - count + 1, head + 1)


def newest_position(connection: sqlite3.Connection) -> int:
    """The newest position that was taken; 0 before the first."""
    (newest,) = connection.execute(_HEAD).fetchone()
    return int(newest)


def _family(error: sqlite3.OperationalError) -> int:
    """The code of an error without what SQLite adds for the exact call that failed."""
    code: int = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    return code & 0xFF


# Watches: whether a file was written, at the price of a few microseconds.


class CommitWatch:
    """Tells that any process has committed to a SQLite file since it was last asked. For one thread.

    It says only that something changed, never what; a change may be told once too often, never once too seldom.
    """

    def __init__(self, path: Path) -> None:
        """The file need not be there yet. What it already holds counts as a change."""
        self._path = path
        self._connection: sqlite3.Connection | None = None
        self._version: int | None = None

    def changed(self) -> bool:
        """True if something was written since the last call. False while there is no file, or none that opens."""
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
