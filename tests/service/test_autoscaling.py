"""Scales: more edges when they are busy, fewer when they are not, and neither because of a moment."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triplewire.config.status import EdgeStatus
from triplewire.model.clock import ManualClock
from triplewire.model.errors import BadRequest
from triplewire.service.processes import (
    EDGE_BUSY,
    EDGE_BUSY_SECONDS,
    EDGE_CALM,
    EDGE_CALM_SECONDS,
    Autoscaler,
    EdgeRange,
    cpu_share,
)

BUSY, CALM = EDGE_BUSY + 0.1, 0.0
LONG = int(EDGE_CALM_SECONDS) + 2
SHORT = int(EDGE_BUSY_SECONDS) + 2


@dataclass
class Fleet:
    """Edges that use as much of a core as they are told, and do what the scale says."""

    most: int = 4
    clock: ManualClock = field(default_factory=ManualClock)
    edges: list[EdgeStatus] = field(default_factory=lambda: [EdgeStatus("1", 1, max_listeners=100)])

    def __post_init__(self) -> None:
        self.scale = Autoscaler(EdgeRange(1, self.most), self.clock)

    def run(self, seconds: int, share: float = 0.0, taken: int = 0) -> list[int]:
        """How many there were after each second."""
        return [self._second(share, taken) for _ in range(seconds)]

    def _second(self, share: float, taken: int) -> int:
        self.clock.advance(1)
        self.edges = [
            replace(each, at=self.clock.now(), cpu=each.cpu + share, listeners={"streams": taken})
            for each in self.edges
        ]
        wanted = self.scale.target(self.edges)
        names = range(len(self.edges) + 1, wanted + 1)
        self.edges = [*self.edges[:wanted], *(EdgeStatus(str(name), name, max_listeners=100) for name in names)]
        return wanted


@pytest.mark.parametrize(
    ("text", "found"),
    [("1", EdgeRange(1, 1)), ("3", EdgeRange(3, 3)), ("auto", EdgeRange(1, 3)), ("auto:8", EdgeRange(1, 8))],
)
def test_how_many_is_a_number_or_auto(text: str, found: EdgeRange) -> None:
    assert EdgeRange.parsed(text, cores=2) == found


@pytest.mark.parametrize("text", ["", "0", "-1", "many", "auto:0", "auto:x", "1.5"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(BadRequest, match="auto:8"):
        EdgeRange.parsed(text, cores=2)


def test_busy_edges_get_another_and_then_another_up_to_the_most() -> None:
    fleet = Fleet()
    found = fleet.run(60, BUSY)
    assert found[0] == 1
    assert found[-1] == 4
    assert sorted(found) == found
    assert found.count(1) >= EDGE_BUSY_SECONDS


def test_seats_count_as_much_as_cpu() -> None:
    fleet = Fleet()
    assert fleet.run(SHORT, taken=int(100 * BUSY))[-1] == 2


def test_a_moment_of_load_changes_nothing() -> None:
    fleet = Fleet()
    for _ in range(10):
        assert set(fleet.run(int(EDGE_BUSY_SECONDS) - 1, BUSY)) == {1}
        fleet.run(2, CALM)


def test_a_moment_of_calm_changes_nothing_and_a_minute_does() -> None:
    fleet = Fleet()
    fleet.run(SHORT, BUSY)
    assert set(fleet.run(int(EDGE_CALM_SECONDS) - 2, CALM)) == {2}
    fleet.run(2, BUSY)
    assert set(fleet.run(int(EDGE_CALM_SECONDS) - 2, CALM)) == {2}
    assert fleet.run(5 * LONG, CALM)[-1] == 1


def test_an_edge_stays_while_the_others_could_not_carry_its_load() -> None:
    fleet = Fleet()
    fleet.run(SHORT, BUSY)
    assert set(fleet.run(LONG, EDGE_CALM * 0.6)) == {2}


@given(st.lists(st.sampled_from((0.0, 0.3, 0.6, 0.9, 2.0)), max_size=40))
def test_there_are_never_fewer_than_one_nor_more_than_the_most(shares: list[float]) -> None:
    fleet = Fleet(most=3)
    for share in shares:
        assert set(fleet.run(7, share)) <= {1, 2, 3}


def test_a_share_needs_two_tellings() -> None:
    now = EdgeStatus("1", 1, at=2_000_000, cpu=1.5)
    assert cpu_share(now, None) == cpu_share(now, now) == 0.0
    assert cpu_share(now, replace(now, at=1_000_000, cpu=1.0)) == 0.5
