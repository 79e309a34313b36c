"""Twins: log, registry and outbox of one kind together, for suites that run over every kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from triplewire.model.clock import ManualClock
from triplewire.storage.log.sqlite import SqliteLog
from triplewire.storage.memory import MemoryLog, MemoryRegistry, PositionSequence
from triplewire.storage.outbox import MemoryOutbox, SqliteOutbox
from triplewire.storage.registry.sqlite import SqliteRegistry

KINDS = ("memory", "sqlite")


@dataclass(frozen=True)
class Twin:
    """Stores that share one order of positions and one clock, all empty. `outbox` gives the outbox of a run."""

    log: MemoryLog | SqliteLog
    registry: MemoryRegistry | SqliteRegistry
    outbox: Callable[[str], MemoryOutbox | SqliteOutbox]
    clock: ManualClock = field(default_factory=ManualClock)


@contextmanager
def twin(kind: str) -> Iterator[Twin]:
    """Fresh stores of a kind; what they keep on disk is gone after the block."""
    if kind == "memory":
        yield _memory()
    else:
        with TemporaryDirectory() as directory:
            yield from _sqlite(Path(directory))


def _memory() -> Twin:
    clock, positions, first = ManualClock(), PositionSequence(), MemoryOutbox()
    log, registry = MemoryLog(positions, clock), MemoryRegistry(positions)
    return Twin(log, registry, lambda run: MemoryOutbox(run, first), clock)


def _sqlite(directory: Path) -> Iterator[Twin]:
    clock = ManualClock()
    log, registry = SqliteLog(directory / "log.db", clock), SqliteRegistry(directory / "log.db", clock)
    yield Twin(log, registry, lambda run: SqliteOutbox(directory / "outbox.db", run), clock)
    log.close()
    registry.close()
