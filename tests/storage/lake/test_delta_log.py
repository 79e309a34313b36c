"""Commits: who follows the table's log sees what delta-rs sees in the table."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from hypothesis import given, settings
from hypothesis import strategies as st

from triplewire.storage.lake.delta import DeltaLake
from triplewire.storage.lake.ports import ColumnRange, CommitBatch, DataFile, Snapshot, TableChange

TEXTS = st.text(min_size=1, max_size=8)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
NUMBERS = st.one_of(st.sampled_from([-1.0, 0.0, 3.0, 1e300, 2.0**-1074]), FLOATS)
TIMES = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC))
COLUMNS: Mapping[str, st.SearchStrategy[Any]] = {
    "graph": TEXTS,
    "object": TEXTS,
    "object_number": NUMBERS,
    "object_time": TIMES,
    "received": TIMES,
}
ZONES = st.sampled_from(["z0", "z1", "a zone/with %41 signs"])


@st.composite
def files(draw: st.DrawFn) -> DataFile:
    """None of which is on the disk: a commit does not look."""
    rows, first = draw(st.integers(1, 9)), draw(st.integers(1, 50))
    ranges: dict[str, ColumnRange] = {"position": (first, first + draw(st.integers(0, 9)))}
    for name, values in COLUMNS.items():
        known = draw(st.sampled_from(["range", "none", "unknown"]))
        if known == "range":
            low, high = sorted([draw(values), draw(values)])
            ranges[name] = low, high
        elif known == "none":
            ranges[name] = None, None
    return DataFile(f"quads {draw(st.uuids())}.parquet", draw(st.integers(1, 10**6)), rows, ranges)


def moved(file: DataFile, zone: str) -> DataFile:
    return DataFile(f"zone={zone}/{file.path}", file.size, file.rows, file.ranges, zone)


WORDS = st.one_of(
    st.lists(files(), max_size=3),
    st.tuples(st.just("move"), ZONES),
    st.tuples(st.just("lose"), ZONES),
    st.sampled_from(["renamed", "checkpoint", "nobody looks"]),
)


class Lakes:
    """One that writes, one that follows."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "quads"
        self.writer, self.reader = DeltaLake(self.path), DeltaLake(self.path)
        self._batches = 0

    def done(self, word: list[DataFile] | tuple[str, str] | str) -> None:
        match word:
            case list():
                self._batches += 1
                self.writer.commit(CommitBatch("q", self._batches, 100 * self._batches), word)
            case (what, zone) if self._batches:
                taken = self.writer.files().files[:2]
                made = tuple(moved(each, f"{zone}{self.writer.files().version}") for each in taken)
                self.writer.replace(TableChange(taken, made, lost=what == "lose", zones=self._batches))
            case "renamed" if self._batches:
                DeltaTable(self.path).alter.set_table_name(f"quads {self._batches}")
            case "checkpoint" if self._batches:
                DeltaTable(self.path).create_checkpoint()

    def seen(self) -> tuple[Snapshot, list[Mapping[str, ColumnRange]]]:
        return told(self.reader.files())

    def there(self) -> tuple[Snapshot, list[Mapping[str, ColumnRange]]]:
        return told(DeltaLake(self.path).files())


def told(snapshot: Snapshot) -> tuple[Snapshot, list[Mapping[str, ColumnRange]]]:
    """With what is said of files, which is no part of what they are."""
    return snapshot, [each.ranges for each in snapshot.files]


@given(st.lists(WORDS, min_size=1, max_size=8))
@settings(max_examples=60, deadline=None)
def test_whoever_follows_sees_what_is_there(words: list[list[DataFile] | tuple[str, str] | str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        lakes = Lakes(Path(folder))
        for word in words:
            lakes.done(word)
            if word != "nobody looks":
                assert lakes.seen() == lakes.there()


@pytest.fixture
def lakes(tmp_path: Path) -> Lakes:
    made = Lakes(tmp_path)
    made.done([DataFile("a.parquet", 1, 1, {"position": (1, 1)})])
    made.reader.files()
    return made


def test_the_table_is_not_read_again_for_what_its_log_says(lakes: Lakes, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes the longer the more files there are; an entry of the log does not."""
    for number in range(3):
        lakes.done([DataFile(f"b{number}.parquet", 1, 1, {"position": (2 + number, 2 + number)})])
    lakes.done(("move", "z1"))
    expected = lakes.there()
    monkeypatch.setattr(DeltaLake, "_current", lambda _: pytest.fail("the table was read again"))
    assert lakes.seen() == expected


def test_whoever_is_far_behind_reads_the_table(lakes: Lakes) -> None:
    for number in range(120):
        lakes.done([DataFile(f"b{number}.parquet", 1, 1, {"position": (2 + number, 2 + number)})])
    assert lakes.seen() == lakes.there()


def test_entries_that_were_cleaned_away_are_not_missed(lakes: Lakes) -> None:
    for number in range(10):
        lakes.done([DataFile(f"b{number}.parquet", 1, 1, {"position": (2 + number, 2 + number)})])
    DeltaTable(lakes.path).create_checkpoint()
    lakes.done([DataFile("c.parquet", 1, 1, {"position": (90, 90)})])
    for entry in sorted((lakes.path / "_delta_log").glob("*.json"))[:-2]:
        entry.unlink()
    assert lakes.seen() == lakes.there()
    lakes.done([DataFile("d.parquet", 1, 1, {"position": (91, 91)})])
    assert lakes.seen() == lakes.there()
    assert lakes.reader.commit(CommitBatch("another", 1, 1_200), [])
    assert lakes.seen() == lakes.there()
