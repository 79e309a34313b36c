"""Moments: positions with the times at which batches are done."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import cast

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.spark.jobs.frames import one_process
from triplewire.spark.jobs.source import Batching, SourcePorts, TimedLogReader, frame_of_ranges, split_positions
from triplewire.storage.signals import SignalReceiver, SignalSender
from triplewire.testing import open_twin, publication
from triplewire.testing.doubles import Twin

SECOND = 1_000_000


def reader(stores: Twin, due: Path, events: int = 10, interval: float = 0.0) -> TimedLogReader:
    ports = SourcePorts(lambda: stores.log, lambda: SignalReceiver(due.parent / "signals"), due, interval)
    return TimedLogReader(ports, Batching(0, events), stores.clock)


def test_tasks_read_what_offsets_say(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with open_twin("memory") as stores:
        stores.log.append([publication(*range(10))])
        found = reader(stores, tmp_path / "due")
        end = found.latestOffset({"position": 0, "time": 0}, found.getDefaultReadLimit())
        stores.log.append([publication(11)])
        assert found.partitions({"position": 3, "time": 0}, end) == []
        spark = cast("SparkSession", one_process(monkeypatch))
        frame = frame_of_ranges(spark, lambda: stores.log, split_positions(3, end["position"], 2))
        (entries,) = frame.read(iter([pa.record_batch({"id": [0]})]))
        assert frame.alone
        assert entries["position"].to_pylist() == list(range(4, 11))


def test_without_ranges_one_task_reads_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with open_twin("memory") as stores:
        frame = frame_of_ranges(cast("SparkSession", one_process(monkeypatch)), lambda: stores.log, [])
        assert frame.alone
        assert [*frame.read(iter([pa.record_batch({"id": [0]})]))] == []


def test_a_source_without_events_waits_for_a_commit(tmp_path: Path) -> None:
    """The signal ends the wait, long before the interval does."""
    with open_twin("memory") as stores:
        found = reader(stores, tmp_path / "due", interval=3_600.0)
        stores.log.append([publication(1)])
        start = found.latestOffset({"position": 0, "time": 0}, found.getDefaultReadLimit())
        with ThreadPoolExecutor(1) as threads:
            ended = threads.submit(found.latestOffset, start, found.getDefaultReadLimit())
            stores.log.append([publication(2)])
            SignalSender(tmp_path / "signals").send()
            assert ended.result()["position"] == 2


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
