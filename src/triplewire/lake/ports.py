"""The lake port: everything that was ever published, as a table of quads in files that any Delta reader opens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class DataFile:
    """A Parquet file that was written beside the table and waits to be committed. `path` is relative to the table."""

    path: str
    size: int
    rows: int
    first: int
    last: int
    """The lowest and the highest position in it."""


@dataclass(frozen=True)
class Batch:
    """Which batch of which query the files come from, and the position up to which it speaks."""

    query: str
    number: int
    upto: int


@dataclass(frozen=True)
class Snapshot:
    """The table at one version: the absolute paths of its files, and the position up to which it is complete."""

    version: int
    upto: int
    files: tuple[str, ...]


@dataclass(frozen=True)
class Span:
    """A file of the table, by its absolute path, and the lowest and the highest position in it."""

    path: str
    first: int
    last: int


class Lake(Protocol):
    """The table. One writer; any number of readers, each of which sees whole commits only."""

    def commit(self, batch: Batch, files: Sequence[DataFile]) -> bool:
        """Add the files in one transaction, durable on return. False, and nothing done, for a batch that was
        committed before: a batch that is replayed is not stored twice."""

    def files(self) -> Snapshot:
        """The table as it is now; version -1 and no files before the first commit."""


class Shelf(Protocol):
    """The table for those who look for positions in it."""

    def files(self) -> Snapshot:
        """The table as it is now."""

    def spans(self) -> tuple[Span, ...]:
        """Its files, in the order of their lowest positions."""
