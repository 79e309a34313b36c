"""Balances: listeners are sent from an edge that has too many to the others, and none because of a moment."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.http.test_flow_gauges import Nothing
from triplewire.config.metrics import Metrics
from triplewire.http.delivery.connections import MemoryConnection
from triplewire.http.delivery.options import DeliveryOptions
from triplewire.http.delivery.topics import LiveTopic
from triplewire.http.peers.load_balancing import (
    BALANCE_LEAST,
    BALANCE_SECONDS,
    BALANCE_SHARE,
    ConnectionBalancer,
    count_surplus,
)
from triplewire.model import format_position
from triplewire.model.clock import ManualClock

METRICS = Metrics()
COUNT = 2 * BALANCE_LEAST + 200


class Crowd:
    """A room of so many."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Sequence[str]:
        raise AssertionError("nobody is to be sent away")


@pytest.mark.parametrize(
    ("own", "others", "found"),
    [
        (1_000, (), 0),
        (1_000, (1_000,), 0),
        (1_300, (1_000,), 0),
        (1_000, (0,), 500),
        (1_000, (500, 0), 500),
        (0, (1_000,), 0),
        (BALANCE_LEAST, (0,), 0),
    ],
)
def test_a_surplus_is_what_is_above_the_mean_where_it_is_worth_it(
    own: int, others: tuple[int, ...], found: int
) -> None:
    assert count_surplus(own, others) == found


@given(st.lists(st.sampled_from((0, 10, 900, 1_000, 5_000, 15_000)), min_size=1, max_size=5))
def test_who_has_the_least_never_has_a_surplus(counts: list[int]) -> None:
    least, *others = sorted(counts)
    assert count_surplus(least, others) == 0


def test_a_moment_of_imbalance_moves_nobody() -> None:
    clock, others = ManualClock(), [0]
    balance = ConnectionBalancer([Crowd(1_000)], lambda: others, clock.ticks)  # type: ignore[list-item]
    for _ in range(5):
        others[0] = 0
        assert balance.step() == 0
        clock.advance(BALANCE_SECONDS - 1)
        assert balance.step() == 0
        others[0] = 1_000
        assert balance.step() == 0
        clock.advance(2)


def test_an_edge_that_grows_is_not_compared_with_what_others_told_before() -> None:
    clock, crowd, others = ManualClock(), Crowd(0), [0]
    balance = ConnectionBalancer([crowd], lambda: others, clock.ticks)  # type: ignore[list-item]
    for _ in range(60):
        others[0] = crowd.count
        crowd.count += 500
        assert balance.step() == 0
        clock.advance(1)


def test_some_are_sent_away_with_their_position_until_there_is_balance() -> None:
    async def scene() -> None:
        clock, room, wires = ManualClock(), LiveTopic[str](), [MemoryConnection() for _ in range(COUNT)]
        for wire in wires:
            await room.listen("home", room.open("home", wire, 7, METRICS), Nothing())
        balance = ConnectionBalancer([room], lambda: [0], clock.ticks, lambda: 0.25)
        assert balance.step() == 0
        clock.advance(BALANCE_SECONDS)
        assert balance.step() == ceil(BALANCE_SHARE * COUNT) == COUNT - len(room)
        told = [bytes(wire.data) for wire in wires if wire.gone]
        assert len(told) == COUNT - len(room)
        assert all(b"closing" in each and format_position(7).encode() in each and b"250" in each for each in told)
        while balance.step():
            pass
        assert count_surplus(len(room), [0]) == 0
        assert len(room) > BALANCE_LEAST

    asyncio.run(scene())


def test_relays_stay() -> None:
    async def scene() -> None:
        clock, room = ManualClock(), LiveTopic[str]()
        for _ in range(COUNT):
            options = DeliveryOptions(priority=True)
            listener = room.open("home", MemoryConnection(), 7, METRICS, options=options)
            await room.listen("home", listener, Nothing())
        balance = ConnectionBalancer([room], lambda: [0], clock.ticks)
        balance.step()
        clock.advance(BALANCE_SECONDS)
        assert balance.step() == 0

    asyncio.run(scene())
