"""A watch tells that something was written, whoever wrote it."""

from __future__ import annotations

from pathlib import Path

from triplewire.model import END
from triplewire.model.clock import ManualClock
from triplewire.storage.log.ports import LogRetention
from triplewire.storage.log.sqlite import SqliteLog
from triplewire.storage.registry.sqlite import SqliteRegistry
from triplewire.storage.sqlite import CommitWatch
from triplewire.testing import publication


def test_what_is_there_at_first_counts_as_a_change_and_then_only_what_is_new(tmp_path: Path) -> None:
    log = SqliteLog(tmp_path / "log.db", ManualClock())
    watch = CommitWatch(tmp_path / "log.db")
    assert [watch.changed(), watch.changed()] == [True, False]
    log.append([publication(1)])
    assert [watch.changed(), watch.changed()] == [True, False]
    watch.close()


def test_the_registry_is_seen_through_the_same_file(tmp_path: Path) -> None:
    registry = SqliteRegistry(tmp_path / "log.db", ManualClock())
    watch = CommitWatch(tmp_path / "log.db")
    watch.changed()
    registry.put([("kind", "key", {})])
    assert watch.changed()
    watch.close()


def test_reading_and_trimming_nothing_are_no_changes(tmp_path: Path) -> None:
    log = SqliteLog(tmp_path / "log.db", ManualClock())
    log.append([publication(1)])
    watch = CommitWatch(tmp_path / "log.db")
    watch.changed()
    log.read(0, END, 10)
    log.head()
    log.trim(LogRetention(age=1), END)
    log.append([publication()])
    SqliteLog(tmp_path / "log.db", ManualClock())
    assert not watch.changed()
    watch.close()


def test_a_file_that_is_not_there_yet_is_awaited_and_not_made(tmp_path: Path) -> None:
    watch = CommitWatch(tmp_path / "log.db")
    assert not watch.changed()
    assert list(tmp_path.iterdir()) == []
    SqliteLog(tmp_path / "log.db", ManualClock())
    assert watch.changed()
    watch.close()
