"""Incremental reading of lake snapshots, and the relations that compiled queries read.

Rows only come at later positions, and files that replace others hold the same rows. So only rows after the last
position are new, until rows were removed from the table: then everything begins anew.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from triplewire.storage.lake.data_files import QUADS, parquet_relation
from triplewire.storage.lake.ports import Snapshot

PORTION_QUADS: Final = 50_000
"""Quads of small files that are indexed at once: a query that arrives meanwhile waits for that."""


@dataclass(frozen=True)
class SnapshotPortion:
    """The rows of some files after a position."""

    paths: Sequence[str]
    after: int
    rows: int
    """An upper bound: all rows of the files."""

    @property
    def relation(self) -> str:
        return f"(FROM {parquet_relation(self.paths)} WHERE position > {self.after})"


class SnapshotProgress:
    """The progress of an incremental view, a portion at a time.

    The portions of a snapshot are fixed when its first one is requested, so that no row comes twice if the files change
    meanwhile.
    """

    def __init__(self, portion_quads: int = PORTION_QUADS) -> None:
        self._portion_quads = portion_quads
        self.position = -1
        self._removals: int | None = None
        self._version = -1
        self._target: Snapshot | None = None
        self._remaining: list[SnapshotPortion] = []

    @property
    def is_new(self) -> bool:
        """Whether nothing has been added or requested."""
        return self._removals is None

    @property
    def is_whole(self) -> bool:
        """Whether the target snapshot is complete."""
        return self._target is None

    @property
    def removals(self) -> int:
        return self._removals or 0

    def follows(self, snapshot: Snapshot) -> bool:
        """Whether the snapshot has all rows that were added. If not, the view must be reset."""
        known = self._target.position if self._target is not None else self.position
        return self._removals in (None, snapshot.removals) and known <= snapshot.position

    def holds(self, snapshot: Snapshot) -> bool:
        """Whether the view has exactly the rows of the snapshot. Unknown, and so false, for older versions."""
        whole = self._target is None and self.position == snapshot.position
        return whole and self._removals == snapshot.removals and snapshot.version >= self._version

    def missing(self, snapshot: Snapshot) -> Sequence[SnapshotPortion]:
        """Return the portions still to be added, perhaps those of an earlier snapshot first."""
        if self._target is None:
            self._removals, self._version = snapshot.removals, max(self._version, snapshot.version)
            if snapshot.position > self.position:
                self._target, self._remaining = snapshot, self._portions(snapshot)
                self._settle()
        return self._remaining

    def mark_done(self, portion: SnapshotPortion) -> None:
        self._remaining.remove(portion)
        self._settle()

    def restore(self, position: int, removals: int) -> None:
        """Begin after a position up to which another process has counted."""
        self.position, self._removals = position, removals

    def _portions(self, snapshot: Snapshot) -> list[SnapshotPortion]:
        """Group small files: each portion is joined with the whole view."""
        portions = list[SnapshotPortion]()
        for path, file in zip(snapshot.paths, snapshot.files, strict=True):
            if file.last <= self.position:
                continue
            if portions and portions[-1].rows + file.rows <= self._portion_quads:
                last = portions[-1]
                portions[-1] = SnapshotPortion((*last.paths, path), self.position, last.rows + file.rows)
            else:
                portions.append(SnapshotPortion((path,), self.position, file.rows))
        return portions

    def _settle(self) -> None:
        if self._target is not None and not self._remaining:
            self.position, self._target = self._target.position, None


class IncrementalView(ABC):
    """A view of the lake that grows with it, up to a position."""

    def __init__(self, portion_quads: int = PORTION_QUADS) -> None:
        self._portion_quads = portion_quads
        self.reset()

    def reset(self) -> None:
        """Begin again from nothing."""
        self._progress = SnapshotProgress(self._portion_quads)

    def holds(self, snapshot: Snapshot) -> bool:
        return self._progress.holds(snapshot)

    def missing(self, snapshot: Snapshot) -> Sequence[SnapshotPortion]:
        """Return the portions still to be added; resets the view if rows were removed."""
        if not self._progress.follows(snapshot):
            self.reset()
        return self._progress.missing(snapshot)

    @abstractmethod
    def add(self, portion: SnapshotPortion) -> None:
        """Add the first missing portion."""

    def finish(self) -> None:  # noqa: B027 - most views need nothing
        """Complete the view when nothing is missing."""


TIME_COLUMNS = ("object_time", "time", "received")
"""The columns that hold instants, read as times in UTC."""

READ_COLUMNS = tuple(name for name in QUADS.names if name != "extensions")
"""The columns of quads that queries read."""

HEADERS = "position, graph, stream, source, application, time, received"
EVENTS = f"SELECT {HEADERS} FROM quads WHERE quad = 0"
"""The headers of events, each from its first quad."""
