"""Workers: they look at a watch, they can be woken, and a failure does not end them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from triplewire.config.metrics import Metrics
from triplewire.http.workers import Wakeup, Worker


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
        wakeup = Wakeup()
        worker = Worker("test", steps, 3600, watch=Script(), wakeup=wakeup)
        worker.start()
        await steps.reach(1)
        for count in range(2, 5):
            await asyncio.sleep(0)
            wakeup.set()
            await steps.reach(count)
        await worker.stop()

    asyncio.run(asyncio.wait_for(scene(), 20))


def test_a_change_is_a_step() -> None:
    async def scene() -> None:
        steps = Steps()
        worker = Worker("test", steps, 0, watch=Script(True, False, True))
        worker.start()
        await steps.reach(2)
        await worker.stop()

    asyncio.run(asyncio.wait_for(scene(), 20))


def test_a_failed_step_is_taken_again() -> None:
    async def scene() -> None:
        steps, metrics = Steps(1, 2), Metrics()
        failed = metrics.poll_failures.inc
        worker = Worker("test", steps, 0, watch=Script(True), on_failure=failed, retry=0.001)
        worker.start()
        await steps.reach(3)
        assert b"triplewire_poll_failures_total 2.0" in metrics.exposition()
        await worker.stop()

    asyncio.run(asyncio.wait_for(scene(), 20))


def test_without_a_watch_a_step_is_taken_every_so_many_seconds() -> None:
    async def scene() -> None:
        steps = Steps()
        worker = Worker("test", steps, 0.001)
        worker.start()
        assert steps.taken == 0
        await steps.reach(3)
        await worker.stop()
        taken = steps.taken
        await asyncio.sleep(0.01)
        assert steps.taken == taken

    asyncio.run(asyncio.wait_for(scene(), 20))
