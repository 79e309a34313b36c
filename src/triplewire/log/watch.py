"""Watches: whether a file was written, at the price of a few microseconds."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from triplewire import sqlite


class Watch:
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
            self._connection = sqlite.connect(self._path, mode="rw")
        return self._connection
