"""Standings: what each edge tells is what the others read, and those that are gone are not told of."""

from __future__ import annotations

from pathlib import Path

import pytest

from triplewire.config.metrics import Metrics, merge_expositions
from triplewire.config.status import STATUS_STALE_SECONDS, EdgeStatus, read_statuses, remove_status, write_status
from triplewire.config.traffic import StreamTraffic
from triplewire.model.clock import ManualClock


def standing(name: str, clock: ManualClock) -> EdgeStatus:
    flow = StreamTraffic("home", clients=2, messages=10, plain_bytes=900, sent_bytes=90, waiting=5, linger=0.5)
    return EdgeStatus(
        name, 7, "ready", at=clock.now(), cpu=1.5, listeners={"streams": 2}, max_listeners=9, streams=(flow,)
    )


def test_what_is_told_is_read_by_all_in_the_order_of_names(tmp_path: Path) -> None:
    clock = ManualClock()
    for name in ("10", "2", "1"):
        write_status(tmp_path, standing(name, clock))
    assert read_statuses(tmp_path, clock) == [standing(name, clock) for name in ("1", "2", "10")]
    remove_status(tmp_path, "2")
    remove_status(tmp_path, "2")
    assert [each.name for each in read_statuses(tmp_path, clock)] == ["1", "10"]


def test_who_is_silent_for_long_is_gone(tmp_path: Path) -> None:
    clock = ManualClock()
    write_status(tmp_path, standing("1", clock))
    clock.advance(STATUS_STALE_SECONDS)
    write_status(tmp_path, standing("2", clock))
    assert [each.name for each in read_statuses(tmp_path, clock)] == ["1", "2"]
    clock.advance(0.1)
    assert [each.name for each in read_statuses(tmp_path, clock)] == ["2"]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"name": "1"}', '{"name": "1", "streams": [{"colour": 1}]}'])
def test_a_file_that_is_none_is_passed_over(tmp_path: Path, text: str) -> None:
    (tmp_path / "1.json").write_text(text)
    assert read_statuses(tmp_path, ManualClock()) == []


def test_there_need_be_no_folder(tmp_path: Path) -> None:
    assert read_statuses(tmp_path / "none", ManualClock()) == []


def test_expositions_stand_side_by_side_by_edge() -> None:
    one, two = Metrics(), Metrics()
    one.events.inc(3)
    one.head.set(8)
    one.lake["files"].set(5)
    two.delivered.labels("events").inc(4)
    text = merge_expositions("1", one.exposition().decode(), {"2": two.exposition().decode()}).decode()
    lines = text.splitlines()
    assert 'triplewire_events_published_total{edge="1"} 3.0' in lines
    assert 'triplewire_events_published_total{edge="2"} 0.0' in lines
    assert 'triplewire_delivered_total{edge="2",of="events"} 4.0' in lines
    assert len([line for line in lines if line.startswith("# TYPE triplewire_events_published_total ")]) == 1
    assert [line for line in lines if line.startswith("triplewire_log_head")] == ["triplewire_log_head 8.0"]
    assert "triplewire_lake_files 5.0" in lines
