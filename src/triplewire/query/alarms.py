"""Alarms: they end a query when its time is over, or when nobody waits for it any more."""

from __future__ import annotations

from threading import Event as Flag
from threading import Thread
from typing import Self

from triplewire.query.engines import Engine, over_time

_AGAIN_SECONDS = 0.05
"""Between two interrupts: one that comes just before the engine begins is lost."""


class Alarm:
    """Interrupts an engine when the time is over, or when told to, until it has obeyed."""

    def __init__(self, engine: Engine, seconds: float) -> None:
        self._engine = engine
        self._seconds = seconds
        self._rung = Flag()
        self._done = Flag()
        self._over = False
        self._thread = Thread(target=self._watch, name="alarm", daemon=True)
        self._thread.start()

    def ring(self) -> None:
        """Interrupt now. May be called from any thread."""
        self._rung.set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """The query is over; from now on no interrupt will come any more."""
        self._done.set()
        self._rung.set()
        self._thread.join()

    def check(self) -> None:
        """Raises QueryLimit if it has rung: for work that the engine knows nothing of."""
        if self._over:
            raise over_time(self._seconds)

    def _watch(self) -> None:
        self._rung.wait(self._seconds)
        self._over = not self._done.is_set()
        while not self._done.is_set():
            self._engine.interrupt()
            self._done.wait(_AGAIN_SECONDS)
