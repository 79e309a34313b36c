"""Erasure from the lake: rows are taken out of every data file on disk, whichever version of the table names it.

```
find      losses of events, over all files      ──▶ erasures/<id>.parquet, so that a successor can resume
rewrite   every file that holds any of it       ──▶ the same name, without these rows
commit    the new contents of the files         ──▶ a version of the table that says that rows were removed
revise    older entries of the Delta log        ──▶ the same entries, without values that are gone
```
Each step looks at what is there, so that after a crash all of them can be done again. A bound of a zone layout that
contains an erased name is replaced by another with the same rows on both sides.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from sqlglot import exp

from triplewire.config.files import replacing
from triplewire.model import Erasure, ErasureScope
from triplewire.model.erasure import LOSSES
from triplewire.model.terms import iri
from triplewire.sparql import to_sql
from triplewire.storage.lake.data_files import connect_duckdb, measure_ranges
from triplewire.storage.lake.keys import DIMENSIONS, find_transformation
from triplewire.storage.lake.maintenance import MaintenanceContext, MaintenanceProgress, spread_items
from triplewire.storage.lake.ports import DataFile, TableChange
from triplewire.storage.lake.redaction import (
    UNFINISHED,
    DeltaLogRedaction,
    Redaction,
    erased_condition,
    pad_file,
    read_erasure_marks,
    shifted_events,
)
from triplewire.storage.lake.zones import below_expression

_LEAST = "<"
"""Below all IRIs, and above everything else."""


@dataclass(frozen=True)
class LayoutRedaction:
    """The bounds of all zone maps that a lake has had."""

    context: MaintenanceContext
    erasure: Erasure

    def revise(self) -> int:
        """Rewrite the layouts that contain the name, under their own versions; return how many. Rows are read as they
        are: what is erased must be gone from them. Done again it does nothing."""
        if self.erasure.scope is ErasureScope.SOURCE:
            return 0
        table = self.context.maps.path
        revised = {path: self._revised(path) for path in table.glob("*.parquet")}
        known = {path.name: _write_layout(path, found) for path, found in revised.items() if found is not None}
        if known:
            DeltaLogRedaction(table, known).revise()
            self.context.maps.forget()
        return len(known)

    def _revised(self, path: Path) -> pa.Table | None:
        """A map without the name; None for one that does not tell it."""
        zones = pq.read_table(path, partitioning=None)
        (order,) = set(zones["transformation"].to_pylist())
        needle = find_transformation(order).of_key(iri(self.erasure.name)).strip("<>")
        found = zones
        for dimension in DIMENSIONS:
            bounds = sorted(_bounds_in(zones, dimension))
            for index, bound in enumerate(bounds):
                if needle in bound:
                    bounds[index] = self._instead(dimension, bound, order, max([_LEAST, *bounds[:index]]))
                    found = _replace_bound(found, dimension, bound, bounds[index])
        return None if found is zones else found

    def _instead(self, dimension: str, bound: str, order: str, lower: str) -> str:
        """A bound that parts the same rows, and is above another."""
        paths = list(self.context.lake.files().paths)
        transformation = find_transformation(order)
        column = to_sql(transformation.of_column(exp.column(dimension)), "duckdb")
        below = to_sql(below_expression(dimension, bound, transformation), "duckdb")
        plain = " AND object_number IS NULL AND object_time IS NULL" if dimension == "object" else ""
        source = "read_parquet($files, hive_partitioning = false)"
        with connect_duckdb() as duck:
            query = f"SELECT max({column}) FROM {source} WHERE {below}{plain}"
            ((last,),) = duck.execute(query, {"files": paths}).fetchall() if paths else [(None,)]
        return text_between(max(lower, last or ""), bound)


def text_between(under: str, over: str) -> str:
    """A text that is greater than one and at most another, made of the first."""
    index = next((at for at, (mine, other) in enumerate(zip(under, over, strict=False)) if mine != other), len(under))
    if index < len(under) and not 0xD7FF <= ord(under[index]) < 0xE000:
        following = under[:index] + chr(ord(under[index]) + 1)
        if following < over:
            return following
    return under + "\x01"


def _bounds_in(zones: pa.Table, dimension: str) -> Iterator[str]:
    for end in ("least", "below"):
        yield from {text for text in zones[f"{end}_{dimension}"].to_pylist() if text}


def _replace_bound(zones: pa.Table, dimension: str, bound: str, other: str) -> pa.Table:
    for end in ("least", "below"):
        name = f"{end}_{dimension}"
        texts = [other if text == bound else text for text in zones[name].to_pylist()]
        zones = zones.set_column(zones.column_names.index(name), zones.schema.field(name), pa.array(texts, pa.string()))
    return zones


def _write_layout(path: Path, zones: pa.Table) -> DataFile:
    """Put a map in the place of another, durably."""
    with replacing(path, scratch=path.with_name(path.name + UNFINISHED)) as file:
        pq.write_table(zones, file, compression="zstd", write_statistics=False, store_schema=False)
        file.flush()
        pad_file(Path(file.name), path.stat().st_size)
    return DataFile(path.name, path.stat().st_size, zones.num_rows, {})


# An event's quads lie in several files, and in older files once more.
_LOSSES = """
WITH quads AS (SELECT position, quad, extensions, {gone} AS gone FROM read_parquet($files, hive_partitioning = false)),
hit AS (SELECT DISTINCT position FROM quads WHERE gone)
SELECT
    position, count(DISTINCT quad) FILTER (gone) AS quads, min(quad) FILTER (NOT gone) AS first,
    CASE WHEN min(quad) FILTER (NOT gone) > 0 THEN any_value(extensions) END AS extensions
