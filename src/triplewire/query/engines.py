"""Engines: what runs a compiled query over a snapshot of the lake, and which of them runs it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import pyarrow as pa

from triplewire.access import Sight
from triplewire.errors import QueryLimit
from triplewire.lake.ports import Snapshot
from triplewire.query.profiles import Profile
from triplewire.query.prunings import Scanned
from triplewire.query.requests import Bounds
from triplewire.sparql import Compiled, Statistics


class Elsewhere(Exception):
    """Not for this engine: the other one is to be asked."""


class Engine(Protocol):
    """Runs one query at a time. With a sight it reads what is in that and nothing else."""

    def statistics(self, snapshot: Snapshot) -> Statistics | None:
        """What is known of the data, to plan by."""

    def prepare(self, snapshot: Snapshot) -> bool:
        """Do one step of what makes later queries faster; whether there was one to do."""

    def scanned(self, compiled: Compiled, snapshot: Snapshot) -> Scanned:
        """The files that hold what a query needs, whether or not there is a copy of them."""

    def batches(
        self, compiled: Compiled, snapshot: Snapshot, bounds: Bounds, sight: Sight | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The rows of the answer, as they are found. Raises QueryLimit, also when it was interrupted."""

    def profile(self, compiled: Compiled, snapshot: Snapshot, bounds: Bounds) -> Profile:
        """Run the query, throw its rows away, and tell what was done."""

    def interrupt(self) -> None:
        """End the query that runs, if there is one. May be called from any thread, any number of times."""

    def close(self) -> None:
        """Give back what it holds."""


def over_time(seconds: float) -> QueryLimit:
    return QueryLimit(f"the query ran for more than {seconds:g} s; ask for less at a time")


def over_memory(memory: str) -> QueryLimit:
    return QueryLimit(f"the query needs more than {memory} of memory; ask for less at a time")
