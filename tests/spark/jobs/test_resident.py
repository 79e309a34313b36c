"""Resident tasks without Spark around them, and the moves to the slow lane."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from tests.matching.subscriptions import registered
from triplewire.config import Settings
from triplewire.model.clock import ManualClock
from triplewire.service.wiring import pipeline_ports
from triplewire.spark.jobs.ports import JobPorts
from triplewire.spark.jobs.resident import (
    LANE_EVENT_SECONDS,
    LANE_REPORTS,
    LANE_SHARE,
    CostTracker,
    MatchTask,
    move_to_slow_lane,
)
from triplewire.storage.log.ports import Publication
from triplewire.storage.outbox import PART_POSITIONS, OutboxLane
from triplewire.storage.registry.subscriptions import LANE
from triplewire.testing import event
from triplewire.testing.samples import EXAMPLE

FAST, SLOW = OutboxLane.FAST, OutboxLane.SLOW
CHEAP = f"SELECT * {{ ?o <{EXAMPLE}result> ?v }}"
EXPENSIVE = f"SELECT * {{ ?o a <{EXAMPLE}Observation> OPTIONAL {{ ?o <urn:none> ?n }} }}"


@pytest.fixture(autouse=True)
def _unfreeze() -> Iterator[None]:
    yield
    gc.unfreeze()


@pytest.fixture
def ports(tmp_path: Path) -> JobPorts:
    return pipeline_ports(Settings(data=tmp_path))


def subscribe(ports: JobPorts, sparql: str = CHEAP) -> str:
    """Return the key of the shape."""
    shape, made = registered(0, sparql)
    ports.open_registry().put([(shape.kind, shape.key, shape.value), (made.kind, made.key, made.value)])
    return shape.key


def publish(ports: JobPorts, count: int) -> list[int]:
    (positions,) = ports.open_log().append([Publication("test", [event(number) for number in range(count)])])
    return [*positions]


def start(ports: JobPorts, lane: OutboxLane = FAST, after: int = 0, clock: ManualClock | None = None) -> MatchTask:
    (task,) = start_tasks(ports, 1, lane, after, clock=clock)
    return task


def start_tasks(
    ports: JobPorts,
    count: int,
    lane: OutboxLane = FAST,
    after: int = 0,
    block: int = PART_POSITIONS,
    clock: ManualClock | None = None,
) -> list[MatchTask]:
    """Start the tasks of a job, as the driver does."""
    parts = ports.open_outbox("").divide(lane, count, after, block)
    return [MatchTask(ports, part, clock or ManualClock()) for part in parts]


def run(task: MatchTask) -> int:
    """Return how many blocks there were."""
    blocks = 0
    while task.step():
        blocks += 1
    return blocks


def delivered(ports: JobPorts, lane: OutboxLane = FAST) -> list[int]:
    chunks = ports.open_outbox("").read(0, 1_000, lane)
    return pa.concat_tables([each.matches for each in chunks])["position"].to_pylist() if chunks else []


def test_all_that_waits_is_one_block(ports: JobPorts) -> None:
    subscribe(ports)
    task = start(ports)
    positions = publish(ports, 3) + publish(ports, 4)
    assert run(task) == 1
    assert delivered(ports) == positions
    assert not task.step()


def test_a_long_backlog_is_cut_into_blocks(ports: JobPorts) -> None:
    subscribe(ports)
    positions = publish(ports, 7)
    (part,) = ports.open_outbox("").divide(FAST, 1)
    assert run(MatchTask(ports, part, ManualClock(), block_events=3)) == 3
    assert delivered(ports) == positions


def test_a_change_of_the_registry_alone_moves_the_head(ports: JobPorts) -> None:
    task = start(ports)
    subscribe(ports)
    run(task)
    assert ports.open_outbox("").head() == ports.open_log().head()


def test_a_task_begins_at_the_head_of_its_lane(ports: JobPorts) -> None:
    subscribe(ports)
    before = publish(ports, 2)
    run(start(ports))
    after = publish(ports, 2)
    assert run(start(ports)) == 1
    assert delivered(ports) == before + after


def test_matches_that_a_power_failure_took_are_made_again(ports: JobPorts, tmp_path: Path) -> None:
    """Commits of matches are not synced: the outbox may be older than the log when the machine is up again."""
    subscribe(ports)
    positions = publish(ports, 3)
    run(start(ports))
    files = [*tmp_path.glob("outbox.db*")]
    older = {path: path.read_bytes() for path in files if path.is_file()}
    positions += publish(ports, 2)
    run(start(ports))
    gc.collect()
    for path in tmp_path.glob("outbox.db*"):
        if path.is_file():
            path.unlink()
    for path, content in older.items():
        path.write_bytes(content)
    assert delivered(ports) == positions[:3]
    run(start(ports))
    assert delivered(ports) == positions


def test_two_tasks_at_once_lose_nothing_and_double_nothing(ports: JobPorts) -> None:
    """A task that Spark has given up may go on for a while beside the one that replaces it."""
    subscribe(ports)
    (part,) = ports.open_outbox("").divide(FAST, 1)
    tasks, positions = [MatchTask(ports, part, ManualClock()) for _ in range(2)], list[int]()
    for number in range(12):
        positions += publish(ports, 1 + number % 3)
        if number % 4 != 3:
            tasks[number % 2].step()
    for task in tasks:
        run(task)
    assert delivered(ports) == positions


def test_a_shape_that_takes_most_of_the_time_moves_to_the_slow_lane(
    ports: JobPorts, monkeypatch: pytest.MonkeyPatch
) -> None:
    shape, clock = subscribe(ports, EXPENSIVE), ManualClock()
    task = start(ports, clock=clock)
    before = publish(ports, 1)
    run(task)
    monkeypatch.setattr(task._matcher, "spent", lambda: {shape: 0.9})
    for _ in range(LANE_REPORTS):
        clock.advance(1.0)
        move_to_slow_lane(ports.open_registry(), task.report()["expensive"])
    (lane,) = ports.open_registry().list(LANE)
    assert lane.key == shape
    after = publish(ports, 1)
    run(task)
    run(start(ports, SLOW, lane.position))
    assert delivered(ports) == before
    assert delivered(ports, SLOW) == after


def test_a_report_has_the_figures_of_the_task(ports: JobPorts) -> None:
    subscribe(ports)
    task = start(ports)
    publish(ports, 3)
    run(task)
    report = task.report()
    assert (report["position"], report["events"], report["limits"]) == (ports.open_log().head(), 3, {})
    assert report["cpu"] > 0


def settled(costs: list[dict[str, float]], events: int = 10) -> list[dict[str, float]]:
    """Return what becomes of each report, by the seconds that shapes took in it."""
    tracker = CostTracker()
    return [tracker.settle(each, events, 1.0) for each in costs]


def test_a_shape_that_is_expensive_in_some_reports_in_a_row_is_moved_once() -> None:
    found = settled([{"dear": 2.0, "cheap": 0.01}] * (LANE_REPORTS + 3))
    assert found == [{}] * (LANE_REPORTS - 1) + [{"dear": 0.2}] + [{}] * 3


def test_one_cheap_report_begins_the_count_anew() -> None:
    dear, cheap = {"a": 2.0}, {"a": 0.1}
    assert settled([*[dear] * (LANE_REPORTS - 1), cheap, *[dear] * (LANE_REPORTS - 1), {}, dear]) == [{}] * (
        2 * LANE_REPORTS + 1
    )


def test_many_events_may_take_long() -> None:
    events = round(4 * LANE_SHARE / LANE_EVENT_SECONDS)
    assert settled([{"a": 3 * LANE_SHARE}] * 9, events) == [{}] * 9
    assert any(settled([{"a": 5 * LANE_SHARE}] * 9, events))


@pytest.mark.spark
@pytest.mark.timeout(120)
@pytest.mark.parametrize(("tasks", "events"), [(1, 1), (3, 4 * PART_POSITIONS)])
def test_a_task_that_stalls_is_started_again_and_loses_nothing(
    run_python: Callable[[str], str], tmp_path: Path, tasks: int, events: int
) -> None:
    said = run_python(f"from tests.spark.jobs.stalling import main\nmain({str(tmp_path)!r}, {tasks}, {events})")
    delivered, stalled, restarts = said.split()
    assert (delivered, stalled) == ("True", "True")
    assert int(restarts) >= 1
