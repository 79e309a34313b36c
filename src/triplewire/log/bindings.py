"""Bindings: leaves and volumes of streams in a SQLite file, written with the events that they hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from sqlite3 import Connection
from typing import Any

import orjson

from triplewire.log.leaves import Arrival, Leaf, Volume, grown

SCHEMA = {
    # The leaf of a stream that is not full yet stands in its row: each publication changes one row of one table.
    "streams": """
        CREATE TABLE streams (
            stream TEXT PRIMARY KEY, events INTEGER NOT NULL, size INTEGER NOT NULL, since INTEGER NOT NULL,
            until INTEGER NOT NULL, closed INTEGER NOT NULL, rough INTEGER NOT NULL, open TEXT
        ) WITHOUT ROWID""",
    "leaves": """
        CREATE TABLE leaves (
            stream TEXT NOT NULL, number INTEGER NOT NULL, leaf TEXT NOT NULL, PRIMARY KEY (stream, number)
        ) WITHOUT ROWID""",
}

_COLUMNS = "stream, events, size, since, until, closed, rough, open"
_VOLUMES = f"SELECT {_COLUMNS} FROM streams WHERE stream > ? ORDER BY stream LIMIT ?"
_VOLUME = f"SELECT {_COLUMNS} FROM streams WHERE stream = ?"
_GROW = f"INSERT OR REPLACE INTO streams ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_CLOSE = "INSERT INTO leaves (stream, number, leaf) VALUES (?, ?, ?)"
_LEAVES = """SELECT number, leaf FROM leaves
    WHERE stream = ? AND number IN (SELECT value FROM json_each(?)) ORDER BY number"""


def bind(connection: Connection, arrivals: Mapping[str, Sequence[Arrival]], received: int) -> None:
    """Note what came to each stream, in the transaction that stores it."""
    for stream, come in arrivals.items():
        made, full = grown(volume(connection, stream) or Volume(stream), come, received)
        rest = made.rough, None if made.open is None else _text(made.open)
        connection.execute(_GROW, (stream, made.events, made.size, made.since, made.until, made.closed, *rest))
        connection.executemany(_CLOSE, [(stream, leaf.number, _text(leaf)) for leaf in full])


def volumes(connection: Connection, after: str, limit: int | None) -> list[Volume]:
    return [_volume(*row) for row in connection.execute(_VOLUMES, (after, -1 if limit is None else limit)).fetchall()]


def volume(connection: Connection, stream: str) -> Volume | None:
    row = connection.execute(_VOLUME, (stream,)).fetchone()
    return None if row is None else _volume(*row)


def leaves(connection: Connection, stream: str, numbers: Sequence[int]) -> list[Leaf]:
    rows = connection.execute(_LEAVES, (stream, orjson.dumps(list(numbers)).decode())).fetchall()
    return [_leaf(number, text) for number, text in rows]


def _volume(stream: str, events: int, size: int, since: int, until: int, closed: int, *rest: Any) -> Volume:  # noqa: ANN401
    rough, open = rest
    return Volume(stream, events, size, since, until, closed, None if open is None else _leaf(closed, open), rough)


def _text(leaf: Leaf) -> str:
    return orjson.dumps([leaf.since, leaf.until, leaf.events, leaf.size, leaf.stretches]).decode()


def _leaf(number: int, text: str) -> Leaf:
    since, until, events, size, stretches = _loaded(text)
    return Leaf(number, tuple((first, last) for first, last in stretches), since, until, events, size)


def _loaded(text: str) -> list[Any]:
    found: list[Any] = orjson.loads(text)
    return found
