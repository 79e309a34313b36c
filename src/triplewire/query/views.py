"""Views: the relations that compiled queries read, in words that both engines understand."""

from __future__ import annotations

from collections.abc import Iterable

TIMES = ("object_time", "time", "received")
"""The columns that hold instants, which are read as times in UTC."""

HEADERS = "position, graph, stream, source, application, time, received"
EVENTS = f"SELECT {HEADERS} FROM quads WHERE quad = 0"
"""The headers of events: its first quad stands for each."""


def parquet(paths: Iterable[str]) -> str:
    """Files as one relation of DuckDB's. Paths come from the table's own log, never from a user."""
    return f"read_parquet([{', '.join(map(quoted, paths))}], hive_partitioning = false)"


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
