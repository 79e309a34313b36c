"""Turns of the pipeline's housekeeper for `bench hour`, beside the commits, as in the pipeline."""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

from triplewire.model.clock import Clock
from triplewire.spark.jobs.maintenance import HOUSE_SECONDS, LakeMaintenance


@dataclass
class Spent:
    """Real seconds of turns: of all of them, and of the longest."""

    turns: int = 0
    seconds: float = 0.0
    longest: float = 0.0

    def add(self, seconds: float) -> None:
        self.turns += 1
        self.seconds += seconds
        self.longest = max(self.longest, seconds)


class Turns:
    """One turn at a time, in a thread. The next begins as long after it, by the clock, as in the pipeline."""

    def __init__(self, keeper: LakeMaintenance, clock: Clock) -> None:
        self.keeper = keeper
        self.spent = Spent()
        self._clock = clock
        self._ended = clock.ticks()
        self._running: Future[float] | None = None
        self._thread = ThreadPoolExecutor(1, "housekeeping")

    @property
    def busy(self) -> bool:
        return self._running is not None and not self._running.done()

    def begin(self) -> None:
        """The next turn, if its time has come. Raises what the one before has raised."""
        self._settle()
        if self._running is None and self._clock.ticks() - self._ended >= HOUSE_SECONDS:
            self._running = self._thread.submit(self._turn)

    def rest(self, seconds: float | None) -> None:
        """Until the turn has ended, but so many seconds at most."""
        if self._running is not None and (seconds is None or seconds > 0):
            wait([self._running], seconds)
        self._settle()

    def close(self) -> None:
        self._thread.shutdown()

    def _turn(self) -> float:
        began = time.perf_counter()
        self.keeper.turn()
        return time.perf_counter() - began

    def _settle(self) -> None:
        if self._running is not None and self._running.done():
            done, self._running = self._running, None
            self._ended = self._clock.ticks()
            self.spent.add(done.result())
