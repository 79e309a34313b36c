"""Logs: what the table's log says of files that were written anew, or that are gone.

The least and the greatest value of a column are values, and they stand in every commit and in every checkpoint that
names a file. These are files of our own: each is replaced by one that says the same, but for what is to be forgotten.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from triplewire.config.files import replacing
from triplewire.lake.blots import UNFINISHED, pad
from triplewire.lake.ports import DataFile
from triplewire.lake.ranges import to_statistics

_PLACE = "position"
"""What may always be said: where the rows of a file lie says nothing of what they hold."""


@dataclass(frozen=True)
class LogBook:
    """The log of a table, and what is now known of some of its files."""

    table: Path
    files: Mapping[str, DataFile]
    """Those that were written anew, by their paths."""

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
            _replace(path, content.ljust(path.stat().st_size - 1) + b"\n")
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
                    place, field = table.column_names.index(kind), table.schema.field(kind)
                    table = table.set_column(place, field, pa.array(entries, field.type))
        if changed:
            sink = pa.BufferOutputStream()
            # As small as can be, to have the size that it had: who has opened the table remembers that.
            pq.write_table(table, sink, compression="zstd", write_statistics=False, store_schema=False)
            _replace(path, sink.getvalue().to_pybytes(), path.stat().st_size)
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
        now = _loosened(said) if known is None else _with_place(orjson.loads(to_statistics(known)), said)
        if (now == said or not stats) and (known is None or entry.get("size") in (None, known.size)):
            return False
        entry["stats"] = orjson.dumps(now).decode() if stats else stats
        if "stats_parsed" in entry:
            entry["stats_parsed"] = None
        if known is not None and entry.get("size") is not None:
            entry["size"] = known.size
        return True


def _loosened(said: Mapping[str, Any]) -> dict[str, Any]:
    """Of a file that is no longer there: nobody can read it, so that nobody needs to pass it over."""
    return _with_place({"numRecords": said.get("numRecords", 0), "minValues": {}, "maxValues": {}}, said)


def _with_place(now: dict[str, Any], said: Mapping[str, Any]) -> dict[str, Any]:
    """Where the rows were that it had is where they are that it has, if any are left."""
    for values in ("minValues", "maxValues"):
        place = said.get(values, {}).get(_PLACE)
        if place is not None:
            now[values].setdefault(_PLACE, place)
    now.get("nullCount", {}).pop(_PLACE, None)
    return now


def _replace(path: Path, content: bytes, size: int = 0) -> None:
    """Put a file in the place of another, durably; it is as old as that one, because versions are found by time."""
    before = path.stat()
    with replacing(path, scratch=path.with_name(path.name + UNFINISHED)) as file:
        file.write(content)
        file.flush()
        if size:
            pad(Path(file.name), size)
        os.utime(file.fileno(), ns=(before.st_atime_ns, before.st_mtime_ns))
