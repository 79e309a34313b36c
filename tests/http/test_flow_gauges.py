"""Gauges: what is told of streams is what clients got, also of those that have left."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.http.harness import House, house, run
from triplewire.config.metrics import Metrics
from triplewire.config.traffic import StreamTraffic
from triplewire.http.delivery.channels import Channel
from triplewire.http.delivery.connections import MemoryConnection
from triplewire.http.delivery.options import DeliveryOptions, LoopLoad
from triplewire.http.delivery.topics import LiveTopic
from triplewire.http.formats.messages import Frames, MessageFormat
from triplewire.http.health import CLOSED_STREAMS, ClosedTraffic, FlowGauges
from triplewire.http.stream_filters.parameters import StreamView
from triplewire.model.clock import ManualClock

MANNER = DeliveryOptions()


class Nothing:
    """The past where there is none."""

    floor = 0

    async def step(self, cursor: int, format: MessageFormat) -> tuple[Frames, int]:
        raise AssertionError("there is none")


def channel(messages: int) -> Channel:
    made = Channel(MANNER, LoopLoad())
    made.messages = messages
    return made


async def until_told(at: House, **figures: int) -> dict[str, Any]:
    """Figures are read off again when that costs little: soon here."""
    while True:
        async with at.session.get(at.url + "/streams") as response:
            (found,) = (each for each in (await response.json())["streams"] if each["stream"] == "test")
        if figures.items() <= found.items():
            return dict(found)


def test_streams_are_told_with_what_flowed_out_of_them() -> None:
    async def scene() -> None:
        async with house() as at:
            async with at.listen("/streams/test?linger=0") as one, at.listen("/streams/test?linger=0") as two:
                await until_told(at, clients=2)
                at.append(1, 2, 3)
                at.append(4, stream="elsewhere")
                for ear in (one, two):
                    assert len(await ear.take(3)) == 3
                found = await until_told(at, clients=2, messages=6, dropped=0)
                assert 0 < found["sent_bytes"] < found["plain_bytes"]
                async with at.session.get(at.url + "/metrics") as response:
                    assert 'triplewire_stream_messages_total{stream="test"} 6.0' in await response.text()
            await until_told(at, clients=0, messages=6)

    run(scene())


def test_a_slow_client_is_seen_before_it_is_cut_off() -> None:
    async def scene() -> None:
        room, home = LiveTopic[StreamView](), StreamView("home")
        gauges = FlowGauges([room], ClosedTraffic())
        slow = room.open(home, MemoryConnection(lambda written: 0), 0, Metrics(), 1_000, MANNER)
        slow.connection.write(b"x" * 70)
        await room.listen(home, slow, Nothing())
        assert gauges.flows() == [StreamTraffic("home", clients=1, waiting=70)]

    asyncio.run(scene())


def test_channels_that_were_closed_still_count_for_as_many_streams_as_are_remembered() -> None:
    closed = ClosedTraffic()
    gauges = FlowGauges([], closed)
    for number in range(CLOSED_STREAMS + 1):
        closed.add(f"{number:05}", channel(number))
    closed.add("00001", channel(6))
    found = {flow.stream: flow.messages for flow in gauges.flows()}
    assert "00000" not in found
    assert len(found) == CLOSED_STREAMS
    assert found["00001"] == 7


def test_a_reading_that_takes_long_is_not_taken_often() -> None:
    clock, worked = ManualClock(), iter((0.0, 1.0, 1.0, 1.0))
    closed = ClosedTraffic()
    gauges = FlowGauges([], closed, clock.ticks, lambda: next(worked))
    assert gauges.flows() == []
    closed.add("home", channel(1))
    clock.advance(99.0)
    assert gauges.flows() == []
    clock.advance(2.0)
    assert gauges.flows() == [StreamTraffic("home", messages=1)]
