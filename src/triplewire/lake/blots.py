"""Blots: data files that are written anew in their own place, without some of their rows.

A file keeps its name, so that every version of the table that names it has lost these rows at once. It keeps its size,
too, where it can: readers of Delta look for the end of a file where its entry in the log says.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from triplewire.config.files import replacing
from triplewire.lake.parquet import SMALL, write_parquet
from triplewire.lake.relations import engine
from triplewire.model import Erasure, Scope
from triplewire.model.terms import iri

MARK = "triplewire.erased"
"""In the metadata of a file: the ids of the erasures that it was written anew for."""

UNFINISHED = ".erasing"
"""How the name of a file ends while it is written; the next who keeps house takes it away."""

_ENDING = 8
"""The last bytes of a Parquet file: the length of what it says of itself, and four letters."""

_TERM = "(graph = $term OR subject = $term OR object = $term"
_NAMES = {
    Scope.EVENT: "graph = $term",
    Scope.SOURCE: "source = $name",
    Scope.SUBJECT: f"{_TERM} OR (object_kind = 'triple' AND contains(object, ' ' || $term || ' ')))",
}


def gone(erasure: Erasure) -> tuple[str, dict[str, str | int]]:
    """A condition for the rows that go, in SQL, and what it takes."""
    value = {"name": erasure.name} if erasure.scope is Scope.SOURCE else {"term": iri(erasure.name)}
    return f"coalesce(position < $before AND {_NAMES[erasure.scope]}, false)", {"before": erasure.position, **value}


@dataclass(frozen=True)
class Blot:
    """What is done to files: rows go, and of the events that lose their first quads another becomes the first, and
    takes over what the first alone has."""

    erasure: Erasure
    moved: pa.Table
    """`LOSSES` of events whose first quad goes and that have others."""

    def apply(self, path: Path) -> None:
        """Write a file anew, durably. Done again it does nothing more. A crash leaves the file as it was, or as it is
        to be."""
        quads = pq.read_table(path, partitioning=None)
        kept = self._renumbered(self._kept(quads))
        marks = " ".join(sorted({*marked(path), self.erasure.id}))
        with replacing(path, scratch=path.with_name(path.name + UNFINISHED)) as file:
            write_parquet(kept, file, SMALL, {MARK: marks})
            file.flush()
            pad(Path(file.name), path.stat().st_size)

    def _kept(self, quads: pa.Table) -> pa.Table:
        condition, asked = gone(self.erasure)
        with engine() as duck:
            duck.register("quads", quads)
            keeps = pa.table(duck.sql(f"SELECT NOT {condition} AS kept FROM quads", params=asked))
        return quads.filter(keeps["kept"])

    def _renumbered(self, quads: pa.Table) -> pa.Table:
        if not self.moved.num_rows or not quads.num_rows:
            return quads
        positions: npt.NDArray[np.int64] = self.moved["position"].to_numpy()
        firsts: npt.NDArray[np.int32] = self.moved["first"].to_numpy()
        at: npt.NDArray[np.int64] = quads["position"].to_numpy()
        numbers: npt.NDArray[np.int32] = quads["quad"].to_numpy()
        place = np.minimum(np.searchsorted(positions, at), len(positions) - 1)
        first = (positions[place] == at) & (firsts[place] == numbers)
        taken = self.moved["extensions"].take(pa.array(place)).combine_chunks()
        columns = {
            "quad": pa.array(np.where(first, 0, numbers), pa.int32()),
            "extensions": pc.if_else(pa.array(first), taken, quads["extensions"]),
        }
        return pa.table([columns.get(name, quads[name]) for name in quads.column_names], schema=quads.schema)


def moved(losses: pa.Table) -> pa.Table:
    """Of `LOSSES`, those of events whose first quad goes and that have others, by position."""
    return losses.filter(pc.greater(losses["first"], 0)).sort_by("position")


def marked(path: Path) -> set[str]:
    """The erasures that a file was written anew for."""
    found = pq.read_metadata(path).metadata or {}
    return set(found.get(MARK.encode(), b"").decode().split())


def pad(path: Path, size: int) -> None:
    """Make a Parquet file as large as it is to be, unless it is larger: what it says of itself stands at its end, and
    nobody looks at what is between."""
    with path.open("r+b") as file:
        file.seek(-_ENDING, os.SEEK_END)
        length = int.from_bytes(file.read(4), "little") + _ENDING
        missing = size - path.stat().st_size
        if missing > 0:
            file.seek(-length, os.SEEK_END)
            ending = file.read(length)
            file.seek(-length, os.SEEK_END)
            file.write(bytes(missing) + ending)
            file.flush()
            os.fsync(file.fileno())
