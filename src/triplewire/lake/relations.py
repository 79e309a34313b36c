"""Relations: files as what DuckDB reads from."""

from __future__ import annotations

from collections.abc import Iterable


def parquet(paths: Iterable[str]) -> str:
    """Files as one relation. Paths come from the table's own log, never from a user; that a zone stands in some of
    them says nothing of their columns."""
    return f"read_parquet([{', '.join(map(quoted, paths))}], hive_partitioning = false)"


def quoted(text: str) -> str:
    """A constant in SQL."""
    return "'" + text.replace("'", "''") + "'"
