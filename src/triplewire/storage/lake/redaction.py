"""Redaction rewrites data files, and what the Delta log says of them, in place.

A data file keeps its name, so that every version of the table that names it loses the rows at once. It keeps its size
where it can, because Delta readers look for the footer where the log says the file ends. Min/max statistics are values
too: each commit and checkpoint is replaced by one that says the same, without values that are to be forgotten.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from triplewire.config.files import replacing
from triplewire.model import Erasure, ErasureScope
from triplewire.model.terms import iri
from triplewire.storage.lake.data_files import SMALL, connect_duckdb, format_statistics, write_parquet
from triplewire.storage.lake.ports import DataFile

ERASURE_MARK = "triplewire.erased"
"""In the metadata of a file: the ids of the erasures that it was written anew for."""

UNFINISHED = ".erasing"
"""How the name of a file ends while it is written; the next maintenance run removes it."""

_ENDING = 8
"""The last bytes of a Parquet file: the length of what it says of itself, and four letters."""

_TERM = "(graph = $term OR subject = $term OR object = $term"
_NAMES = {
    ErasureScope.EVENT: "graph = $term",
    ErasureScope.SOURCE: "source = $name",
    ErasureScope.SUBJECT: f"{_TERM} OR (object_kind = 'triple' AND contains(object, ' ' || $term || ' ')))",
}


def erased_condition(erasure: Erasure) -> tuple[str, dict[str, str | int]]:
    """A condition for the rows that go, in SQL, and what it takes."""
    value = {"name": erasure.name} if erasure.scope is ErasureScope.SOURCE else {"term": iri(erasure.name)}
    return f"coalesce(position < $before AND {_NAMES[erasure.scope]}, false)", {"before": erasure.position, **value}


@dataclass(frozen=True)
class Redaction:
    """A rewrite of files without erased rows. If an event loses its first quad, another becomes the first and takes
    over the columns that only the first has."""

    erasure: Erasure
    moved: pa.Table
    """`LOSSES` of events whose first quad goes and that have others."""

    def apply(self, path: Path) -> None:
        """Write a file anew, durably. Done again it does nothing more. A crash leaves the file as it was, or as it is
        to be."""
        quads = pq.read_table(path, partitioning=None)
        kept = self._renumbered(self._kept(quads))
        marks = " ".join(sorted({*read_erasure_marks(path), self.erasure.id}))
        with replacing(path, scratch=path.with_name(path.name + UNFINISHED)) as file:
            write_parquet(kept, file, SMALL, {ERASURE_MARK: marks})
            file.flush()
            pad_file(Path(file.name), path.stat().st_size)

    def _kept(self, quads: pa.Table) -> pa.Table:
        condition, asked = erased_condition(self.erasure)
        with connect_duckdb() as duck:
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
        index = np.minimum(np.searchsorted(positions, at), len(positions) - 1)
        first = (positions[index] == at) & (firsts[index] == numbers)
        taken = self.moved["extensions"].take(pa.array(index)).combine_chunks()
        columns = {
            "quad": pa.array(np.where(first, 0, numbers), pa.int32()),
            "extensions": pc.if_else(pa.array(first), taken, quads["extensions"]),
        }
        return pa.table([columns.get(name, quads[name]) for name in quads.column_names], schema=quads.schema)


def shifted_events(losses: pa.Table) -> pa.Table:
    """The losses of events that lose their first quad and keep others, by position."""
    return losses.filter(pc.greater(losses["first"], 0)).sort_by("position")


def read_erasure_marks(path: Path) -> set[str]:
    """The erasures that a file was written anew for."""
    found = pq.read_metadata(path).metadata or {}
    return set(found.get(ERASURE_MARK.encode(), b"").decode().split())


def pad_file(path: Path, size: int) -> None:
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


_POSITION = "position"
"""Statistics that reveal nothing about the content: row numbers and positions."""


@dataclass(frozen=True)
class DeltaLogRedaction:
    """The log of a table, and what is now known of some of its files."""

    table: Path
    files: Mapping[str, DataFile]
    """The files that were rewritten, by path."""

    def revise(self) -> int:
        """Let every entry of the log say what is so now; how many files of it were written anew. Done again it does
        nothing."""
        log = self.table / "_delta_log"
        commits = [path for path in sorted(log.glob("*.json")) if self._commit(path)]
        checkpoints = [path for path in sorted(log.glob("**/*.parquet")) if self._checkpoint(path)]
        return len(commits) + len(checkpoints)

    def _commit(self, path: Path) -> bool:
        lines = path.read_bytes().splitlines()
        actions = [orjson.loads(line) for line in lines]
        changed = [self._revised(action.get(kind)) for action in actions for kind in ("add", "remove")]
        if any(changed):
            content = b"\n".join(orjson.dumps(action) for action in actions)
            _replace_log_file(path, content.ljust(path.stat().st_size - 1) + b"\n")
        return any(changed)

    def _checkpoint(self, path: Path) -> bool:
        table = pq.read_table(path, partitioning=None)
        changed = False
        for kind in ("add", "remove"):
            if kind in table.column_names:
                entries = table[kind].to_pylist()
                revised = [self._revised(each) for each in entries]
                if any(revised):
                    changed = True
                    column, field = table.column_names.index(kind), table.schema.field(kind)
                    table = table.set_column(column, field, pa.array(entries, field.type))
        if changed:
            sink = pa.BufferOutputStream()
            # As small as can be, to have the size that it had: who has opened the table remembers that.
            pq.write_table(table, sink, compression="zstd", write_statistics=False, store_schema=False)
            _replace_log_file(path, sink.getvalue().to_pybytes(), path.stat().st_size)
        return changed

    def _revised(self, entry: dict[str, Any] | None) -> bool:
        """Whether what is said of a file was to be changed, and is."""
        if entry is None or not entry.get("path"):
            return False
        name, stats = unquote(entry["path"]), entry.get("stats")
        known = self.files.get(name)
        if known is None and (not stats or (self.table / name).exists()):
            return False
        said = orjson.loads(stats or "{}")
        now = _drop_statistics(said) if known is None else _keep_positions(orjson.loads(format_statistics(known)), said)
        if (now == said or not stats) and (known is None or entry.get("size") in (None, known.size)):
            return False
        entry["stats"] = orjson.dumps(now).decode() if stats else stats
        if "stats_parsed" in entry:
            entry["stats_parsed"] = None
        if known is not None and entry.get("size") is not None:
            entry["size"] = known.size
        return True


def _drop_statistics(said: Mapping[str, Any]) -> dict[str, Any]:
    """The statistics of a file that does not exist any more: no reader needs its values."""
    return _keep_positions({"numRecords": said.get("numRecords", 0), "minValues": {}, "maxValues": {}}, said)


def _keep_positions(now: dict[str, Any], said: Mapping[str, Any]) -> dict[str, Any]:
    """Keep the range of positions: the rows that are left lie within it."""
    for values in ("minValues", "maxValues"):
        position = said.get(values, {}).get(_POSITION)
        if position is not None:
            now[values].setdefault(_POSITION, position)
    now.get("nullCount", {}).pop(_POSITION, None)
    return now


def _replace_log_file(path: Path, content: bytes, size: int = 0) -> None:
    """Put a file in the place of another, durably; it is as old as that one, because versions are found by time."""
    before = path.stat()
    with replacing(path, scratch=path.with_name(path.name + UNFINISHED)) as file:
        file.write(content)
        file.flush()
        if size:
            pad_file(Path(file.name), size)
        os.utime(file.fileno(), ns=(before.st_atime_ns, before.st_mtime_ns))
