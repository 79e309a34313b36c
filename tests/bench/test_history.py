"""`bench history`: its data are what it says, the rival gets the same, and a small run over the real query."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pyarrow as pa
import pytest

from bench.city import HOURS, QUADS, START, Day, write_nquads
from bench.history import AIMS, GatedLog, draw, run
from triplewire.model.clock import ManualClock
from triplewire.rdf import N_QUADS, decode
from triplewire.storage.log.ports import Publication
from triplewire.storage.memory import MemoryLog, PositionSequence


def test_an_event_reads_as_the_rival_reads_it() -> None:
    day = Day(10_000)
    events = [day.make_event(number) for number in (0, 1, 77, day.events - 1)]
    read = decode(write_nquads(Publication("s", events)), N_QUADS)
    assert [(each.id, each.text) for each in read] == [(each.id, each.text) for each in events]


@pytest.mark.parametrize("wanted", [10_000, 100_000, 5_000_000])
def test_a_day_has_as_many_quads_as_were_wished_for(wanted: int) -> None:
    day = Day(wanted)
    assert day.quads == wanted
    assert {len(day.make_event(number).quads) for number in range(0, day.events, day.events // 10)} == {QUADS}


def test_events_come_in_order_and_all_day() -> None:
    day = Day(80_000)
    times = [day.make_event(number).headers.time or 0 for number in range(day.events)]
    assert times == sorted(times)
    ends = [datetime.fromtimestamp(each / 1e6, UTC) for each in (times[0], times[-1])]
    assert timedelta(0) <= ends[0] - START < timedelta(minutes=1)
    assert timedelta(0) <= START + timedelta(hours=HOURS) - ends[1] < timedelta(minutes=1)


def test_there_are_subjects_that_come_once_and_such_that_come_again() -> None:
    day = Day(80_000)
    subjects = [quad.subject for number in range(day.events) for quad in day.make_event(number).quads]
    assert subjects.count(day.observation(5)) == 5
    assert subjects.count(day.sensor(5)) > 100


def test_a_gate_shows_the_first_events_until_it_is_open(tmp_path: Path) -> None:
    log = MemoryLog(PositionSequence(), ManualClock())
    day = Day(10_000)
    for publication in day.make_publications(100):
        log.append([publication])
    gated = GatedLog(log, 10, tmp_path / "gate")
    assert gated.head() == 10
    (tmp_path / "gate").touch()
    assert gated.head() == day.events
    assert gated.read(3, 5, 9)["position"] == pa.chunked_array([[4, 5]])


REPORT: dict[str, Any] = {
    "quads": 10_000,
    "ingest": {"quads_per_s": 300_000},
    "oxigraph": {"quads_per_s": 100_000},
    "ratio": 3.0,
    "bytes_per_quad": {"compacted": 40.0},
    "reads": {name: {"share": 0.01} for name in ("predicate", "sensor", "observation", "hour")},
    "freshness_ms": {"max": 1_100},
}


def test_the_picture_tells_what_was_met_and_what_missed() -> None:
    tree = ElementTree.fromstring(draw(REPORT))
    bars = [each.get("fill") for each in tree.iter() if each.get("height") == "14"]
    assert len(bars) == len(AIMS)
    assert [aim.title for aim in AIMS if not aim.is_met(REPORT)] == ["bytes for a quad"]
    assert len(set(bars)) == 2


@pytest.mark.spark
def test_a_small_run_over_the_real_query() -> None:
    said: list[str] = []
    report = run(16_000, said.append)
    assert report["quads"] == 16_000
    assert report["ingest"]["quads_per_s"] > 0
    assert all(0 < each < 60 for each in report["bytes_per_quad"].values())
    reads = report["reads"]
    assert reads["observation"]["rows"] == 5
    assert 500 < reads["predicate"]["rows"] <= 2_010
    assert 50 < reads["hour"]["rows"] < 120
    assert reads["sensor"]["rows"] > 10
    assert all(each["of"] == report["files"]["compacted"] for each in reads.values())
    assert report["ratio"] > 0
    assert any("pyoxigraph" in each for each in said)
