"""Workers: steps that are repeated in the background of an event loop, from `start` to `stop`.

A step that raises is logged and counted, and taken again after a pause: whatever failed, the worker goes on.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from triplewire.http.ports import ChangeWatch

RETRY_SECONDS: Final = 1.0
"""Pause after a step that failed."""

SHORTEST_SECONDS: Final = 0.003
"""Least pause between two steps, however often the worker is woken. It is as long as the step took, so that a worker
takes half of the time at most, and under load more publications share a step."""

LONGEST_SECONDS: Final = 0.02
"""Longest such pause."""

logger = logging.getLogger(__name__)

Step = Callable[[], Awaitable[object] | object]


class Wakeup:
    """A signal that ends the pause of a worker. Several signals before the next step count as one."""

    __slots__ = ("_pause", "is_set")

    def __init__(self, *, is_set: bool = False) -> None:
        self.is_set = is_set
        self._pause: asyncio.Future[None] | None = None

    def set(self) -> None:
        """Signal that there is something to do. Must be called on the event loop."""
        self.is_set = True
        self._end_pause()

    def take(self) -> bool:
        """Return whether the signal was given since the last call."""
        was_set, self.is_set = self.is_set, False
        return was_set

    async def wait(self, seconds: float) -> None:
        """Wait for the next signal, or for so many seconds."""
        loop = asyncio.get_running_loop()
        self._pause = loop.create_future()
        timer = loop.call_later(seconds, self._end_pause)
        try:
            await self._pause
        finally:
            timer.cancel()

    def _end_pause(self) -> None:
        if self._pause is not None and not self._pause.done():
            self._pause.set_result(None)


def share_watch(watch: ChangeWatch, count: int) -> list[ChangeWatch]:
    """Return watches that share one: each reports every change once."""
    pending: list[bool] = [False] * count
    return [_SharedWatch(watch, pending, number) for number in range(count)]


@dataclass(frozen=True)
class _SharedWatch:
    watch: ChangeWatch
    pending: list[bool]
    number: int

    def changed(self) -> bool:
        if self.watch.changed():
            self.pending[:] = [True] * len(self.pending)
        changed, self.pending[self.number] = self.pending[self.number], False
        return changed


class Worker:
    """Takes a step every so many seconds, and at once when it is woken.

    With a watch it looks that often, and takes a step only if the watch has seen a change; the first step is taken
    when it starts.
    """

    def __init__(
        self,
        name: str,
        step: Step,
        seconds: float,
        *,
        wakeup: Wakeup | None = None,
        watch: ChangeWatch | None = None,
        on_failure: Callable[[], object] = lambda: None,
        retry: float = RETRY_SECONDS,
    ) -> None:
        self._name = name
        self._step = step
        self._seconds = seconds
        self._wakeup = wakeup or Wakeup()
        self._watch = watch
        self._on_failure = on_failure
        self._retry = retry
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name=self._name)

    async def stop(self) -> None:
        """Cancel the step that is being taken, and wait until it is over."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _run(self) -> None:
        due, ticks = self._watch is not None, asyncio.get_running_loop().time
        while True:
            began = ticks()
            changed = self._watch is not None and self._watch.changed()
            if (self._wakeup.take() or changed or due) and not await self._succeeds():
                due = True
                await self._wakeup.wait(self._retry)
                continue
            due = self._watch is None
            if self._wakeup.is_set:
                await asyncio.sleep(min(max(SHORTEST_SECONDS, ticks() - began), LONGEST_SECONDS))
            else:
                await self._wakeup.wait(self._seconds)

    async def _succeeds(self) -> bool:
        try:
            result = self._step()
            if inspect.isawaitable(result):
                await result
        except Exception:
            logger.exception("worker %s: a step failed and will be repeated", self._name)
            self._on_failure()
            return False
        return True
