"""The query engine port, the profile of a run, and the deadline that interrupts it.

A deadline ends a query when its time is over, or when its client is gone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from threading import Event as Flag
from threading import Thread
from typing import Any, Protocol, Self

import pyarrow as pa

from triplewire.history.pruning import ScannedFiles
from triplewire.history.requests import QueryLimits
from triplewire.model.errors import QueryLimit
from triplewire.security import Visibility
from triplewire.sparql import CompiledQuery, Statistics
from triplewire.storage.lake.ports import Snapshot

# Profiles: what an engine did to answer a query.


@dataclass(frozen=True)
class QueryProfile:
    """How many rows came out, how long it took, which of the lake's files were read, whether a copy in memory was read
    instead, and the engine's own account of its plan."""

    rows: int
    seconds: float
    scanned: ScannedFiles
    plan: str
    copied: bool = False


def parse_profile(document: Mapping[str, Any]) -> tuple[int, float]:
    """Rows and seconds, from what DuckDB's `EXPLAIN (ANALYZE, FORMAT JSON)` says."""
    operators = document["operator"]
    return _operator_rows(operators[0]), sum(each["timing"] for each in _operators(operators))


def _operator_rows(operator: Mapping[str, Any]) -> int:
    """How many rows came out of an operator. Some are only a place for others, and have none of their own."""
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
    """Not for this engine: the other one is to be asked."""


class QueryEngine(Protocol):
    """Runs one query at a time. With a sight it reads what is in that and nothing else."""

    def statistics(self, snapshot: Snapshot) -> Statistics | None:
        """What is known of the data, to plan by."""

    def prepare(self, snapshot: Snapshot) -> bool:
        """Do one step of what makes later queries faster; whether there was one to do."""

    def scanned(self, compiled: CompiledQuery, snapshot: Snapshot) -> ScannedFiles:
        """The files that hold what a query needs, whether or not there is a copy of them."""

    def batches(
        self, compiled: CompiledQuery, snapshot: Snapshot, bounds: QueryLimits, sight: Visibility | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The rows of the answer, as they are found. Raises QueryLimit, also when it was interrupted."""

    def profile(self, compiled: CompiledQuery, snapshot: Snapshot, bounds: QueryLimits) -> QueryProfile:
        """Run the query, throw its rows away, and tell what was done."""

    def interrupt(self) -> None:
        """End the query that runs, if there is one. May be called from any thread, any number of times."""

    def close(self) -> None:
        """Give back what it holds."""


def time_limit_error(seconds: float) -> QueryLimit:
    return QueryLimit(f"the query ran for more than {seconds:g} s; ask for less at a time")


def memory_limit_error(memory: str) -> QueryLimit:
    return QueryLimit(f"the query needs more than {memory} of memory; ask for less at a time")


# Alarms: they end a query when its time is over, or when nobody waits for it any more.

_AGAIN_SECONDS = 0.05
"""Between two interrupts: one that comes just before the engine begins is lost."""


class Deadline:
    """Interrupts an engine when the time is over, or when told to, until it has obeyed."""

    def __init__(self, engine: QueryEngine, seconds: float) -> None:
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
            raise time_limit_error(self._seconds)

    def _watch(self) -> None:
        self._rung.wait(self._seconds)
        self._over = not self._done.is_set()
        while not self._done.is_set():
            self._engine.interrupt()
            self._done.wait(_AGAIN_SECONDS)
