"""Test doubles: logs and outboxes that fail or wait on demand, stores of one kind together, and crashes while a file is
replaced.

Failures are markers in a test's data, one for each call. A contract suite runs over every kind of store.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from types import TracebackType
from typing import Any, TypeVar

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
from triplewire.storage.outbox import (
    PART_POSITIONS,
    MemoryOutbox,
    Outbox,
    OutboxChunk,
    OutboxLane,
    OutboxPart,
    PartProgress,
    SqliteOutbox,
)
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

    def divide(self, lane: OutboxLane, count: int, after: int = 0, block: int = PART_POSITIONS) -> Sequence[OutboxPart]:
        return self._outbox.divide(lane, count, after, block)

    def write_part(self, part: OutboxPart, after: int, position: int, matches: pa.Table) -> PartProgress:
        return self._faults.run(lambda: self._outbox.write_part(part, after, position, matches))

    def progress(self, part: OutboxPart) -> PartProgress:
        return self._outbox.progress(part)

    def read(self, after: int, limit: int, lane: OutboxLane = OutboxLane.FAST) -> list[OutboxChunk]:
        return self._outbox.read(after, limit, lane)

    def head(self, lane: OutboxLane = OutboxLane.FAST) -> int:
        return self._outbox.head(lane)

    def sync(self) -> None:
        self._outbox.sync()

    def trim(self, before: int) -> int:
        return self._outbox.trim(before)

    def merge(self, before: int) -> int:
        return self._outbox.merge(before)

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


class CrashRecorder:
    """Records what a crash at each step of the replacements in a folder would leave there.

    The steps are seen at `os.fsync` and `os.replace`. Content that was not flushed by the time of a crash is copied
    whole, torn and empty; a name that was not flushed, as it was before and after. Not safe for threads.

    ```python
    with CrashRecorder(folder, tmp_path / "crashes") as recorder:
        replace_file(folder / "state", b"new")
    for copy in recorder.copies:
        assert (copy / "state").read_bytes() in (b"old", b"new")
    ```
    """

    def __init__(self, folder: Path, copies: Path) -> None:
        self._folder = folder.resolve()
        self._target = copies
        self._flushed: set[Path] = set()
        self._unflushed_names: set[Path] = set()
        self.copies: list[Path] = []
        """Directories, one for each crash."""
        self.replaced: list[Path] = []
        """Files that were replaced atomically, in order."""

    def __enter__(self) -> CrashRecorder:
        self._fsync, self._replace = os.fsync, os.replace
        self._copy()
        os.fsync, os.replace = self._record_fsync, self._record_replace  # type: ignore[assignment]
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        os.fsync, os.replace = self._fsync, self._replace
        self._copy()

    @property
    def durable(self) -> bool:
        """Whether the names of all files that were replaced are on the disk."""
        return not self._unflushed_names

    def _record_fsync(self, handle: Any) -> None:  # noqa: ANN401
        number = handle if isinstance(handle, int) else handle.fileno()
        path = Path(os.readlink(f"/proc/self/fd/{number}"))
        if path.is_relative_to(self._folder) and path.is_file():
            self._copy_torn(path)
        self._fsync(handle)
        self._flushed.add(path)
        self._unflushed_names -= {each for each in self._unflushed_names if each.parent == path}

    def _record_replace(self, source: Any, target: Any, **options: Any) -> None:  # noqa: ANN401
        before, after = Path(source).resolve(), Path(target).resolve()
        self._copy()
        self._replace(source, target, **options)
        if not after.is_relative_to(self._folder):
            return
        self._copy()
        if before not in self._flushed:
            self._copy_torn(after)
        self._flushed.discard(before)
        self._unflushed_names.add(after)
        self.replaced.append(after)

    def _copy(self) -> Path:
        copy = self._target / str(len(self.copies))
        shutil.copytree(self._folder, copy)
        self.copies.append(copy)
        return copy

    def _copy_torn(self, path: Path) -> None:
        size = path.stat().st_size
        for length in (size, size // 2, 0):
            os.truncate(self._copy() / path.relative_to(self._folder), length)
