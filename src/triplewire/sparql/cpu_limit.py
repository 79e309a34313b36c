"""A CPU time limit for DuckDB queries. Only the CPU time of the querying thread counts, not wall time, so that the
same query is interrupted at about the same point whenever it runs again.
"""

from __future__ import annotations

import time
from threading import Event as Flag
from threading import Thread, get_ident
from typing import Self

import duckdb

LIMIT_ERRORS = (duckdb.InterruptException, duckdb.OutOfMemoryException)
"""The errors of a query that exceeds its time or memory."""

_INTERRUPT_SECONDS = 0.05
"""The seconds between two interrupts: one that comes just before a query begins is lost."""


class CpuLimit:
    """A limit on the CPU time of each query of this thread; a query that exceeds it is interrupted.

    A late interrupt may hit the next query. Callers must therefore handle an interrupt of a query that took no time.
    """

    def __init__(self, duck: duckdb.DuckDBPyConnection, seconds: float) -> None:
        self._duck = duck
        self._seconds = seconds
        self._clock = time.pthread_getcpuclockid(get_ident())
        self._began = 0.0
        self._done = Flag()
        self._thread = Thread(target=self._watch, name="allowance", daemon=True)

    def __enter__(self) -> Self:
        self.renew()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop; no interrupt comes afterwards."""
        self._done.set()
        self._thread.join()

    def renew(self) -> None:
        """Start the time of the next query."""
        self._began = time.clock_gettime(self._clock)

    def _watch(self) -> None:
        while not self._done.is_set():
            left = self._seconds - (time.clock_gettime(self._clock) - self._began)
            if left <= 0:
                self._duck.interrupt()
            self._done.wait(max(left, _INTERRUPT_SECONDS))
