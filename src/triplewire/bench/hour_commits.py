"""The commits of `bench hour`: what the `store` query commits in a second, without the log and the query."""

from __future__ import annotations

import time
from itertools import count, pairwise
from pathlib import Path

from triplewire.bench.history_data import QUADS, STREAMS, Day
from triplewire.model.clock import ManualClock
from triplewire.storage.lake.data_files import FileWriter
from triplewire.storage.lake.delta import DeltaLake
from triplewire.storage.lake.ports import CommitBatch, Snapshot
from triplewire.storage.log.appending import entries_table, entry_rows

FILES = 2
"""Of a commit: two tasks write one each."""

_DAY_SECONDS = 86_400


def day(rate: int) -> Day:
    """A day with so many events a second, of which the first of it are taken."""
    return Day(rate * _DAY_SECONDS * QUADS)


class Commits:
    """A commit for each second, with a clock that goes by them."""

    def __init__(self, directory: Path, rate: int, clock: ManualClock) -> None:
        self.lake = DeltaLake(directory)
        self.done = 0
        self.seconds = 0.0
        """Of the last commit, and of looking at the table after it; files are written before."""
        self._writer = FileWriter(directory)
        self._rate = rate
        self._day = day(rate)
        self._clock = clock

    def commit(self) -> Snapshot:
        """The next second; the table after it."""
        first = self.done * self._rate
        events = [self._day.event(number) for number in range(first, first + self._rate)]
        stream = STREAMS[self.done % len(STREAMS)]
        entries = list(entry_rows(((stream, event) for event in events), count(first + 1), self._clock.now()))
        ends = [len(entries) * part // FILES for part in range(FILES + 1)]
        parts = [entries[begin:end] for begin, end in pairwise(ends)]
        files = [self._writer.write(entries_table([part])) for part in parts if part]
        began = time.perf_counter()
        self.lake.commit(CommitBatch("bench", self.done, first + self._rate), files)
        found = self.lake.files()
        self.seconds = time.perf_counter() - began
        self.done += 1
        self._clock.advance(1.0)
        return found

    def close(self) -> None:
        self._writer.close()
