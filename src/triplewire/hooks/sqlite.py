"""The books of hooks in an SQLite file of their own, beside the log: nobody who publishes waits for them."""

from __future__ import annotations

import fcntl
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from triplewire import sqlite
from triplewire.errors import Unavailable
from triplewire.hooks.ports import Letter, Place
from triplewire.model import START

SCHEMA = {
    "places": """
        CREATE TABLE places (
            hook TEXT PRIMARY KEY, position INTEGER NOT NULL, failures INTEGER NOT NULL, reason TEXT NOT NULL
        ) WITHOUT ROWID""",
    "letters": """
        CREATE TABLE letters (
            hook TEXT NOT NULL, position INTEGER NOT NULL, attempts INTEGER NOT NULL, reason TEXT NOT NULL,
            status INTEGER, parked INTEGER NOT NULL, again INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (hook, position)
        ) WITHOUT ROWID""",
    "letters_again": "CREATE INDEX letters_again ON letters (hook, position) WHERE again",
    "secrets": "CREATE TABLE secrets (hook TEXT PRIMARY KEY, secret TEXT NOT NULL) WITHOUT ROWID",
}

_PLACE = "INSERT OR REPLACE INTO places (hook, position, failures, reason) VALUES (?, ?, ?, ?)"
_PARK = "INSERT OR REPLACE INTO letters (hook, position, attempts, reason, status, parked) VALUES (?, ?, ?, ?, ?, ?)"
_PLACES = """SELECT hook, max(position), max(failures), max(reason), sum(parked) FROM (
        SELECT hook, position, failures, reason, 0 AS parked FROM places
        UNION ALL SELECT hook, 0, 0, '', count(*) FROM letters GROUP BY hook
    ) GROUP BY hook"""
_LETTERS = """SELECT hook, position, attempts, reason, status, parked FROM letters
    WHERE hook = ? AND position > ? ORDER BY position LIMIT ?"""
_REMOVE = "DELETE FROM letters WHERE hook = ? AND position = ?"
_ASK_ALL = "UPDATE letters SET again = 1 WHERE hook = ?"
_ASK = "UPDATE letters SET again = 1 WHERE hook = ? AND position = ?"
_ASKED = "SELECT hook, position FROM letters INDEXED BY letters_again WHERE again ORDER BY hook, position"
_DONE = "UPDATE letters SET again = 0 WHERE hook = ? AND position = ?"
_KEEP = "INSERT OR REPLACE INTO secrets (hook, secret) VALUES (?, ?)"
_SECRET = "SELECT secret FROM secrets WHERE hook = ?"
_FORGET = tuple(f"DELETE FROM {table} WHERE hook = ?" for table in ("places", "letters", "secrets"))


class SqliteLedger:
    """A file that any number of processes write and read; a lock beside it says whose turn it is. The system lets go of
    the lock when a process ends, in whatever way, so no clock has a say in it."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Before SQLite makes files beside it, which nobody else may read either.
        path.touch(mode=0o600)
        self._database = sqlite.Database(path, SCHEMA)
        self._lock_path = path.with_suffix(".lock")
        self._lock: TextIO | None = None

    def note(self, places: Mapping[str, Place], parked: Sequence[Letter] = ()) -> None:
        rows = [(each.hook, each.position, each.attempts, each.reason, each.status, each.parked) for each in parked]
        with self._database.writing() as connection:
            noted = [(hook, each.position, each.failures, each.reason) for hook, each in places.items()]
            connection.executemany(_PLACE, noted)
            connection.executemany(_PARK, rows)

    def places(self) -> Mapping[str, Place]:
        with self._database.reading() as connection:
            found = connection.execute(_PLACES).fetchall()
        return {hook: Place(*place) for hook, *place in found}

    def letters(self, hook: str, after: int = START, limit: int = 1) -> Sequence[Letter]:
        with self._database.reading() as connection:
            return [Letter(*row) for row in connection.execute(_LETTERS, (hook, after, limit)).fetchall()]

    def remove(self, hook: str, positions: Sequence[int]) -> None:
        self._each(_REMOVE, hook, positions)

    def ask(self, hook: str, positions: Sequence[int] | None = None) -> int:
        with self._database.writing() as connection:
            if positions is None:
                return connection.execute(_ASK_ALL, (hook,)).rowcount
            return sum(connection.execute(_ASK, (hook, each)).rowcount for each in positions)

    def asked(self) -> Mapping[str, Sequence[int]]:
        found: dict[str, list[int]] = {}
        with self._database.reading() as connection:
            for hook, position in connection.execute(_ASKED).fetchall():
                found.setdefault(hook, []).append(position)
        return found

    def done(self, hook: str, positions: Sequence[int]) -> None:
        self._each(_DONE, hook, positions)

    def keep(self, secrets: Mapping[str, str]) -> None:
        with self._database.writing() as connection:
            connection.executemany(_KEEP, secrets.items())

    def secret(self, hook: str) -> str | None:
        with self._database.reading() as connection:
            found = connection.execute(_SECRET, (hook,)).fetchone()
        return None if found is None else found[0]

    def forget(self, hook: str) -> None:
        with self._database.writing() as connection:
            for statement in _FORGET:
                connection.execute(statement, (hook,))
        # Where somebody is in the way, what was written over goes with the next one that is forgotten.
        with suppress(Unavailable):
            self._database.scrub()

    def take(self) -> bool:
        lock = self._lock_path.open("w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            return False
        self._lock = lock
        return True

    def leave(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def close(self) -> None:
        self.leave()
        self._database.close()

    def _each(self, statement: str, hook: str, positions: Sequence[int]) -> None:
        with self._database.writing() as connection:
            connection.executemany(statement, [(hook, each) for each in positions])
