"""Logs and outboxes whose writes fail or wait where the test says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from threading import Event

import pyarrow as pa

from triplewire.storage.log.ports import Log, LogRetention, Outbox, OutboxChunk, Publication
from triplewire.testing.faults import Fault, Faults


class _Around:
    """What a double leaves to the log that it stands around."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def read(self, after: int, upto: int, limit: int) -> pa.Table:
        return self._log.read(after, upto, limit)

    def head(self) -> int:
        return self._log.head()

    def trim(self, retention: LogRetention, before: int) -> int:
        return self._log.trim(retention, before)


class FaultyLog(_Around):
    """A log whose n-th append meets the n-th fault. Reading always works."""

    def __init__(self, log: Log, faults: Iterable[Fault]) -> None:
        super().__init__(log)
        self._faults = Faults(faults)

    def append(self, publications: Sequence[Publication]) -> list[Sequence[int]]:
        return self._faults.strike(lambda: self._log.append(publications))


class GatedLog(_Around):
    """A log whose appends wait at a gate: a test decides what else happens while one of them is under way."""

    def __init__(self, log: Log) -> None:
        super().__init__(log)
        self.arrived = Event()
        """Set when an append has come to the gate."""
        self.gate = Event()
        """Set by the test: lets through whoever waits and whoever comes later."""

    def append(self, publications: Sequence[Publication]) -> list[Sequence[int]]:
        self.arrived.set()
        self.gate.wait()
        return self._log.append(publications)


class FaultyOutbox:
    """An outbox whose n-th write meets the n-th fault. Reading always works."""

    def __init__(self, outbox: Outbox, faults: Iterable[Fault]) -> None:
        self._outbox = outbox
        self._faults = Faults(faults)

    def write(self, batch: int, upto: int, matches: pa.Table) -> None:
        self._faults.strike(lambda: self._outbox.write(batch, upto, matches))

    def read(self, after: int, limit: int) -> list[OutboxChunk]:
        return self._outbox.read(after, limit)

    def head(self) -> int:
        return self._outbox.head()

    def trim(self, before: int) -> int:
        return self._outbox.trim(before)
