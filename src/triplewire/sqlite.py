"""SQLite files that several threads and processes write and read at once.

The log and the registry share one file and, in it, one sequence of positions. Both stand on this module, so that
everyone opens the file the same way and foreign errors are translated here, once.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock

from triplewire.errors import StorageFull, TriplewireError, Unavailable

LOCK_SECONDS = 10.0
"""How long a writer waits for those of other processes. A transaction of the largest size takes under a second."""

_RETRY_SECONDS = 0.005

PRAGMAS = (
    # Rows of some 600 bytes fill pages of 4 KiB well; larger pages make the commit of a single event dearer.
    "PRAGMA page_size = 4096",
    # Acknowledged means durable: the write-ahead log is synced at every commit.
    "PRAGMA synchronous = FULL",
    # Who commits past this many pages copies them into the file: 16 MiB makes that rare and keeps reading fast.
    "PRAGMA wal_autocheckpoint = 4096",
    # After a burst the write-ahead log gives its disk space back.
    "PRAGMA journal_size_limit = 67108864",
    # A file that is cut short under a memory map kills the process; without one it is an error that can be told.
    "PRAGMA mmap_size = 0",
)

POSITIONS = {"positions": "CREATE TABLE positions AS SELECT 0 AS head"}
"""The sequence of positions: one row, made with its table. It outlives every entry, so no position comes twice."""

_TAKE = "UPDATE positions SET head = head + ? RETURNING head"
_HEAD = "SELECT head FROM positions"

_AWAY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR}
_FULL = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR}


class Database:
    """One file with some tables. Any thread may use it; a process that forks opens its own after the fork.

    Connections are kept and lent out, so there are as many as were ever used at the same moment.
    """

    def __init__(self, path: Path, schema: Mapping[str, str]) -> None:
        """Open the file; make it, and what is missing in it. `schema` gives the SQL of each table and index by name."""
        self.path = path
        self._idle: list[sqlite3.Connection] = []
        self._turn = Lock()
        path.parent.mkdir(parents=True, exist_ok=True)
        # Looked at before anything is locked: a reader that opens a busy file must not queue behind its writers.
        if self._missing(schema):
            with self.writing() as connection:
                for name in self._missing(schema):
                    connection.execute(schema[name])

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection to read with. What must be seen in one state is read with one statement, to its end."""
        with self._translated(_AWAY), self._lent() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction: durable once the block has ended; without a trace where the block or the disk fails."""
        # Threads take turns by a lock; SQLite's own waiting is polling, and is left for other processes.
        with self._translated(_AWAY - _FULL), self._lent() as connection, self._turn:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    def close(self) -> None:
        """Close what is not in use. Whoever closes a file last moves its write-ahead log into it."""
        while self._idle:
            self._idle.pop().close()

    @contextmanager
    def _lent(self) -> Iterator[sqlite3.Connection]:
        connection = None
        with suppress(IndexError):
            connection = self._idle.pop()
        connection = connection or connect(self.path)
        try:
            yield connection
        finally:
            self._idle.append(connection)

    @contextmanager
    def _translated(self, away: set[int]) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            raise _translation(error, self.path, away) from error

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


def take(connection: sqlite3.Connection, count: int) -> range:
    """The next `count` positions, for the transaction that the connection is in."""
    (head,) = connection.execute(_TAKE, (count,)).fetchone()
    return range(head - count + 1, head + 1)


def head(connection: sqlite3.Connection) -> int:
    """The newest position that was taken; 0 before the first."""
    (newest,) = connection.execute(_HEAD).fetchone()
    return int(newest)


def _translation(error: sqlite3.OperationalError, path: Path, away: set[int]) -> Exception:
    """Our error for SQLite's; whatever is a fault of ours stays as it is."""
    kinds: list[tuple[set[int], type[TriplewireError], str]] = [
        (away, Unavailable, "does not answer"),
        (_FULL, StorageFull, "takes no more"),
    ]
    for codes, kind, what in kinds:
        if _family(error) in codes:
            return kind(f"{path.name} {what}: {error}")
    return error


def _family(error: sqlite3.OperationalError) -> int:
    """The code of an error without what SQLite adds for the exact call that failed."""
    code: int = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    return code & 0xFF
