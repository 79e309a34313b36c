"""Compaction: rows move and none is lost, files become few, and a row is not rewritten again and again."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import duckdb
import pytest

from tests.storage.lake.test_delta import entries
from triplewire.storage.lake.data_files import FileWriter
from triplewire.storage.lake.delta import DeltaLake
from triplewire.storage.lake.maintenance import (
    COMPACTED_QUADS,
    FILE_QUADS,
    FRESH_FILES,
    MaintenanceContext,
    MaintenanceProgress,
    compact,
    fresh_files,
    is_compaction_due,
    mergeable_groups,
)
from triplewire.storage.lake.ports import CommitBatch, DataFile, Snapshot, TableChange
from triplewire.storage.lake.zones import ZoneLayoutStore
from triplewire.testing import event


class Grown:
    """A lake that is appended to, and its maintenance."""

    def __init__(self, folder: Path, file_quads: int = FILE_QUADS) -> None:
        self.lake = DeltaLake(folder / "quads")
        self.heard: list[MaintenanceProgress] = []
        self.context = MaintenanceContext(
            self.lake,
            folder / "quads",
            ZoneLayoutStore(folder / "zones"),
            report=self.heard.append,
            file_quads=file_quads,
        )
        self._writer = FileWriter(folder / "quads")
        self._batch = 0

    def append(self, events: int) -> None:
        first = self.lake.files().position + 1
        last = first + events - 1
        file = self._writer.write(entries(*(event(at) for at in range(first, last + 1)), first=first))
        self._batch += 1
        self.lake.commit(CommitBatch("q", self._batch, last), [file])

    def rows(self, snapshot: Snapshot | None = None) -> Counter[tuple[int, int, str]]:
        paths = list((snapshot or self.lake.files()).paths)
        if not paths:
            return Counter()
        query = "SELECT position, quad, object FROM read_parquet($files, hive_partitioning = false)"
        return Counter(duckdb.execute(query, {"files": paths}).fetchall())


@pytest.fixture
def grown(tmp_path: Path) -> Grown:
    return Grown(tmp_path)


def test_fresh_files_become_one_and_nothing_is_lost(grown: Grown) -> None:
    for _ in range(5):
        grown.append(2)
    before = grown.lake.files()
    rows = grown.rows()
    assert compact(grown.context) == 20
    after = grown.lake.files()
    assert [(each.zone, each.rows, each.first, each.last) for each in after.files] == [("z0", 20, 1, 10)]
    assert grown.rows() == rows == grown.rows(before)
    assert (after.position, after.removals) == (before.position, before.removals)
    assert grown.heard[-1] == MaintenanceProgress("sorting into zones", 20, 20)


def test_an_empty_lake_needs_nothing(grown: Grown) -> None:
    assert compact(grown.context) == 0


def test_what_comes_meanwhile_stays_fresh(grown: Grown) -> None:
    grown.append(3)

    def meanwhile(change: TableChange) -> None:
        grown.append(1)
        DeltaLake.replace(grown.lake, change)

    grown.lake.replace = meanwhile  # type: ignore[method-assign]
    compact(grown.context)
    assert [(each.zone, each.rows) for each in grown.lake.files().files] == [("z0", 6), (None, 2)]


def test_a_long_range_becomes_files_of_ranges(tmp_path: Path) -> None:
    grown = Grown(tmp_path, file_quads=8)
    grown.append(20)
    compact(grown.context)
    found = grown.lake.files().files
    assert [(each.first, each.last) for each in found] == [(1, 4), (5, 8), (9, 12), (13, 16), (17, 20)]
    assert {each.zone for each in found} == {"z0"}


def test_a_quad_is_rewritten_as_often_as_files_grow_fourfold(grown: Grown) -> None:
    moved = 0
    for _ in range(20):
        grown.append(1)
        moved += compact(grown.context)
    rows = sum(grown.rows().values())
    assert rows == 40
    assert len(grown.lake.files().files) <= 8
    assert moved / rows <= 3


@pytest.mark.parametrize(
    ("sizes", "groups"),
    [
        ([], []),
        ([2_500, 4_500], []),
        ([5, 5, 5], []),
        ([5, 5, 5, 5], [4]),
        ([5, 5, 2_500, 5, 5], []),
        ([1_500, 1_000], [2]),
        ([500, 5, 5, 5, 5], [4]),
        ([5, 500] * 10, []),
        ([5, 500] * 17, [10, 10, 10, 4]),
    ],
)
def test_small_files_of_a_size_that_lie_side_by_side_become_one(sizes: list[int], groups: list[int]) -> None:
    files = tuple(DataFile(str(n), 1, size, {"position": (n, n)}, "z0") for n, size in enumerate(sizes))
    found = mergeable_groups(Snapshot("", 1, 1, 0, -1, files), 4_096)
    assert [len(group) for group in found] == groups


def test_compaction_is_due_by_files_or_by_quads() -> None:
    def snapshot(*sizes: int) -> Snapshot:
        files = tuple(DataFile(str(n), 1, size, {"position": (n, n)}) for n, size in enumerate(sizes))
        return Snapshot("", 1, 1, 0, -1, files)

    assert not is_compaction_due(snapshot(*[1] * (FRESH_FILES - 1)))
    assert is_compaction_due(snapshot(*[1] * FRESH_FILES))
    assert is_compaction_due(snapshot(COMPACTED_QUADS))
    assert len(fresh_files(snapshot(1, 2))) == 2
