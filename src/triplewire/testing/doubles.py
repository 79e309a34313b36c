"""Test doubles: logs and outboxes that fail or wait on demand, and stores of one kind together.

Failures are markers in a test's data, one for each call. A contract suite runs over every kind of store.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from typing import TypeVar

import pyarrow as pa

from triplewire.model.clock import ManualClock
from triplewire.model.errors import StorageFull, Unavailable
from triplewire.storage.log.ports import (
    LOOKUP_POSITIONS,
    SEGMENT_LIMITS,
    Log,
    LogRetention,
    Publication,
    SegmentLimits,
)
from triplewire.storage.log.sqlite import SqliteLog
from triplewire.storage.memory import MemoryLog, MemoryRegistry, PositionSequence
from triplewire.storage.outbox import MemoryOutbox, Outbox, OutboxChunk, OutboxLane, SqliteOutbox
from triplewire.storage.registry.sqlite import SqliteRegistry

T = TypeVar("T")


class Fault(Enum):
    """The outcome of one call."""

    NONE = auto()
    """The call works."""
    FULL = auto()
    """The disk is full: StorageFull, nothing written."""
    AWAY = auto()
    """The store does not answer: Unavailable, nothing written."""
    CRASH_BEFORE = auto()
    """The process dies before the write."""
    CRASH_AFTER = auto()
    """The process dies after the write and before its return."""


class Crash(Exception):
    """The death of the process: all that holds the faulty double must be discarded with it."""


class Faults:
    """A list of markers, one for each call; after the last one everything works."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self._faults = iter(faults)

    def run(self, call: Callable[[], T]) -> T:
        """Run the next call with its fault."""
        fault = next(self._faults, Fault.NONE)
        if fault is Fault.FULL:
            raise StorageFull("the disk is full (test fault)")
        if fault is Fault.AWAY:
            raise Unavailable("the store does not answer (test fault)")
        if fault is Fault.CRASH_BEFORE:
            raise Crash
        result = call()
        if fault is Fault.CRASH_AFTER:
            raise Crash
        return result


class _LogProxy:
    """The methods that a double forwards to its log."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def read(self, after: int, through: int, limit: int) -> pa.Table:
        return self._log.read(after, through, limit)

    def head(self) -> int:
        return self._log.head()

    def trim(self, retention: LogRetention, before: int) -> int:
        return self._log.trim(retention, before)


class FaultyLog(_LogProxy):
    """A log whose n-th append meets the n-th fault. Reading always works."""

    def __init__(self, log: Log, faults: Iterable[Fault]) -> None:
        super().__init__(log)
        self._faults = Faults(faults)

    def append(self, publications: Sequence[Publication]) -> list[Sequence[int]]:
        return self._faults.run(lambda: self._log.append(publications))


class GatedLog(_LogProxy):
    """A log whose appends wait until the test opens the gate."""

    def __init__(self, log: Log) -> None:
        super().__init__(log)
        self.arrived = Event()
        """Set when an append has reached the gate."""
        self.gate = Event()
        """Set by the test: lets all appends pass."""

    def append(self, publications: Sequence[Publication]) -> list[Sequence[int]]:
        self.arrived.set()
        self.gate.wait()
        return self._log.append(publications)


class FaultyOutbox:
    """An outbox whose n-th write meets the n-th fault. Reading always works."""

    def __init__(self, outbox: Outbox, faults: Iterable[Fault]) -> None:
        self._outbox = outbox
        self._faults = Faults(faults)

    def write(self, batch: int, position: int, matches: pa.Table, lane: OutboxLane = OutboxLane.FAST) -> None:
        self._faults.run(lambda: self._outbox.write(batch, position, matches, lane))

    def read(self, after: int, limit: int, lane: OutboxLane = OutboxLane.FAST) -> list[OutboxChunk]:
        return self._outbox.read(after, limit, lane)

    def head(self, lane: OutboxLane = OutboxLane.FAST) -> int:
        return self._outbox.head(lane)

    def trim(self, before: int) -> int:
        return self._outbox.trim(before)

    def erase(self, positions: Collection[int]) -> int:
        return self._outbox.erase(positions)


TWIN_KINDS = ("memory", "sqlite")


@dataclass(frozen=True)
class Twin:
    """Empty stores that share one sequence of positions and one clock. `outbox` returns the outbox of a run."""

    log: MemoryLog | SqliteLog
    registry: MemoryRegistry | SqliteRegistry
    outbox: Callable[..., MemoryOutbox | SqliteOutbox]
    clock: ManualClock = field(default_factory=ManualClock)


@contextmanager
def open_twin(kind: str, *, segments: SegmentLimits = SEGMENT_LIMITS, lookup: int = LOOKUP_POSITIONS) -> Iterator[Twin]:
    """Fresh stores of a kind, with the limits of their log; their files are deleted after the block."""
    if kind == "memory":
        yield _memory(segments, lookup)
    else:
        with TemporaryDirectory() as directory:
            yield from _sqlite(Path(directory), segments, lookup)


def _memory(segments: SegmentLimits, lookup: int) -> Twin:
    clock, positions, first = ManualClock(), PositionSequence(), MemoryOutbox()
    log, registry = MemoryLog(positions, clock, segments=segments, lookup=lookup), MemoryRegistry(positions)
    return Twin(log, registry, partial(MemoryOutbox, shared=first), clock)


def _sqlite(directory: Path, segments: SegmentLimits, lookup: int) -> Iterator[Twin]:
    clock, path = ManualClock(), directory / "log.db"
    log, registry = SqliteLog(path, clock, segments=segments, lookup=lookup), SqliteRegistry(path, clock)
    yield Twin(log, registry, partial(SqliteOutbox, directory / "outbox.db"), clock)
    log.close()
    registry.close()
