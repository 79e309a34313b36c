"""The slow lane and the main one, as workers run them: what one leaves out the other tells."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from tests.matching.subscriptions import registered
from triplewire.config import Settings
from triplewire.model import MATCHED_COLUMNS
from triplewire.service.wiring import pipeline_ports
from triplewire.spark.jobs.match import SlowLaneMatcher, open_matcher
from triplewire.spark.jobs.ports import JobPorts
from triplewire.spark.jobs.resident import move_to_slow_lane
from triplewire.storage.log.ports import Publication
from triplewire.storage.outbox import OutboxLane
from triplewire.storage.registry.subscriptions import LANE, SUBSCRIPTION
from triplewire.testing import event
from triplewire.testing.samples import EXAMPLE

DEAR = f"SELECT * {{ ?o a <{EXAMPLE}Observation> OPTIONAL {{ ?o <urn:none> ?n }} }}"
CHEAP = f"SELECT * {{ ?o <{EXAMPLE}result> ?v }}"


@pytest.fixture(autouse=True)
def _as_in_a_worker() -> Iterator[None]:
    yield
    gc.unfreeze()


@pytest.fixture
def ports(tmp_path: Path) -> JobPorts:
    return pipeline_ports(Settings(data=tmp_path))


def subscribe(ports: JobPorts, sparql: str, id: str) -> str:
    """Gives the key of the shape."""
    shape, made = registered(0, sparql)
    ports.open_registry().put([(shape.kind, shape.key, shape.value), (made.kind, id, made.value)])
    return shape.key


def publish(ports: JobPorts) -> int:
    ((position,),) = ports.open_log().append([Publication("test", [event(1)])])
    return position


def entries(ports: JobPorts, after: int = 0) -> pa.Table:
    log = ports.open_log()
    return log.read(after, log.head(), 100).select(MATCHED_COLUMNS)


def positions(matches: pa.Table) -> set[int]:
    """Of those matches that name a subscription."""
    return {row["position"] for row in matches.to_pylist() if row["subscription"] is not None}


def test_from_where_a_shape_moved_on_the_slow_lane_tells_what_the_main_one_leaves_out(ports: JobPorts) -> None:
    dear = subscribe(ports, DEAR, "dear")
    subscribe(ports, CHEAP, "cheap")
    before = publish(ports)
    move_to_slow_lane(ports.open_registry(), {dear: 0.25})
    (lane,) = ports.open_registry().list(LANE)
    after = publish(ports)
    spanning, later = entries(ports), entries(ports, lane.position)
    slow, main = SlowLaneMatcher(ports.open_registry()), open_matcher(ports, OutboxLane.FAST)
    assert positions(main.match(later)) == set()
    assert main.match(later).num_rows == 1, "the cheap one"
    assert positions(slow.match(later)) == {after}
    # A batch that the move lies in is for both, also for a worker that knows of it already.
    assert positions(main.match(spanning)) == {before, after}


def test_the_slow_lane_follows_subscriptions_of_its_shapes_alone(ports: JobPorts) -> None:
    dear = subscribe(ports, DEAR, "dear")
    move_to_slow_lane(ports.open_registry(), {dear: 0.25})
    slow = SlowLaneMatcher(ports.open_registry())
    first = publish(ports)
    assert positions(slow.match(entries(ports))) == {first}
    subscribe(ports, CHEAP, "cheap")
    subscribe(ports, DEAR, "another")
    second = publish(ports)
    assert slow.match(entries(ports, first)).num_rows == 2
    ports.open_registry().put([(SUBSCRIPTION, "dear", None), (SUBSCRIPTION, "another", None)])
    publish(ports)
    assert slow.match(entries(ports, second)).num_rows == 0


def test_a_shape_is_moved_once(ports: JobPorts) -> None:
    for _ in range(2):
        move_to_slow_lane(ports.open_registry(), {"shape": 0.25})
    (lane,) = ports.open_registry().list(LANE)
    assert (lane.position, lane.value) == (1, {"cost": 0.25})
    move_to_slow_lane(ports.open_registry(), {})
    assert ports.open_log().head() == 1


def test_what_shapes_take_is_measured(ports: JobPorts) -> None:
    dear = subscribe(ports, DEAR, "dear")
    publish(ports)
    matcher = open_matcher(ports, OutboxLane.FAST)
    matcher.match(entries(ports))
    taken = matcher.spent()
    assert set(taken) == {dear}
    assert taken[dear] > 0
    assert matcher.spent() == {}
