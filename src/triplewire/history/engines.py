"""The query engine port, the profile of a run, and the deadline that interrupts it.

A deadline ends a query when its time is over, or when its client is gone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from threading import Condition, Thread
from time import monotonic
from typing import Any, Protocol, Self

import pyarrow as pa

from triplewire.history.pruning import ScannedFiles
from triplewire.history.requests import QueryLimits
from triplewire.model.errors import QueryLimit
from triplewire.security import Visibility
from triplewire.sparql import CompiledQuery, Statistics
from triplewire.storage.lake.ports import Snapshot


@dataclass(frozen=True)
class QueryProfile:
    """Rows and seconds of a run, the files that it read, and the engine's own plan.

    `copied` says that the copy in memory was read instead of the files, `indexed` that answers come from its index.
    """

    rows: int
    seconds: float
    scanned: ScannedFiles
    plan: str
    copied: bool = False
    indexed: bool = False


def parse_profile(document: Mapping[str, Any]) -> tuple[int, float]:
    """Return rows and seconds from DuckDB's `EXPLAIN (ANALYZE, FORMAT JSON)`."""
    operators = document["operator"]
    return _operator_rows(operators[0]), sum(each["timing"] for each in _operators(operators))


def _operator_rows(operator: Mapping[str, Any]) -> int:
    """Return the rows of an operator. Some operators only wrap others and count none of their own."""
    children = operator.get("children", [])
    if operator["type"] == "UNION":
        return sum(map(_operator_rows, children))
    if operator["type"] in ("RESULT_COLLECTOR", "EXPLAIN_ANALYZE", "CTE"):
        return _operator_rows(children[-1])
    return int(operator["intermediate_rows"])


def _operators(operators: list[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    for each in operators:
        yield each
        yield from _operators(each.get("children", []))


class WrongEngine(Exception):
    """The query is for the other engine."""


class QueryEngine(Protocol):
    """The port of a query engine. It runs one query at a time and reads nothing outside the visibility."""

    def statistics(self, snapshot: Snapshot) -> Statistics | None:
        """Return statistics of the data for the optimizer."""

    def prepare(self, snapshot: Snapshot) -> bool:
        """Do one step of indexing for later queries; return whether there was one."""

    def scanned(self, compiled: CompiledQuery, snapshot: Snapshot) -> ScannedFiles:
        """Return the files that a query has to read, whether or not there is a copy of them."""

    def batches(
        self, compiled: CompiledQuery, snapshot: Snapshot, bounds: QueryLimits, visibility: Visibility | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the answer as they are found. Raises QueryLimit, also when it was interrupted."""

    def profile(self, compiled: CompiledQuery, snapshot: Snapshot, bounds: QueryLimits) -> QueryProfile:
        """Run the query, discard its rows, and return its profile."""

    def interrupt(self) -> None:
        """Cancel the running query, if there is one. May be called from any thread, any number of times."""

    def close(self) -> None:
        """Release all resources."""


def time_limit_error(seconds: float) -> QueryLimit:
    return QueryLimit(f"the query ran for more than {seconds:g} s; ask for less at a time")


def memory_limit_error(memory: str) -> QueryLimit:
    return QueryLimit(f"the query needs more than {memory} of memory; ask for less at a time")


_INTERRUPT_SECONDS = 0.05
"""Pause between two interrupts: one that comes just before the engine begins is lost."""


_LINGER_SECONDS = 5.0
"""How long the thread of a watch waits for the next query: to start one takes half as long as a look-up."""


class Deadline:
    """The time by which one query must have ended, or at once, on demand."""

    def __init__(self, watch: DeadlineWatch, seconds: float) -> None:
        self._watch = watch
        self._seconds = seconds
        self.ends = monotonic() + seconds
        self.expired = False

    def interrupt(self) -> None:
        """Interrupt now. May be called from any thread."""
        self._watch.interrupt(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End the watch: no interrupt comes after this."""
        self._watch.end(self)

    def check(self) -> None:
        """Raises QueryLimit if the time is over, for work outside the engine."""
        if self.expired:
            raise time_limit_error(self._seconds)


class DeadlineWatch:
    """Interrupts an engine when the time of its query is over, or on demand, until it has stopped."""

    def __init__(self, engine: QueryEngine) -> None:
        self._engine = engine
        self._changed = Condition()
        self._current: Deadline | None = None
        self._wakes: float | None = None
        """When the thread looks again; None if there is none."""

    def start(self, seconds: float) -> Deadline:
        """Begin the time of a query. One query runs at a time."""
        deadline = Deadline(self, seconds)
        with self._changed:
            self._current = deadline
            if self._wakes is None:
                self._wakes = monotonic()
                Thread(target=self._run, name="deadline", daemon=True).start()
            elif deadline.ends < self._wakes:
                self._changed.notify()
        return deadline

    def interrupt(self, deadline: Deadline) -> None:
        with self._changed:
            deadline.ends = 0.0
            self._changed.notify()

    def end(self, deadline: Deadline) -> None:
        with self._changed:
            if self._current is deadline:
                self._current = None

    def _run(self) -> None:
        with self._changed:
            while (current := self._current) is not None:
                seconds = min(_LINGER_SECONDS, current.ends - monotonic())
                if seconds <= 0:
                    current.expired = True
                    self._engine.interrupt()
                    seconds = _INTERRUPT_SECONDS
                self._wakes = monotonic() + seconds
                self._changed.wait(seconds)
            self._wakes = None
