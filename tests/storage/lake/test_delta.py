"""The lake: whole commits, each batch once, and a table that others can read."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable

from triplewire.model import Event
from triplewire.model.errors import Conflict, NotFound
from triplewire.rdf.headers import extensions_to_json
from triplewire.storage.lake.data_files import TABLE, FileWriter
from triplewire.storage.lake.delta import DeltaLake
from triplewire.storage.lake.ports import CommitBatch, DataFile, Snapshot, TableChange
from triplewire.storage.log.appending import entries_table
from triplewire.testing import event


def entries(*events: Event, first: int = 1) -> pa.Table:
    rows = [
        (at, "test", each.id, each.text, "source", None, 1_000_000, 2_000_000, "text/turtle", others)
        for at, each in enumerate(events, first)
        for others in [extensions_to_json(each.headers.extensions)]
    ]
    return entries_table([rows])


@pytest.fixture
def written(tmp_path: Path) -> DataFile:
    return FileWriter(tmp_path / "quads").write(entries(event(1), event(2)))


def test_before_the_first_commit_there_is_nothing(tmp_path: Path) -> None:
    assert DeltaLake(tmp_path / "quads").files() == Snapshot.empty(str(tmp_path / "quads"))


def test_a_commit_is_seen_whole_by_every_reader(tmp_path: Path, written: DataFile) -> None:
    assert written.rows == 4
    reader = DeltaLake(tmp_path / "quads")
    reader.files()
    assert DeltaLake(tmp_path / "quads").commit(CommitBatch("q", 0, 7), [written])
    found = reader.files()
    assert found.position == 7
    assert [each.path for each in found.files] == [written.path]


def test_a_replayed_batch_is_not_stored_twice(tmp_path: Path, written: DataFile) -> None:
    lake = DeltaLake(tmp_path / "quads")
    assert lake.commit(CommitBatch("q", 0, 7), [written])
    again = FileWriter(tmp_path / "quads").write(entries(event(1), event(2)))
    assert not DeltaLake(tmp_path / "quads").commit(CommitBatch("q", 0, 7), [again])
    assert len(lake.files().files) == 1
    assert lake.commit(CommitBatch("another query", 0, 9), [again])


def test_a_batch_without_events_moves_the_end(tmp_path: Path) -> None:
    lake = DeltaLake(tmp_path / "quads")
    assert lake.commit(CommitBatch("q", 0, 7), [])
    assert (lake.files().position, lake.files().files) == (7, ())


def test_a_file_that_was_never_committed_is_not_part_of_the_table(tmp_path: Path, written: DataFile) -> None:
    lake = DeltaLake(tmp_path / "quads")
    lake.commit(CommitBatch("q", 0, 7), [])
    assert (tmp_path / "quads" / written.path).exists()
    assert lake.files().files == ()


def test_any_delta_reader_opens_it(tmp_path: Path, written: DataFile) -> None:
    DeltaLake(tmp_path / "quads").commit(CommitBatch("q", 0, 7), [written])
    found = pa.table(DeltaTable(tmp_path / "quads").to_pyarrow_table())
    assert found.schema.names == TABLE.names
    assert found.num_rows == 4
    assert pc.sum(found["object_number"]).as_py() == 3.0
    assert set(found["object_kind"].to_pylist()) == {"iri", "literal"}
    assert found["time"][0].as_py().isoformat() == "1970-01-01T00:00:01+00:00"


def test_a_change_puts_files_in_place_of_others_beside_what_is_appended(tmp_path: Path, written: DataFile) -> None:
    writer = FileWriter(tmp_path / "quads")
    lake, keeper = DeltaLake(tmp_path / "quads"), DeltaLake(tmp_path / "quads")
    lake.commit(CommitBatch("q", 0, 7), [written])
    before = keeper.files()
    lake.commit(CommitBatch("q", 1, 9), [writer.write(entries(event(3), first=8))])
    writer.duck.read_parquet(before.paths[0]).create_view("old")
    moved = writer.write_quads("old", zone="7")
    keeper.replace(TableChange(before.files, (moved,), zones=3))
    found = lake.files()
    assert [(each.zone, each.rows) for each in found.files] == [("7", 4), (None, 2)]
    assert (found.position, found.removals, found.zones) == (9, 0, 3)
    assert lake.files(before.version) == before
    assert DeltaTable(tmp_path / "quads").to_pyarrow_table(filters=[("zone", "=", "7")]).num_rows == 4


def test_a_file_is_replaced_once(tmp_path: Path, written: DataFile) -> None:
    lake = DeltaLake(tmp_path / "quads")
    lake.commit(CommitBatch("q", 0, 7), [written])
    lake.replace(TableChange((written,), (), lost=True))
    assert (lake.files().removals, lake.files().files) == (1, ())
    with pytest.raises(Conflict, match="no file"):
        lake.replace(TableChange((written,), ()))


def test_what_is_no_version_is_not_found(tmp_path: Path, written: DataFile) -> None:
    lake = DeltaLake(tmp_path / "quads")
    with pytest.raises(NotFound):
        lake.files(0)
    lake.commit(CommitBatch("q", 0, 7), [written])
    with pytest.raises(NotFound, match="no version 99"):
        lake.files(99)
    assert lake.files(datetime.now(UTC)) == lake.files()
