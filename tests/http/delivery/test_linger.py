"""How long messages wait: nothing while there is room."""

from __future__ import annotations

import asyncio

import pytest

from triplewire.config.metrics import Metrics
from triplewire.http.delivery.channels import CachedMessages, Channel, Listener
from triplewire.http.delivery.connections import MemoryConnection
from triplewire.http.delivery.options import DeliveryOptions, LingerTimes, LoopLoad
from triplewire.http.formats.messages import Frames
from triplewire.model.errors import BadRequest


class Clocks:
    """Time that passes, of which a share is work."""

    def __init__(self) -> None:
        self.worked = self.passed = 0.0

    def pass_by(self, seconds: float, share: float) -> None:
        self.passed += seconds
        self.worked += share * seconds

    def load(self) -> LoopLoad:
        return LoopLoad(lambda: self.worked, lambda: self.passed)


def waits(share: float) -> float:
    clocks = Clocks()
    load = clocks.load()
    load.measure()
    for _ in range(100):
        clocks.pass_by(0.1, share)
        load.measure()
    return load.wait(0.5)


def test_the_window_widens_as_load_grows_and_shrinks_to_nothing() -> None:
    assert waits(0.1) == 0.0
    assert waits(0.5) == pytest.approx(0.25, abs=0.01)
    assert waits(0.95) == pytest.approx(0.5, abs=0.01)
    clocks = Clocks()
    load = clocks.load()
    load.measure()
    for share in (1.0, 0.0):
        for _ in range(50):
            clocks.pass_by(0.1, share)
            load.measure()
        assert (load.wait(0.5) > 0.4) == (share == 1.0)
    assert load.wait(0.0) == 0.0


def test_time_in_which_a_thread_waits_for_a_core_while_it_writes_counts() -> None:
    clocks = Clocks()
    load = clocks.load()
    load.measure()
    for _ in range(100):
        began = clocks.passed
        clocks.pass_by(0.1, share=0.05)
        load.end_writing(began)
        clocks.pass_by(0.1, share=0.0)
        load.measure()
    assert load.wait(0.5) == pytest.approx(0.25, abs=0.01)


def test_what_waits_goes_out_together_and_once() -> None:
    async def scene() -> None:
        clocks = Clocks()
        load = clocks.load()
        load.measure()
        clocks.pass_by(10.0, 1.0)
        load.measure()
        wire = MemoryConnection()
        channel = Channel(DeliveryOptions(linger=1.0), load)
        channel.enter(Listener(wire, 0, Metrics()))
        for position in (1, 2, 3):
            channel.push(CachedMessages(lambda format, at=position: Frames([at], [b"%d" % at])))  # type: ignore[misc]
        assert (bytes(wire.data), channel.wait) == (b"", 1.0)
        late = MemoryConnection()
        channel.enter(Listener(late, 2, Metrics()))
        channel.flush()
        channel.flush()
        assert (bytes(wire.data), bytes(late.data)) == (b"123", b"3")

    asyncio.run(scene())


def test_streams_have_windows_of_their_own() -> None:
    windows = LingerTimes.parsed(["0.25", "alerts=0", "news=2s"])
    assert [windows.get(name) for name in ("alerts", "news", "home", None)] == [0.0, 2.0, 0.25, 0.25]
    assert LingerTimes.parsed([]).get("home") == 0.5


@pytest.mark.parametrize("text", ["soon", "-1", "home=", "home=61", "no name=1", "nan"])
def test_a_window_that_cannot_be_is_named(text: str) -> None:
    with pytest.raises(BadRequest):
        LingerTimes.parsed([text])
