"""Vacuum and checkpoints: what is old goes, what can still be read stays."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.storage.lake.test_compaction import Grown
from triplewire.model.errors import NotFound
from triplewire.storage.lake.delta import DeltaLake
from triplewire.storage.lake.maintenance import checkpoint, compact, vacuum


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*.parquet") if "_delta_log" not in path.parts}


def test_files_of_older_versions_stay_as_long_as_these_can_be_read(tmp_path: Path) -> None:
    grown, table = Grown(tmp_path), tmp_path / "quads"
    grown.append(2)
    before = grown.lake.files()
    compact(grown.context)
    assert vacuum(table, 24) == []
    assert grown.rows(before) == grown.rows()
    gone = vacuum(table, 0)
    assert gone == [each.path for each in before.files]
    assert files(table) == {each.path for each in grown.lake.files().files}
    with pytest.raises(NotFound, match="can no longer be read: 1 of its files are gone"):
        grown.lake.files(before.version)


def test_what_a_crash_left_behind_goes_when_it_is_old(tmp_path: Path) -> None:
    grown, table = Grown(tmp_path), tmp_path / "quads"
    grown.append(1)
    for name, age in (("new", 0), ("old", 48 * 3_600)):
        left = table / f"{name}.parquet"
        left.write_bytes(b"torn")
        then = left.stat().st_mtime - age
        os.utime(left, (then, then))
    assert vacuum(table, 24) == ["old.parquet"]
    assert "new.parquet" in files(table)


def test_before_the_first_commit_there_is_nothing_to_do(tmp_path: Path) -> None:
    assert vacuum(tmp_path, 1) == []
    assert checkpoint(tmp_path, 1) is None


def test_a_checkpoint_holds_everything(tmp_path: Path) -> None:
    grown, table = Grown(tmp_path), tmp_path / "quads"
    for _ in range(5):
        grown.append(1)
    reader = DeltaLake(table)
    reader.files()
    before = grown.lake.files()
    assert checkpoint(table, 24) is not None
    grown.append(1)
    for found in (DeltaLake(table).files(), reader.files()):
        assert set(before.files) < set(found.files)
        assert found.position == 6
        assert [dict(each.ranges) for each in found.files[:5]] == [dict(each.ranges) for each in before.files]


def test_a_reader_that_is_far_behind_finds_the_newest_version(tmp_path: Path) -> None:
    grown, table = Grown(tmp_path), tmp_path / "quads"
    grown.append(1)
    reader = DeltaLake(table)
    old = reader.files().version
    for _ in range(3):
        grown.append(1)
    checkpoint(table, 24)
    for version in range(old + 3):
        (table / "_delta_log" / f"{version:020d}.json").unlink()
    assert reader.files().position == 4
