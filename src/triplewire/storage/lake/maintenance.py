"""Lake maintenance: compaction, file rewrites, checkpoints and vacuum, by one process at a time, under a file lock.

Fresh files are sorted into their zones, the oldest first. Small files that lie side by side are merged in tiers of
four of about the same size, so that a row is rewritten once each time its file grows fourfold. Older versions of the
table stay readable for some time: vacuum keeps their files and the table's log as long.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import groupby, pairwise
from pathlib import Path
from typing import Final, Protocol, TypeVar

from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from triplewire.config.files import file_lock
from triplewire.sparql import to_sql
from triplewire.storage.lake.data_files import FileWriter, parquet_relation, quote_literal
from triplewire.storage.lake.ports import DataFile, Lake, Snapshot, TableChange
from triplewire.storage.lake.zones import ZoneLayout, ZoneLayoutStore, zone_expression

FRESH_FILES: Final = 64
"""Fresh files of the lake from which on they are sorted into zones: a query reads all of them, some 20 ms."""

COMPACTED_QUADS: Final = 1_000_000
"""Quads that are sorted into zones at once. They are in the memory of a worker then: some 400 MB."""

TASK_QUADS: Final = 100_000
"""Quads that one maintenance task sorts, about: half a second, for which other tasks may wait."""

FILES_TARGET: Final = 2_000
"""Files that hold the whole lake, about: fewer tell a query less of where it must look, more take longer to list."""

FILE_QUADS: Final = 2_048
"""Quads of a file of a small lake. Fewer would take more bytes each."""

SMALL_FILES: Final = 32
"""Files of one zone that are smaller than they should be and still do not become one, because their sizes differ."""


@dataclass(frozen=True)
class FileRewrite:
    """One task of compaction. Its SQL is built from the zone layout and settings, never from text of users."""

    inputs: tuple[str, ...]
    """Relative to the table."""
    rows: int
    """How many a file should have, about."""
    zones: tuple[str, ...]
    """The zones whose rows are written; an empty tuple is for rows that stay fresh."""
    assigned: str = ""
    """An expression that gives the zone of a row, where there are several."""
    kept: str = "true"
    """A condition for the rows that stay."""


def rewrite_files(table: Path, rewrite: FileRewrite) -> Iterator[DataFile]:
    """Files that wait for their commit, each on the disk when it is told of. None is empty."""
    writer = FileWriter(table)
    try:
        _load(writer, table, rewrite)
        for zone, rows in _count_by_zone(writer):
            for low, high in _split_positions(writer, zone, rows, rewrite.rows):
                inside = f"zone = {quote_literal(zone)} AND position > {low} AND position <= {high}"
                yield writer.write_quads(f"(FROM moved WHERE {inside})", zone or None)
    finally:
        writer.close()


def _load(writer: FileWriter, table: Path, rewrite: FileRewrite) -> None:
    zone = rewrite.assigned or quote_literal(rewrite.zones[0])
    zones = ", ".join(map(quote_literal, rewrite.zones))
    source = parquet_relation(str(table / each) for each in rewrite.inputs)
    writer.duck.execute(
        f"CREATE OR REPLACE TEMP TABLE moved AS SELECT *, {zone} AS zone FROM {source} "
        f"WHERE ({rewrite.kept}) AND {zone} IN ({zones})"
    )


def _count_by_zone(writer: FileWriter) -> Sequence[tuple[str, int]]:
    return writer.duck.execute("SELECT zone, count(*) FROM moved GROUP BY zone ORDER BY zone").fetchall()


def _split_positions(writer: FileWriter, zone: str, rows: int, wanted: int) -> Iterator[tuple[int, int]]:
    """Stretches of positions, each open below, with about as many rows as are wanted; the rows of one position stay
    together."""
    count = max(1, rows // wanted)
    shares = ", ".join(str(each / count) for each in range(1, count))
    query = f"SELECT min(position) - 1, max(position), quantile_disc(position, [{shares}]) FROM moved WHERE zone = $1"
    ((before, last, cuts),) = writer.duck.execute(query, [zone]).fetchall()
    yield from pairwise(sorted({before, *(cuts or ()), last}))


T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class MaintenanceProgress:
    """How far a piece of work is, in quads."""

    work: str
    done: int
    of: int


class TaskRunner(Protocol):
    """Runs a function over items, side by side where it can: a Spark job, or a loop."""

    def __call__(self, function: Callable[[T], Iterable[R]], items: Sequence[T]) -> list[R]:
        """All that the function gives. Function, items and what it gives must pickle."""


def run_sequentially(function: Callable[[T], Iterable[R]], items: Sequence[T]) -> list[R]:
    """The runner that needs nothing."""
    return [made for item in items for made in function(item)]


def ignore_progress(progress: MaintenanceProgress) -> None:
    """For whom progress is of no interest."""


@dataclass(frozen=True)
class MaintenanceContext:
    """One lake, maintained by one process at a time. So many `tasks` run at once; `report` is called with progress."""

    lake: Lake
    table: Path
    maps: ZoneLayoutStore
    run: TaskRunner = run_sequentially
    tasks: int = 1
    report: Callable[[MaintenanceProgress], None] = ignore_progress
    file_quads: int = FILE_QUADS
    """Quads of a file of a small lake."""

    def zones(self, snapshot: Snapshot) -> ZoneLayout:
        return self.maps.read(snapshot.zones)

    def file_rows(self, snapshot: Snapshot) -> int:
        """How many quads a file should have: `FILES_TARGET` files of them hold the table."""
        return max(self.file_quads, count_quads(snapshot.files) // FILES_TARGET)

    def rewrite(self, work: str, rewrites: Sequence[FileRewrite], rows: int) -> tuple[DataFile, ...]:
        """Run rewrites of `rows` quads in all; return their files, which wait for their commit. A few run at a time: in
        between, others have their turn."""
        made: list[DataFile] = []
        self.report(MaintenanceProgress(work, 0, rows))
        for first in range(0, len(rewrites), self.tasks):
            made += self.run(partial(rewrite_files, self.table), rewrites[first : first + self.tasks])
            self.report(MaintenanceProgress(work, count_quads(made), rows))
        return tuple(made)


def count_quads(files: Iterable[DataFile]) -> int:
    """Quads in files."""
    return sum(each.rows for each in files)


def spread_items(items: Sequence[T], parts: int) -> Iterator[tuple[T, ...]]:
    """Items in turn over parts, none of which is empty."""
    for first in range(min(parts, len(items))):
        yield tuple(items[first::parts])


_TIER = 4


def compact(context: MaintenanceContext) -> int:
    """Sort all that is fresh now into its zones, then merge what is small; how many quads were rewritten. Each step is
    a commit of its own, so that what was done stays done."""
    through = context.lake.files().position
    return sum(iter(partial(_sort, context, through), 0)) + sum(iter(partial(_merge, context), 0))


def _sort(context: MaintenanceContext, through: int) -> int:
    """The oldest of what is fresh, up to a position."""
    snapshot = context.lake.files()
    files = tuple(each for each in sortable_files(snapshot) if each.last <= through)
    if not files:
        return 0
    zones = context.zones(snapshot)
    paths, rows = tuple(each.path for each in files), context.file_rows(snapshot)
    assigned = to_sql(zone_expression(zones), "duckdb")
    parts = max(context.tasks, count_quads(files) // TASK_QUADS)
    rewrites = [
        FileRewrite(paths, rows, some, assigned) for some in spread_items([each.id for each in zones.zones], parts)
    ]
    made = context.rewrite("sorting into zones", rewrites, count_quads(files))
    context.lake.replace(TableChange(files, made))
    return count_quads(files)


def _merge(context: MaintenanceContext) -> int:
    """Zones that are small now, which may make others small."""
    snapshot = context.lake.files()
    groups = mergeable_groups(snapshot, context.file_rows(snapshot))
    gone = tuple(each for group in groups for each in group)
    rewrites = [
        FileRewrite(tuple(each.path for each in group), count_quads(group), (str(group[0].zone),)) for group in groups
    ]
    if gone:
        context.lake.replace(TableChange(gone, context.rewrite("merging small files", rewrites, count_quads(gone))))
    return count_quads(gone)


def fresh_files(snapshot: Snapshot) -> tuple[DataFile, ...]:
    """Files outside zones, the oldest first."""
    return tuple(each for each in snapshot.files if each.zone is None)


def is_compaction_due(snapshot: Snapshot, files: int = FRESH_FILES) -> bool:
    """Whether there are so many fresh files, or quads in them, that compaction pays."""
    waiting = fresh_files(snapshot)
    return len(waiting) >= files or count_quads(waiting) >= COMPACTED_QUADS


def sortable_files(snapshot: Snapshot) -> tuple[DataFile, ...]:
    """The oldest fresh files, as many as go into their zones at once."""
    taken: list[DataFile] = []
    for each in fresh_files(snapshot):
        if taken and count_quads(taken) + each.rows > COMPACTED_QUADS:
            break
        taken.append(each)
    return tuple(taken)


def mergeable_groups(snapshot: Snapshot, file_rows: int) -> list[tuple[DataFile, ...]]:
    """Groups of files, each of which should be one; those of a group lie side by side in one zone. Half of what a file
    should have is enough."""
    return [group for files in group_by_zone(snapshot).values() for group in _groups(files, file_rows // 2)]


def group_by_zone(snapshot: Snapshot) -> dict[str, list[DataFile]]:
    """In the order of positions."""
    zones: dict[str, list[DataFile]] = {}
    for each in snapshot.files:
        if each.zone is not None:
            zones.setdefault(each.zone, []).append(each)
    return zones


def _groups(files: Sequence[DataFile], wanted: int) -> Iterator[tuple[DataFile, ...]]:
    small = sum(each.rows < wanted for each in files)
    for tier, group in groupby(files, lambda each: _tier(each.rows, wanted, crowded=small > SMALL_FILES)):
        if tier is not None:
            yield from _fill_files(tuple(group), wanted)


def _tier(rows: int, wanted: int, *, crowded: bool) -> int | None:
    """None for a file that is large enough. Where there are too many small ones, they are all of one tier."""
    if rows >= wanted:
        return None
    return 0 if crowded else int(math.log(wanted / max(rows, 1), _TIER))


def _fill_files(group: Sequence[DataFile], wanted: int) -> Iterator[tuple[DataFile, ...]]:
    """Parts of a group that make a whole file, and what is left if that is enough to pay."""
    part: list[DataFile] = []
    for each in group:
        part.append(each)
        if count_quads(part) >= wanted:
            if len(part) > 1:
                yield tuple(part)
            part = []
    if len(part) >= _TIER:
        yield tuple(part)


@contextmanager
def hold_maintenance_lock(table: Path, *, wait: bool = False) -> Iterator[None]:
    """Holds the lock of a table. Raises Conflict if another holds it, unless it is to be waited for. The lock goes
    with its process, however that ends."""
    lock = table.parent / f"{table.name}.lock"
    with file_lock(lock, f"another process maintains {table}", wait=wait):
        yield


_LOG_RETENTION = "delta.logRetentionDuration"


def vacuum(table: Path, hours: int) -> list[str]:
    """Delete files that no version of the last `hours` names, and those that a crash left behind as long ago; which.
    A file that is being written now is younger."""
    try:
        found = DeltaTable(table)
    except TableNotFoundError:
        return []
    return found.vacuum(hours, dry_run=False, enforce_retention_duration=False, full=True)


def checkpoint(table: Path, hours: int) -> int | None:
    """Write down the table as it is, so that nobody reads its log from the beginning, and let go of the log of versions
    older than `hours`; the version that was written down, if there is one."""
    try:
        found = DeltaTable(table)
    except TableNotFoundError:
        return None
    retention = f"interval {hours} hours"
    if found.metadata().configuration.get(_LOG_RETENTION) != retention:
        found.alter.set_table_properties({_LOG_RETENTION: retention})
    found.create_checkpoint()
    found.cleanup_metadata()
    return found.version()
