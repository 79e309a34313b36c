"""Erasures: rows that are taken out of every data file on the disk, whichever version of the table names it.

```
find      what events lose, of all files        ──▶ erasures/<id>.parquet, so that whoever goes on knows
rewrite   every file that holds any of it       ──▶ the same name, without these rows
commit    what the files hold now               ──▶ a version of the table, which says that rows were taken away
revise    what older entries of the log say     ──▶ the same entries, without values that are gone
```
Each step looks at what is there, so that after a crash all of them are done again, and do what was left to do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from triplewire.config.files import replacing
from triplewire.lake.blots import UNFINISHED, Blot, gone, marked, moved
from triplewire.lake.bounds import Bounds
from triplewire.lake.houses import House, Progress, spread
from triplewire.lake.logs import LogBook
from triplewire.lake.ports import Change, DataFile
from triplewire.lake.ranges import measured
from triplewire.lake.relations import engine
from triplewire.model import Erasure
from triplewire.model.erasures import LOSSES

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
    """One erasure, in one lake. Whoever does any of it keeps house there."""

    house: House
    erasure: Erasure

    def losses(self) -> pa.Table:
        """What the events of all files lose, as `LOSSES`."""
        return self._asked(_LOSSES).cast(LOSSES)

    def remember(self, losses: pa.Table) -> None:
        """Write down what events lose: numbers, and what stays of those that lose their first quad. What goes is found
        by it when part of it is gone already."""
        with replacing(self._notes, scratch=self._notes.with_name(self._notes.name + UNFINISHED)) as file:
            pq.write_table(losses, file)

    def remembered(self) -> pa.Table | None:
        """What was written down; None before."""
        return pq.read_table(self._notes, partitioning=None) if self._notes.exists() else None

    def rewrite(self) -> int:
        """Take the rows out of all files and tell the table so; how many files were written anew."""
        self._sweep()
        blot = Blot(self.erasure, moved(self._remembered))
        # What was moved to another file in between, by another who kept house, is found there.
        while holding := self._holding(blot.moved):
            self._apply(blot, holding)
        known = self._rewritten()
        now = {each.path: each for each in self.house.lake.files().files}
        ours = [known[path] for path in known.keys() & now.keys()]
        if ours:
            emptied = tuple(now[each.path] for each in ours if not each.rows)
            self.house.lake.replace(Change(emptied, tuple(each for each in ours if each.rows), lost=True))
        return len(known)

    def revise(self) -> int:
        """Take values that are gone out of what the table's log says, and the name out of the zone maps; how many
        files of these were written anew."""
        return LogBook(self.house.table, self._rewritten()).revise() + Bounds(self.house, self.erasure).revise()

    def torn(self) -> list[Path]:
        """Data files that have no end: they are being written, or whoever wrote them is gone."""
        return [path for path in self._files() if not _is_whole(path)]

    def forget(self) -> None:
        """Done: what was written down goes."""
        self._notes.unlink(missing_ok=True)

    @property
    def _notes(self) -> Path:
        return self.house.table.parent / "erasures" / f"{self.erasure.id}.parquet"

    @property
    def _remembered(self) -> pa.Table:
        found = self.remembered()
        return LOSSES.empty_table() if found is None else found

    def _apply(self, blot: Blot, files: list[str]) -> None:
        self.house.told(Progress("erasing", 0, len(files)))
        done = 0
        for some in spread(files, -(-len(files) // self.house.tasks)):
            self.house.run(partial(_applied, blot), some)
            done += len(some)
            self.house.told(Progress("erasing", done, len(files)))

    def _holding(self, firsts: pa.Table) -> list[str]:
        found: list[str] = self._asked(_HOLDING, firsts)["filename"].to_pylist()
        return found

    def _rewritten(self) -> Mapping[str, DataFile]:
        """All files that were written anew for this, as they are now, by their paths."""
        files = [path for path in self._files() if _is_whole(path) and self.erasure.id in marked(path)]
        return {each.path: each for each in (_looked_at(self.house.table, path) for path in files)}

    def _asked(self, query: str, firsts: pa.Table | None = None) -> pa.Table:
        condition, asked = gone(self.erasure)
        files = [str(path) for path in self._files() if _is_whole(path)]
        if not files:
            return pa.table({"filename": pa.array([], pa.string())}) if firsts is not None else LOSSES.empty_table()
        with engine() as duck:
            if firsts is not None:
                duck.register("moved", firsts)
            return pa.table(duck.sql(query.format(gone=condition), params={**asked, "files": files}))

    def _files(self) -> Iterator[Path]:
        """All data files on the disk, whether any version of the table names them or not."""
        for path in sorted(self.house.table.glob("**/*.parquet")):
            if "_delta_log" not in path.parts:
                yield path

    def _sweep(self) -> None:
        """What was being written when somebody died."""
        for path in self.house.table.parent.glob(f"**/*{UNFINISHED}"):
            path.unlink(missing_ok=True)


def _applied(blot: Blot, path: str) -> Iterator[None]:
    blot.apply(Path(path))
    yield None


def _is_whole(path: Path) -> bool:
    try:
        pq.read_metadata(path)
    except (pa.ArrowInvalid, FileNotFoundError):
        return False
    return True


def _looked_at(table: Path, path: Path) -> DataFile:
    """A file of the table as it is."""
    name, quads = path.relative_to(table), pq.read_table(path, partitioning=None)
    zone = name.parts[0].partition("=")[2] if len(name.parts) > 1 else None
    return DataFile(str(name), path.stat().st_size, quads.num_rows, measured(quads), zone)
