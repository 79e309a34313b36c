"""`bench hour`: what is committed is a second's events, house is kept beside it, and its figures are what they say."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import TypeVar
from xml.etree import ElementTree

import pytest

from bench.city import QUADS
from bench.harness import Disagreement
from bench.hour import (
    FILES,
    Commits,
    FrozenLake,
    HourRun,
    HourSample,
    QueryCost,
    QueryTimer,
    compare_samples,
    draw,
    make_day,
    write_queries,
)
from triplewire.config import Settings
from triplewire.model.clock import ManualClock
from triplewire.spark.jobs.maintenance import MaintenanceRules
from triplewire.storage.lake.delta import DeltaLake
from triplewire.storage.lake.maintenance import run_sequentially
from triplewire.storage.lake.ports import TableChange

T = TypeVar("T")
R = TypeVar("R")

RATE = 4


def test_a_commit_is_the_events_of_a_second_in_two_files(tmp_path: Path) -> None:
    clock = ManualClock()
    with closing(Commits(tmp_path / "quads", RATE, clock)) as commits:
        commits.commit()
        found = commits.commit()
    assert [(each.first, each.last, each.rows) for each in found.files] == [
        (1, 2, 2 * QUADS),
        (3, 4, 2 * QUADS),
        (5, 6, 2 * QUADS),
        (7, 8, 2 * QUADS),
    ]
    assert (found.position, clock.ticks()) == (2 * RATE, 2.0)


def test_an_answer_that_changes_ends_the_run(tmp_path: Path) -> None:
    table, clock = tmp_path / "quads", ManualClock()
    asked = write_queries(make_day(RATE), RATE)
    with closing(Commits(table, RATE, clock)) as commits, closing(QueryTimer(DeltaLake(table), table, asked)) as asker:
        for _ in range(12):
            found = commits.commit()
        asker.prepare()
        assert asker.measure_all()["event"].rows == QUADS
        commits.lake.replace(TableChange(found.files[-2 * FILES :], (), lost=True))
        with pytest.raises(Disagreement, match="not what it was"):
            asker.measure_all()


def test_a_lake_that_is_kept_answers_when_its_files_are_gone(tmp_path: Path) -> None:
    table, asked = tmp_path / "quads", write_queries(make_day(RATE), RATE)
    with closing(Commits(table, RATE, ManualClock())) as commits:
        for _ in range(12):
            found = commits.commit()
    with closing(QueryTimer(FrozenLake(found, tmp_path / "kept"), tmp_path / "kept", asked)) as asker:
        for each in found.paths:
            Path(each).unlink()
        assert asker.measure_all()["event"].rows == QUADS


def test_the_time_goes_by_with_maintenance_beside_it(tmp_path: Path) -> None:
    said: list[str] = []
    rules = MaintenanceRules(fresh_files=16)
    with closing(HourRun(1, RATE, Settings(data=tmp_path), rules, run_sequentially)) as hour:
        report = hour.measure(said.append)
    assert report["quads"] == 60 * RATE * QUADS
    assert report["rows"] == {"sensor": 5, "event": 5 * QUADS, "stretch": 5}
    assert [each["second"] for each in report["samples"]] == [60]
    assert len(said) == 1
    files, last = report["files"], report["samples"][-1]
    assert files["after_a_minute"] == report["samples"][0]["files"]
    assert 16 <= files["most"] < 60
    assert last["fresh"] < last["files"] == files["at_the_end"]
    assert last["versions"] > 60
    assert report["house"]["rewritten"] > 0.7
    assert report["latency_ms"]["at_the_end"].keys() == report["ratio"].keys() == report["rows"].keys()
    assert report["in_turn"]["ms"]["ratio"].keys() == report["rows"].keys()
    assert all(each > 0 for opened in report["in_turn"]["opened"].values() for each in opened.values())
    assert last["newest_ms"] > 0
    assert report["disk_bytes"] > last["bytes"] > 0
    tree = ElementTree.fromstring(draw(report))
    lines = [each.get("points", "").split() for each in tree.iter() if each.tag.endswith("polyline")]
    assert [len(each) for each in lines] == [1] * 8


def sampled(second: int, milliseconds: float, *, busy: bool = False) -> HourSample:
    asked = {"event": QueryCost(milliseconds, milliseconds / 2, 1.0, 1)}
    return HourSample(second, 1, 1, 1, 1, 1, 1.0, busy, 3 * milliseconds, asked)


def test_the_last_minute_is_compared_with_the_second_one_while_maintenance_rests() -> None:
    first = [sampled(60, 2), sampled(80, 4), sampled(100, 70, busy=True), sampled(120, 9), sampled(140, 99)]
    last = [sampled(400, 7), sampled(440, 50, busy=True), sampled(460, 9)]
    assert compare_samples(first + last) == {
        "latency_ms": {
            "after_a_minute": {"event": 4},
            "at_the_end": {"event": 8},
            "beside_housekeeping": {"event": 60},
        },
        "ratio": {"event": 2.0},
        "cpu_ms": {
            "after_a_minute": {"event": 2},
            "at_the_end": {"event": 4},
            "beside_housekeeping": {"event": 30},
        },
        "cpu_ratio": {"event": 2.0},
        "newest_ms": {"after_a_minute": 12, "at_the_end": 24, "beside_housekeeping": 180},
    }


def test_maintenance_that_never_rests_is_no_reason_to_compare_nothing() -> None:
    found = compare_samples([sampled(60, 2), sampled(400, 6, busy=True)])
    assert found["ratio"] == {"event": 3.0}


def test_maintenance_that_fails_ends_the_run(tmp_path: Path) -> None:
    def broken(function: Callable[[T], Iterable[R]], items: Sequence[T]) -> list[R]:
        raise OSError("no space left on device")

    with (
        closing(HourRun(1, RATE, Settings(data=tmp_path), MaintenanceRules(fresh_files=4), broken)) as hour,
        pytest.raises(OSError, match="no space"),
    ):
        hour.measure(lambda text: None)
