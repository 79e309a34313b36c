"""Compactions: which files of the table want to be others.

Fresh files go into their zones, the oldest first. A zone then has a file, or a few, for each such stretch of time, and
small ones that lie side by side become one: four of about the same size, so that a row is rewritten as often as the
size of its file has grown fourfold, and no more.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby

from triplewire.config import limits
from triplewire.lake.assignments import assignment
from triplewire.lake.houses import House, count, spread
from triplewire.lake.ports import Change, DataFile, Snapshot
from triplewire.lake.rewrites import Rewrite
from triplewire.sparql import to_sql

_TIER = 4


def compact(house: House) -> int:
    """Sort all that is fresh now into its zones, then merge what is small; how many quads were rewritten. Each step is
    a commit of its own, so that what was done stays done."""
    upto = house.lake.files().upto
    return sum(iter(partial(_sort, house, upto), 0)) + sum(iter(partial(_merge, house), 0))


def _sort(house: House, upto: int) -> int:
    """The oldest of what is fresh, up to a position."""
    snapshot = house.lake.files()
    files = tuple(each for each in sortable(snapshot) if each.last <= upto)
    if not files:
        return 0
    zones = house.zones(snapshot)
    paths, rows = tuple(each.path for each in files), file_rows(snapshot)
    assigned = to_sql(assignment(zones), "duckdb")
    parts = max(house.tasks, count(files) // limits.TASK_QUADS)
    rewrites = [Rewrite(paths, rows, some, assigned) for some in spread([each.id for each in zones.zones], parts)]
    made = house.rewritten("sorting into zones", rewrites, count(files))
    house.lake.replace(Change(files, made))
    return count(files)


def _merge(house: House) -> int:
    """What is small now, which may make others small."""
    groups = mergeable(house.lake.files())
    gone = tuple(each for group in groups for each in group)
    rewrites = [Rewrite(tuple(each.path for each in group), count(group), (str(group[0].zone),)) for group in groups]
    if gone:
        house.lake.replace(Change(gone, house.rewritten("merging small files", rewrites, count(gone))))
    return count(gone)


def file_rows(snapshot: Snapshot) -> int:
    """How many quads a file should have: two thousand files of them hold the table."""
    return max(limits.FILE_QUADS, count(snapshot.files) // limits.FILES_WANTED)


def fresh(snapshot: Snapshot) -> tuple[DataFile, ...]:
    """Those in no zone, the oldest first."""
    return tuple(each for each in snapshot.files if each.zone is None)


def is_due(snapshot: Snapshot) -> bool:
    """Are there so many small files that compaction pays?"""
    waiting = fresh(snapshot)
    return len(waiting) >= limits.FRESH_FILES or count(waiting) >= limits.COMPACTED_QUADS


def sortable(snapshot: Snapshot) -> tuple[DataFile, ...]:
    """The oldest fresh files, as many as go into their zones at once."""
    taken: list[DataFile] = []
    for each in fresh(snapshot):
        if taken and count(taken) + each.rows > limits.COMPACTED_QUADS:
            break
        taken.append(each)
    return tuple(taken)


def mergeable(snapshot: Snapshot) -> list[tuple[DataFile, ...]]:
    """Groups of files, each of which should be one; those of a group lie side by side in one zone. Half of what a file
    should have is enough."""
    wanted = file_rows(snapshot) // 2
    return [group for files in by_zone(snapshot).values() for group in _groups(files, wanted)]


def by_zone(snapshot: Snapshot) -> dict[str, list[DataFile]]:
    """In the order of positions."""
    zones: dict[str, list[DataFile]] = {}
    for each in snapshot.files:
        if each.zone is not None:
            zones.setdefault(each.zone, []).append(each)
    return zones


def _groups(files: Sequence[DataFile], wanted: int) -> Iterator[tuple[DataFile, ...]]:
    small = sum(each.rows < wanted for each in files)
    for tier, group in groupby(files, lambda each: _tier(each.rows, wanted, crowded=small > limits.SMALL_FILES)):
        if tier is not None:
            yield from _filled(tuple(group), wanted)


def _tier(rows: int, wanted: int, *, crowded: bool) -> int | None:
    """None for a file that is large enough. Where there are too many small ones, they are all of one tier."""
    if rows >= wanted:
        return None
    return 0 if crowded else int(math.log(wanted / max(rows, 1), _TIER))


def _filled(group: Sequence[DataFile], wanted: int) -> Iterator[tuple[DataFile, ...]]:
    """Parts of a group that make a whole file, and what is left if that is enough to pay."""
    part: list[DataFile] = []
    for each in group:
        part.append(each)
        if count(part) >= wanted:
            if len(part) > 1:
                yield tuple(part)
            part = []
    if len(part) >= _TIER:
        yield tuple(part)
