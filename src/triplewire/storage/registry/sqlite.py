"""The SQLite twin of the registry, in the log's own file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from triplewire.model import START
from triplewire.model.clock import Clock
from triplewire.storage import sqlite
from triplewire.storage.registry.ports import RegistryChange

SCHEMA = sqlite.POSITIONS | {
    "changes": """
        CREATE TABLE changes (
            position INTEGER PRIMARY KEY, kind TEXT NOT NULL, key TEXT NOT NULL, value TEXT, made INTEGER NOT NULL
        )""",
    # Where the newest change of each thing that is there lies.
    "things": """
        CREATE TABLE things (
            kind TEXT NOT NULL, key TEXT NOT NULL, position INTEGER NOT NULL, PRIMARY KEY (kind, key)
        ) WITHOUT ROWID""",
    "things_by_position": "CREATE INDEX things_by_position ON things (kind, position)",
}

_COLUMNS = "position, kind, key, value"
_CHANGE = f"INSERT INTO changes ({_COLUMNS}, made) VALUES (?, ?, ?, ?, ?)"
_SET = "INSERT OR REPLACE INTO things (kind, key, position) VALUES (?, ?, ?)"
_REMOVE = "DELETE FROM things WHERE kind = ? AND key = ?"
_GET = f"SELECT {_COLUMNS} FROM changes NATURAL JOIN things WHERE kind = ? AND key = ?"
# One goes by position, the other by key, however many things there are: a plus keeps the column out of the choice.
_LIST = f"""SELECT {_COLUMNS} FROM changes NATURAL JOIN things INDEXED BY things_by_position
    WHERE things.kind = ? AND things.position > ? ORDER BY things.position LIMIT ?"""
_LIST_BELOW = f"""SELECT {_COLUMNS} FROM changes NATURAL JOIN
    (SELECT kind, key, position FROM things WHERE kind = ? AND key < ? AND +position > ? ORDER BY +position LIMIT ?)
    ORDER BY position"""
_CHANGES = f"SELECT {_COLUMNS} FROM changes WHERE position > ? AND position <= ? ORDER BY position LIMIT ?"

_BLOT = "UPDATE changes SET value = ? WHERE position = ?"


class SqliteRegistry:
    """The registry in a file that any number of processes change and read at once."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._clock = clock
        self._database = sqlite.Database(path, SCHEMA)

    def put(self, entries: Sequence[tuple[str, str, Mapping[str, Any] | None]]) -> list[int]:
        if not entries:
            return []
        made = self._clock.now()
        with self._database.writing() as connection:
            positions = sqlite.take_positions(connection, len(entries))
            for position, (kind, key, value) in zip(positions, entries, strict=True):
                connection.execute(_CHANGE, (position, kind, key, _format_value(value), made))
                if value is None:
                    connection.execute(_REMOVE, (kind, key))
                else:
                    connection.execute(_SET, (kind, key, position))
        return list(positions)

    def get(self, kind: str, key: str) -> RegistryChange | None:
        return next(iter(self._select(_GET, kind, key)), None)

    def list(
        self, kind: str, *, after: int = START, below: str | None = None, limit: int | None = None
    ) -> Sequence[RegistryChange]:
        most = -1 if limit is None else limit
        if below is None:
            return self._select(_LIST, kind, after, most)
        return self._select(_LIST_BELOW, kind, below, after, most)

    def changes(self, after: int, through: int, most: int | None = None) -> Sequence[RegistryChange]:
        return self._select(_CHANGES, after, through, -1 if most is None else most)

    def redact(self, position: int, value: Mapping[str, Any]) -> None:
        with self._database.writing() as connection:
            connection.execute(_BLOT, (_format_value(value), position))
        self._database.scrub()

    def close(self) -> None:
        self._database.close()

    def _select(self, sql: str, *values: str | int) -> Sequence[RegistryChange]:
        with self._database.reading() as connection:
            found = connection.execute(sql, values).fetchall()
        return [
            RegistryChange(position, kind, key, None if value is None else orjson.loads(value))
            for position, kind, key, value in found
        ]


def _format_value(value: Mapping[str, Any] | None) -> str | None:
    return None if value is None else orjson.dumps(dict(value)).decode()
