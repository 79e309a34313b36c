"""Reads: how often zones were read, over all processes, and less the longer ago."""

from __future__ import annotations

from pathlib import Path

import pytest

from triplewire.model.clock import ManualClock
from triplewire.storage.lake.read_counts import READ_COUNT_SECONDS, READ_COUNT_ZONES, ReadCounter, load_read_counts

HOUR = 3_600


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def counted(folder: Path, clock: ManualClock, *zones: str | None, most: int = READ_COUNT_ZONES) -> ReadCounter:
    tally = ReadCounter(folder, clock, zones=most)
    tally.add(zones)
    clock.advance(READ_COUNT_SECONDS)
    tally.save()
    return tally


def test_processes_are_added_up_and_what_is_fresh_is_in_no_zone(tmp_path: Path, clock: ManualClock) -> None:
    counted(tmp_path, clock, "a", "a", None, "b")
    counted(tmp_path, clock, "a", None)
    assert load_read_counts(tmp_path, clock.now()) == pytest.approx({"a": 3, "b": 1}, rel=0.02)
    assert load_read_counts(tmp_path / "nowhere", clock.now()) == {}


def test_after_an_hour_it_is_worth_half(tmp_path: Path, clock: ManualClock) -> None:
    tally = counted(tmp_path, clock, "a", "a")
    clock.advance(HOUR)
    assert load_read_counts(tmp_path, clock.now()) == pytest.approx({"a": 1}, rel=0.02)
    tally.add(["a"])
    tally.save()
    assert load_read_counts(tmp_path, clock.now()) == pytest.approx({"a": 2}, rel=0.02)


def test_it_is_written_now_and_then_only(tmp_path: Path, clock: ManualClock) -> None:
    tally = counted(tmp_path, clock, "a")
    tally.add(["a"])
    tally.save()
    assert load_read_counts(tmp_path, clock.now()) == pytest.approx({"a": 1}, rel=0.02)
    clock.advance(READ_COUNT_SECONDS)
    tally.save()
    assert load_read_counts(tmp_path, clock.now()) == pytest.approx({"a": 2}, rel=0.02)


def test_only_what_is_read_most_is_remembered(tmp_path: Path, clock: ManualClock) -> None:
    counted(tmp_path, clock, "a", "b", "b", "c", most=1)
    assert [*load_read_counts(tmp_path, clock.now())] == ["b"]


@pytest.mark.parametrize("torn", [b"", b'{"at": 1', b"[]", b'{"at": "x", "zones": {"a": 1}}', b'{"zones": 7}'])
def test_a_torn_file_counts_nothing(tmp_path: Path, clock: ManualClock, torn: bytes) -> None:
    counted(tmp_path, clock, "a")
    (tmp_path / "torn.json").write_bytes(torn)
    assert [*load_read_counts(tmp_path, clock.now())] == ["a"]


def test_where_it_cannot_be_written_nobody_is_told(tmp_path: Path, clock: ManualClock) -> None:
    (tmp_path / "reads").write_text("a file in the place of a folder")
    counted(tmp_path / "reads", clock, "a")
    assert load_read_counts(tmp_path / "reads", clock.now()) == {}
