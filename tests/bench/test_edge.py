"""`bench edge`: small runs over real edges."""

from __future__ import annotations

import pytest

from bench.commands import Part
from bench.edge import PARTS, measure_tokens
from bench.edge_dialects import WRITERS, make_events


def test_the_command_knows_every_part() -> None:
    assert [each.value for each in Part] == list(PARTS)


def test_each_telling_tells_each_event() -> None:
    table = make_events(3)
    assert {"webhook", "websub", "mercure", "ldes"} == WRITERS.keys()
    for write in WRITERS.values():
        told = b"".join(write(table)).decode()
        assert [told.count(f"reading/{number}") > 0 for number in range(4)] == [True, True, True, False]


@pytest.mark.processes
def test_each_of_the_edges_lets_its_visitor_in() -> None:
    """A visitor who is refused ends the run; who is let in without being asked is not measured."""
    found = measure_tokens(requests=5, rounds=1)
    assert set(found["rounds"]) == {"open", "token", "jwt"}
    assert all(len(each) == 1 for each in found["rounds"].values())
