"""The lake: whole commits, each batch once, and a table that others can read."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable

from triplewire.lake.delta import DeltaLake
from triplewire.lake.ports import Batch, DataFile, Snapshot
from triplewire.lake.quads import QUADS, FileWriter
from triplewire.log.entries import table
from triplewire.model import Event
from triplewire.testing import event


def entries(*events: Event, first: int = 1) -> pa.Table:
    rows = [
        (at, "test", each.id, each.text, "source", None, 1_000_000, 2_000_000, "text/turtle", None)
        for at, each in enumerate(events, first)
    ]
    return table([rows])


@pytest.fixture
def written(tmp_path: Path) -> DataFile:
    return FileWriter(tmp_path / "quads").write(entries(event(1), event(2)))


def test_before_the_first_commit_there_is_nothing(tmp_path: Path) -> None:
    assert DeltaLake(tmp_path / "quads").files() == Snapshot(-1, 0, ())


def test_a_commit_is_seen_whole_by_every_reader(tmp_path: Path, written: DataFile) -> None:
    assert written.rows == 4
    reader = DeltaLake(tmp_path / "quads")
    reader.files()
    assert DeltaLake(tmp_path / "quads").commit(Batch("q", 0, 7), [written])
    found = reader.files()
    assert found.upto == 7
    assert [Path(each).name for each in found.files] == [written.path]


def test_a_replayed_batch_is_not_stored_twice(tmp_path: Path, written: DataFile) -> None:
    lake = DeltaLake(tmp_path / "quads")
    assert lake.commit(Batch("q", 0, 7), [written])
    again = FileWriter(tmp_path / "quads").write(entries(event(1), event(2)))
    assert not DeltaLake(tmp_path / "quads").commit(Batch("q", 0, 7), [again])
    assert len(lake.files().files) == 1
    assert lake.commit(Batch("another query", 0, 9), [again])


def test_a_batch_without_events_moves_the_end(tmp_path: Path) -> None:
    lake = DeltaLake(tmp_path / "quads")
    assert lake.commit(Batch("q", 0, 7), [])
    assert (lake.files().upto, lake.files().files) == (7, ())


def test_a_file_that_was_never_committed_is_not_part_of_the_table(tmp_path: Path, written: DataFile) -> None:
    lake = DeltaLake(tmp_path / "quads")
    lake.commit(Batch("q", 0, 7), [])
    assert (tmp_path / "quads" / written.path).exists()
    assert lake.files().files == ()


def test_any_delta_reader_opens_it(tmp_path: Path, written: DataFile) -> None:
    DeltaLake(tmp_path / "quads").commit(Batch("q", 0, 7), [written])
    found = pa.table(DeltaTable(tmp_path / "quads").to_pyarrow_table())
    assert found.schema.names == QUADS.names
    assert found.num_rows == 4
    assert pc.sum(found["object_number"]).as_py() == 3.0
    assert set(found["object_kind"].to_pylist()) == {"iri", "literal"}
    assert found["time"][0].as_py().isoformat() == "1970-01-01T00:00:01+00:00"
