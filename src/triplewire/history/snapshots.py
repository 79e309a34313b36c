"""Incremental reading of lake snapshots, and the relations that compiled queries read.

Rows only come at later positions, and files that replace others hold the same rows. So only rows after the last
position are new, until rows were removed from the table: then everything begins anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from triplewire.storage.lake.data_files import QUADS, parquet_relation
from triplewire.storage.lake.ports import Snapshot

PORTION_QUADS: Final = 50_000
"""Quads of small files that are counted and copied at once: a query that comes meanwhile waits for that."""


# Rows only ever come at later positions, and files that take the place of others hold the same rows. So after a
# position only what lies behind it is new, until rows were taken away from the table: then everything begins anew.


@dataclass(frozen=True)
class SnapshotPortion:
    """The rows of some files behind a position."""

    paths: Sequence[str]
    after: int
    rows: int
    """Of the files, at most."""

    @property
    def relation(self) -> str:
        """In SQL."""
        return f"(FROM {parquet_relation(self.paths)} WHERE position > {self.after})"


class SnapshotProgress:
    """A portion at a time. What of a snapshot is yet to come is fixed when its first portion is asked for, so that no
    row comes twice if the files change meanwhile."""

    def __init__(self) -> None:
        self.upto = -1
        self._removals: int | None = None
        self._version = -1
        self._aim: Snapshot | None = None
        self._rest: list[SnapshotPortion] = []

    @property
    def is_new(self) -> bool:
        """Has nothing been taken in, or asked for?"""
        return self._removals is None

    @property
    def is_whole(self) -> bool:
        """Is nothing missing of what was aimed at?"""
        return self._aim is None

    @property
    def removals(self) -> int:
        return self._removals or 0

    def follows(self, snapshot: Snapshot) -> bool:
        """Has it all of what was taken in? If not, everything must begin anew."""
        known = self._aim.upto if self._aim is not None else self.upto
        return self._removals in (None, snapshot.removals) and known <= snapshot.upto

    def holds(self, snapshot: Snapshot) -> bool:
        """Is what was taken in all of it, and nothing else? Nobody knows of an older version what it is by now."""
        whole = self._aim is None and self.upto == snapshot.upto
        return whole and self._removals == snapshot.removals and snapshot.version >= self._version

    def missing(self, snapshot: Snapshot) -> Sequence[SnapshotPortion]:
        """What is yet to come, of a snapshot that follows what there is; perhaps that of an earlier one at first."""
        if self._aim is None:
            self._removals, self._version = snapshot.removals, max(self._version, snapshot.version)
            if snapshot.upto > self.upto:
                self._aim, self._rest = snapshot, self._portions(snapshot)
                self._settle()
        return self._rest

    def took(self, portion: SnapshotPortion) -> None:
        self._rest.remove(portion)
        self._settle()

    def restore(self, upto: int, removals: int) -> None:
        """All up to the position was taken in before."""
        self.upto, self._removals = upto, removals

    def _portions(self, snapshot: Snapshot) -> list[SnapshotPortion]:
        """Small files go together: what is taken in is joined with all that there is, each time."""
        made = list[SnapshotPortion]()
        for path, file in zip(snapshot.paths, snapshot.files, strict=True):
            if file.last <= self.upto:
                continue
            if made and made[-1].rows + file.rows <= PORTION_QUADS:
                made[-1] = SnapshotPortion((*made[-1].paths, path), self.upto, made[-1].rows + file.rows)
            else:
                made.append(SnapshotPortion((path,), self.upto, file.rows))
        return made

    def _settle(self) -> None:
        if self._aim is not None and not self._rest:
            self.upto, self._aim = self._aim.upto, None


class IncrementalView(Protocol):
    """Something that is kept of the lake."""

    def begin(self) -> None:
        """From nothing."""

    def missing(self, snapshot: Snapshot) -> Sequence[SnapshotPortion]:
        """What is yet to be taken in."""

    def take(self, portion: SnapshotPortion) -> None:
        """Take in the first of these."""

    def finish(self) -> None:
        """Make of it what is asked for, when nothing is missing."""


# Views: the relations that compiled queries read, in words that both engines understand.

TIME_COLUMNS = ("object_time", "time", "received")
"""The columns that hold instants, which are read as times in UTC."""

READ_COLUMNS = tuple(name for name in QUADS.names if name != "extensions")
"""The columns of quads that queries read."""

HEADERS = "position, graph, stream, source, application, time, received"
EVENTS = f"SELECT {HEADERS} FROM quads WHERE quad = 0"
"""The headers of events: its first quad stands for each."""
