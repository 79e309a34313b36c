"""The lake port: everything that was ever published, as a table of quads in files that any Delta reader opens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Protocol, TypeAlias

Value: TypeAlias = int | float | str | datetime
ColumnRange: TypeAlias = tuple[Value, Value] | tuple[None, None]
"""The least and the greatest value of a column, or that it has none. Bounds need not be met, but hold."""

VersionOrTime: TypeAlias = int | datetime
"""A version of the table, or a time: the version that was the newest then."""


@dataclass(frozen=True)
class DataFile:
    """A Parquet file of the table, or one that was written beside it and waits to be committed."""

    path: str
    """Relative to the table."""
    size: int
    rows: int
    ranges: Mapping[str, ColumnRange] = field(compare=False)
    """Statistics by column; nothing is known about a column that is missing."""
    zone: str | None = None
    """None while it is fresh: appended as it came, and in no zone yet."""

    @cached_property
    def first(self) -> int:
        """The lowest position in it."""
        return int(self._positions[0])

    def order(self) -> tuple[int, str]:
        """The sort key among the files of a snapshot."""
        return self.first, self.path

    @cached_property
    def last(self) -> int:
        return int(self._positions[1])

    @property
    def _positions(self) -> tuple[int, int]:
        least, greatest = self.ranges["position"]
        assert isinstance(least, int)
        assert isinstance(greatest, int)
        return least, greatest


@dataclass(frozen=True)
class CommitBatch:
    """The batch of a job that the files come from, and the position at which it ends."""

    query: str
    number: int
    position: int


@dataclass(frozen=True)
class TableChange:
    """Files in place of others. Rows only move, unless some are `lost`; `zones` is the version of the zone map that
    holds from then on, where it is another."""

    removed: tuple[DataFile, ...]
    added: tuple[DataFile, ...]
    lost: bool = False
    zones: int | None = None
    floors: Mapping[str, int] = field(default_factory=dict)
    """The newest position that retention has dropped, by stream."""


@dataclass(frozen=True)
class Snapshot:
    """The table at one version."""

    table: str
    """Where it lies."""
    version: int
    position: int
    """The position up to which it is complete."""
    removals: int
    """How many changes took rows away. Where it is the same in two snapshots, the later one has all rows of the
    earlier, and others only at positions after the earlier's `position`."""
    zones: int
    """The version of the zone map that its files follow; -1 while all space is one zone."""
    files: tuple[DataFile, ...]

    @classmethod
    def empty(cls, table: str = "") -> Snapshot:
        """The snapshot of a table before its first commit."""
        return cls(table, -1, 0, 0, -1, ())

    @cached_property
    def paths(self) -> tuple[str, ...]:
        """Absolute, in the order of `files`."""
        return tuple(f"{self.table}/{each.path}" for each in self.files)

    @cached_property
    def quads(self) -> int:
        return sum(each.rows for each in self.files)

    @cached_property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(each.size for each in self.files)


class Lake(Protocol):
    """The table. One process appends and one maintains it, at the same time; any number of readers see whole commits
    only."""

    def commit(self, batch: CommitBatch, files: Sequence[DataFile]) -> bool:
        """Add the files in one transaction, durable on return. False, and nothing done, for a batch that was
        committed before: a batch that is replayed is not stored twice."""

    def replace(self, change: TableChange) -> None:
        """Change the table in one transaction, durable on return. Files that are removed stay on the disk, for
        readers of older versions. Raises Conflict where another change came in between; nothing is done then."""

    def files(self, at: VersionOrTime | None = None) -> Snapshot:
        """The table as it is now, or as it was; version -1 and no files before the first commit. Raises NotFound for
        what is no version, or no longer one."""


class LakeReader(Protocol):
    """The table for those who only look into it."""

    def files(self, at: VersionOrTime | None = None) -> Snapshot:
        """As the lake's."""


class RetentionAwareLake(LakeReader, Protocol):
    """The table for those who must know what it kept no longer."""

    def floor(self, stream: str | None = None) -> int:
        """The newest position of an event of a stream, or of any, that retention has dropped; START if there is none.
        Erased events do not count."""
