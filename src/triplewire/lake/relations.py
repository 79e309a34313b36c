"""Relations: files as what DuckDB reads from, and an engine that does."""

from __future__ import annotations

from collections.abc import Iterable

import duckdb


def engine() -> duckdb.DuckDBPyConnection:
    """One of its own, for one thread. Times are in UTC."""
    duck = duckdb.connect(config={"threads": 1, "autoload_known_extensions": False})
    duck.execute("SET TimeZone = 'UTC'")
    return duck


def parquet(paths: Iterable[str]) -> str:
    """Files as one relation. Paths come from the table's own log, never from a user; that a zone stands in some of
    them says nothing of their columns."""
    return f"read_parquet([{', '.join(map(quoted, paths))}], hive_partitioning = false)"


def quoted(text: str) -> str:
    """A constant in SQL."""
    return "'" + text.replace("'", "''") + "'"