FROM quads SEMI JOIN hit USING (position) GROUP BY position ORDER BY position
"""
_HOLDING = """
SELECT DISTINCT filename FROM read_parquet($files, hive_partitioning = false, filename = true)
WHERE {gone} OR (position, quad) IN (SELECT (position, first) FROM moved)
"""


@dataclass(frozen=True)
class LakeErasure:
    """One erasure in one lake. Its steps need the maintenance lock."""

    context: MaintenanceContext
    erasure: Erasure

    def losses(self) -> pa.Table:
        """The losses of events in all files, as `LOSSES`."""
        return self._asked(_LOSSES).cast(LOSSES)

    def remember(self, losses: pa.Table) -> None:
        """Store the losses: counts, and the values that another quad takes over. They identify the erased events when
        part of these is gone already."""
        with replacing(self._notes, scratch=self._notes.with_name(self._notes.name + UNFINISHED)) as file:
            pq.write_table(losses, file)

    def remembered(self) -> pa.Table | None:
        """The stored losses; None before `remember`."""
        return pq.read_table(self._notes, partitioning=None) if self._notes.exists() else None

    def rewrite(self) -> int:
        """Take the rows out of all files and tell the table so; how many files were written anew."""
        self._sweep()
        blot = Redaction(self.erasure, shifted_events(self._remembered))
        # Rows that other maintenance has moved to another file meanwhile are found there.
        while holding := self._holding(blot.moved):
            self._apply(blot, holding)
        known = self._rewritten()
        now = {each.path: each for each in self.context.lake.files().files}
        ours = [known[path] for path in known.keys() & now.keys()]
        if ours:
            emptied = tuple(now[each.path] for each in ours if not each.rows)
            self.context.lake.replace(TableChange(emptied, tuple(each for each in ours if each.rows), lost=True))
        return len(known)

    def revise(self) -> int:
        """Take values that are gone out of what the table's log says, and the name out of the zone maps; how many
        files of these were written anew."""
        return (
            DeltaLogRedaction(self.context.table, self._rewritten()).revise()
            + LayoutRedaction(self.context, self.erasure).revise()
        )

    def torn(self) -> list[Path]:
        """Data files that have no end: they are being written, or whoever wrote them is gone."""
        return [path for path in self._files() if not _is_whole(path)]

    def forget(self) -> None:
        """Done: what was written down goes."""
        self._notes.unlink(missing_ok=True)

    @property
    def _notes(self) -> Path:
        return self.context.table.parent / "erasures" / f"{self.erasure.id}.parquet"

    @property
    def _remembered(self) -> pa.Table:
        found = self.remembered()
        return LOSSES.empty_table() if found is None else found

    def _apply(self, blot: Redaction, files: list[str]) -> None:
        self.context.report(MaintenanceProgress("erasing", 0, len(files)))
        done = 0
        for some in spread_items(files, -(-len(files) // self.context.tasks)):
            self.context.run(partial(_apply_redaction, blot), some)
            done += len(some)
            self.context.report(MaintenanceProgress("erasing", done, len(files)))

    def _holding(self, firsts: pa.Table) -> list[str]:
        found: list[str] = self._asked(_HOLDING, firsts)["filename"].to_pylist()
        return found

    def _rewritten(self) -> Mapping[str, DataFile]:
        """All files that were written anew for this, as they are now, by their paths."""
        files = [path for path in self._files() if _is_whole(path) and self.erasure.id in read_erasure_marks(path)]
        return {each.path: each for each in (_measure_file(self.context.table, path) for path in files)}

    def _asked(self, query: str, firsts: pa.Table | None = None) -> pa.Table:
        condition, asked = erased_condition(self.erasure)
        files = [str(path) for path in self._files() if _is_whole(path)]
        if not files:
            return pa.table({"filename": pa.array([], pa.string())}) if firsts is not None else LOSSES.empty_table()
        with connect_duckdb() as duck:
            if firsts is not None:
                duck.register("moved", firsts)
            return pa.table(duck.sql(query.format(gone=condition), params={**asked, "files": files}))

    def _files(self) -> Iterator[Path]:
        """All data files on the disk, whether any version of the table names them or not."""
        for path in sorted(self.context.table.glob("**/*.parquet")):
            if "_delta_log" not in path.parts:
                yield path

    def _sweep(self) -> None:
        """Temporary files of writers that have crashed."""
        for path in self.context.table.parent.glob(f"**/*{UNFINISHED}"):
            path.unlink(missing_ok=True)


def _apply_redaction(blot: Redaction, path: str) -> Iterator[None]:
    blot.apply(Path(path))
    yield None


def _is_whole(path: Path) -> bool:
    try:
        pq.read_metadata(path)
    except (pa.ArrowInvalid, FileNotFoundError):
        return False
    return True


def _measure_file(table: Path, path: Path) -> DataFile:
    """A file of the table as it is."""
    name, quads = path.relative_to(table), pq.read_table(path, partitioning=None)
    zone = name.parts[0].partition("=")[2] if len(name.parts) > 1 else None
    return DataFile(str(name), path.stat().st_size, quads.num_rows, measure_ranges(quads), zone)
