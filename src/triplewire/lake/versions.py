"""Versions: what was committed when."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError


@dataclass(frozen=True)
class Version:
    """A commit of the table, in the words of its log."""

    version: int
    at: datetime
    work: str


def versions(table: Path, limit: int) -> list[Version]:
    """The newest, the newest of them first."""
    try:
        found = DeltaTable(table)
    except TableNotFoundError:
        return []
    commits = found.history(limit)[:limit]
    newest = found.version()
    return [
        Version(newest - back, datetime.fromtimestamp(each["timestamp"] / 1_000, UTC), each["operation"].lower())
        for back, each in enumerate(commits)
    ]
