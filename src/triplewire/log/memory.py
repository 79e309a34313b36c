"""The log in memory: for tests and for embedding without a disk."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import takewhile
from math import inf
from operator import itemgetter
from threading import Lock
from typing import Final

import pyarrow as pa

from triplewire.clock import Clock
from triplewire.log import entries
from triplewire.log.entries import Row
from triplewire.log.ports import Publication, Retention
from triplewire.sequences import Positions

_POSITION = itemgetter(0)
_TEXT: Final = 3
_RECEIVED: Final = 7


class MemoryLog:
    """Events in a list, gone with the process. Given the registry's positions it shares one order with it."""

    def __init__(self, positions: Positions, clock: Clock) -> None:
        self._clock = clock
        self._positions = positions
        # Only ever grows; a trim puts another list in its place, so that readers need no lock.
        self._rows: list[Row] = []
        self._keys: dict[str, range] = {}
        self._turn = Lock()

    def append(self, publications: Sequence[Publication]) -> list[range]:
        received = self._clock.now()
        with self._turn:
            known = {key: self._keys[key] for key in entries.keys(publications) if key in self._keys}
            fresh = entries.fresh(publications, known)
            with self._positions.taking(sum(len(publication.events) for publication in fresh)) as taken:
                self._rows.extend(list(entries.rows(fresh, iter(taken), received)))
            found = entries.ranges(publications, taken.start, known)
            self._keys |= {each.key: at for each, at in zip(publications, found, strict=True) if each.key is not None}
        return found

    def read(self, after: int, upto: int, limit: int) -> pa.Table:
        rows = self._rows
        first = bisect_right(rows, after, key=_POSITION)
        last = bisect_right(rows, upto, key=_POSITION)
        return entries.table([rows[first : min(last, first + limit)]])

    def entries(self, positions: Sequence[int]) -> pa.Table:
        """Those of the given positions that hold an entry, in order and once each, as an `ENTRIES` table."""
        wanted = set(positions)
        return entries.table([[row for row in self._rows if row[0] in wanted]])

    def reach(self, after: int, upto: int, size: int) -> int:
        """The last position up to `upto` for which the entries after `after` hold at most `size` bytes of text, not
        counting the last of them. At least the first entry is among them."""
        rows, held = self._rows, 0
        for row in rows[bisect_right(rows, after, key=_POSITION) : bisect_right(rows, upto, key=_POSITION)]:
            if held >= max(size, 1):
                return int(row[0]) - 1
            held += entries.size(row[_TEXT])
        return upto

    def head(self) -> int:
        return self._positions.head

    def trim(self, retention: Retention, before: int) -> int:
        with self._positions.taking(0):
            going = list(takewhile(lambda row: row[0] < before, self._expired(retention)))
            self._rows = self._rows[len(going) :]
        if going:
            with self._turn:
                self._keys = {key: taken for key, taken in self._keys.items() if taken.stop > going[-1][0] + 1}
        return len(going)

    def _expired(self, retention: Retention) -> Iterator[Row]:
        oldest = -inf if retention.age is None else self._clock.now() - retention.age * 1_000_000
        size = inf if retention.size is None else retention.size
        kept = sum(entries.size(row[_TEXT]) for row in self._rows)
        for row in self._rows:
            if row[_RECEIVED] >= oldest and kept <= size:
                return
            yield row
            kept -= entries.size(row[_TEXT])
