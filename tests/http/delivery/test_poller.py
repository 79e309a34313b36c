"""Tails: they look, they can be woken, and a failure does not end them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from triplewire.config.metrics import Metrics
from triplewire.http.delivery import events
from triplewire.http.delivery.events import Poller


class Script:
    """A watch that says what it was told to, then nothing new."""

    def __init__(self, *changes: bool) -> None:
        self._changes: Iterator[bool] = iter(changes)

    def changed(self) -> bool:
        return next(self._changes, False)


class Steps:
    """Counts steps; fails at those that the script marks."""

    def __init__(self, *failing: int) -> None:
        self.taken = 0
        self._failing = failing
        self._more = asyncio.Condition()

    async def __call__(self) -> None:
        self.taken += 1
        async with self._more:
            self._more.notify_all()
        if self.taken in self._failing:
            raise OSError("as the test wants it")

    async def reach(self, count: int) -> None:
        async with self._more:
            await self._more.wait_for(lambda: self.taken >= count)


def test_a_wake_is_a_step_without_waiting_for_the_next_look() -> None:
    async def scene() -> None:
        steps = Steps()
        tail = Poller(Script(), steps, Metrics(), interval=3600)
        task = asyncio.create_task(tail.run())
        await steps.reach(1)
        for count in range(2, 5):
            await asyncio.sleep(0)
            tail.wake()
            await steps.reach(count)
        task.cancel()

    asyncio.run(asyncio.wait_for(scene(), 20))


def test_a_change_is_a_step() -> None:
    async def scene() -> None:
        steps = Steps()
        task = asyncio.create_task(Poller(Script(True, False, True), steps, Metrics(), interval=0).run())
        await steps.reach(2)
        task.cancel()

    asyncio.run(asyncio.wait_for(scene(), 20))


def test_a_failed_step_is_taken_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "_RETRY_SECONDS", 0.001)

    async def scene() -> None:
        steps, metrics = Steps(1, 2), Metrics()
        task = asyncio.create_task(Poller(Script(True), steps, metrics, interval=0).run())
        await steps.reach(3)
        assert b"triplewire_tail_failures_total 2.0" in metrics.exposition()
        task.cancel()

    asyncio.run(asyncio.wait_for(scene(), 20))
