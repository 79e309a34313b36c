"""Intakes: how far the lake has been taken in, whatever became of its files since.

Rows only ever come at later positions, and files that take the place of others hold the same rows. So after a position
only what lies behind it is new, until rows were taken away from the table: then everything begins anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from triplewire.config import limits
from triplewire.lake.ports import Snapshot
from triplewire.lake.relations import parquet


@dataclass(frozen=True)
class Portion:
    """The rows of some files behind a position."""

    paths: Sequence[str]
    after: int
    rows: int
    """Of the files, at most."""

    @property
    def relation(self) -> str:
        """In SQL."""
        return f"(FROM {parquet(self.paths)} WHERE position > {self.after})"


class Intake:
    """A portion at a time. What of a snapshot is yet to come is fixed when its first portion is asked for, so that no
    row comes twice if the files change meanwhile."""

    def __init__(self) -> None:
        self.upto = -1
        self._removals: int | None = None
        self._version = -1
        self._aim: Snapshot | None = None
        self._rest: list[Portion] = []

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

    def missing(self, snapshot: Snapshot) -> Sequence[Portion]:
        """What is yet to come, of a snapshot that follows what there is; perhaps that of an earlier one at first."""
        if self._aim is None:
            self._removals, self._version = snapshot.removals, max(self._version, snapshot.version)
            if snapshot.upto > self.upto:
                self._aim, self._rest = snapshot, self._portions(snapshot)
                self._settle()
        return self._rest

    def took(self, portion: Portion) -> None:
        self._rest.remove(portion)
        self._settle()

    def restore(self, upto: int, removals: int) -> None:
        """All up to the position was taken in before."""
        self.upto, self._removals = upto, removals

    def _portions(self, snapshot: Snapshot) -> list[Portion]:
        """Small files go together: what is taken in is joined with all that there is, each time."""
        made = list[Portion]()
        for path, file in zip(snapshot.paths, snapshot.files, strict=True):
            if file.last <= self.upto:
                continue
            if made and made[-1].rows + file.rows <= limits.PORTION_QUADS:
                made[-1] = Portion((*made[-1].paths, path), self.upto, made[-1].rows + file.rows)
            else:
                made.append(Portion((path,), self.upto, file.rows))
        return made

    def _settle(self) -> None:
        if self._aim is not None and not self._rest:
            self.upto, self._aim = self._aim.upto, None


class Part(Protocol):
    """Something that is kept of the lake."""

    def begin(self) -> None:
        """From nothing."""

    def missing(self, snapshot: Snapshot) -> Sequence[Portion]:
        """What is yet to be taken in."""

    def take(self, portion: Portion) -> None:
        """Take in the first of these."""

    def finish(self) -> None:
        """Make of it what is asked for, when nothing is missing."""
