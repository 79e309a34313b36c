"""Moments: positions with the times at which batches are done."""

from __future__ import annotations

from pathlib import Path

from triplewire.spark.jobs.exchange import unpack_blocks
from triplewire.spark.jobs.source import Batching, TimedLogReader
from triplewire.testing import open_twin, publication
from triplewire.testing.doubles import Twin

SECOND = 1_000_000


def reader(stores: Twin, path: Path, events: int = 10) -> TimedLogReader:
    return TimedLogReader(lambda: stores.log, Batching(0, 1, events), stores.clock, path)


def test_a_batch_is_what_its_offsets_say(tmp_path: Path) -> None:
    with open_twin("memory") as stores:
        stores.log.append([publication(*range(10))])
        found = reader(stores, tmp_path / "due")
        end = found.latestOffset({"position": 0, "time": 0}, found.getDefaultReadLimit())
        stores.log.append([publication(11)])
        (part,) = found.partitions({"position": 3, "time": 0}, end)
        (entries,) = unpack_blocks(found.read(part))
        assert entries["position"].to_pylist() == list(range(4, 11))


def test_a_batch_that_takes_all_has_the_time_of_the_clock(tmp_path: Path) -> None:
    with open_twin("memory") as stores:
        found = reader(stores, tmp_path / "due")
        stores.log.append([publication(1)])
        stores.clock.advance(5)
        end = found.latestOffset({"position": 0, "time": 0}, found.getDefaultReadLimit())
        assert end == {"position": 1, "time": stores.clock.now()}


def test_a_batch_that_is_cut_ends_when_the_next_event_was_received(tmp_path: Path) -> None:
    """Else windows would close before events that belong to them were read."""
    with open_twin("memory") as stores:
        found, began = reader(stores, tmp_path / "due", events=2), stores.clock.now()
        for number in range(5):
            stores.log.append([publication(number)])
            stores.clock.advance(1)
        offset, ends = {"position": 0, "time": 0}, []
        for _ in range(3):
            offset = found.latestOffset(offset, found.getDefaultReadLimit())
            ends.append((offset["position"], (offset["time"] - began) / SECOND))
        assert ends == [(2, 2.0), (4, 4.0), (5, 5.0)]


def test_without_events_a_batch_comes_when_one_is_due_and_not_before(tmp_path: Path) -> None:
    due = tmp_path / "due"
    with open_twin("memory") as stores:
        found = reader(stores, due)
        start = {"position": 0, "time": stores.clock.now()}
        stores.clock.advance(1)
        assert found.latestOffset(start, found.getDefaultReadLimit()) == start
        due.write_text(str(stores.clock.now()))
        assert found.latestOffset(start, found.getDefaultReadLimit()) == {"position": 0, "time": stores.clock.now()}


def test_time_does_not_go_back_with_the_clock(tmp_path: Path) -> None:
    with open_twin("memory") as stores:
        found, later = reader(stores, tmp_path / "due"), stores.clock.now() + 9 * SECOND
        stores.log.append([publication(1)])
        end = found.latestOffset({"position": 0, "time": later}, found.getDefaultReadLimit())
        assert end == {"position": 1, "time": later}
