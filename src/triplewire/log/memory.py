"""The log in memory: for tests and for embedding without a disk."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import islice, takewhile
from math import inf
from operator import itemgetter
from threading import Lock
from typing import Final

import pyarrow as pa

from triplewire.clock import Clock
from triplewire.config import limits
from triplewire.log import entries
from triplewire.log.entries import Row
from triplewire.log.leaves import Arrival, Leaf, Volume, grown
from triplewire.log.names import Name
from triplewire.log.plans import Known, named, plan
from triplewire.log.ports import Publication, Retention
from triplewire.model import START, Erasure
from triplewire.model.erasures import losses
from triplewire.sequences import Positions

_POSITION = itemgetter(0)
_TEXT: Final = 3
_STREAM: Final = 1
_EVENT: Final = 2
_SOURCE: Final = 4
_RECEIVED: Final = 7


class MemoryLog:
    """Events in a list, gone with the process. Given the registry's positions it shares one order with it."""

    def __init__(self, positions: Positions, clock: Clock) -> None:
        self._clock = clock
        self._positions = positions
        # Only ever grows; a trim puts another list in its place, so that readers need no lock.
        self._rows: list[Row] = []
        self._keys: dict[str, range] = {}
        self._gone: dict[str, int] = {}
        self._names: dict[Name, int] = {}
        self._volumes: dict[str, Volume] = {}
        self._leaves: dict[str, list[Leaf]] = {}
        self._turn = Lock()

    def append(self, publications: Sequence[Publication]) -> list[Sequence[int]]:
        with self._turn:
            planned = plan(publications, self._known(publications))
            with self._positions.taking(len(planned.fresh)) as taken:
                received = self._clock.now()
                new = list(entries.rows(planned.fresh, iter(taken), received))
                self._rows.extend(new)
                self._bind(new, received)
            self._keys |= {key: taken[places.start : places.stop] for key, places in planned.keys.items()}
            self._names |= {name: at for name, at in zip(planned.names, taken, strict=True) if name is not None}
            return planned.positions(taken.start)

    def _bind(self, rows: Sequence[Row], received: int) -> None:
        arrivals: dict[str, list[Arrival]] = {}
        for row in rows:
            arrivals.setdefault(row[_STREAM], []).append((row[0], entries.size(row)))
        for stream, come in arrivals.items():
            self._volumes[stream], full = grown(self._volumes.get(stream, Volume(stream)), come, received)
            self._leaves[stream] = [*self._leaves.get(stream, ()), *full]

    def _known(self, publications: Sequence[Publication]) -> Known:
        keys = {key: self._keys[key] for key in entries.keys(publications) if key in self._keys}
        places = {name: self._names[name] for name in named(publications) if name in self._names}
        texts = {row[0]: row[_TEXT] for row in self._rows} if places else {}
        return Known(keys, {name: (at, texts[at]) for name, at in places.items()})

    def read(self, after: int, upto: int, limit: int) -> pa.Table:
        rows = self._rows
        first = bisect_right(rows, after, key=_POSITION)
        last = bisect_right(rows, upto, key=_POSITION)
        there = (row for row in islice(rows, first, last) if row[_EVENT])
        return entries.table([list(islice(there, limit))])

    def entries(self, positions: Sequence[int]) -> pa.Table:
        """Those of the given positions that hold an entry, in order and once each, as an `ENTRIES` table."""
        wanted = set(positions)
        return entries.table([[row for row in self._rows if row[0] in wanted and row[_EVENT]]])

    def find(self, event: str, stream: str | None = None) -> int | None:
        """The newest position of the event with this id, in a stream or in any, if it is among the newest positions."""
        oldest = self.head() - limits.RETROSPECT_POSITIONS
        for row in takewhile(lambda row: row[0] > oldest, reversed(self._rows)):
            if row[_EVENT] == event and stream in (None, row[_STREAM]):
                return int(row[0])
        return None

    def reach(self, after: int, upto: int, size: int) -> int:
        """The last position up to `upto` for which the entries after `after` hold at most `size` bytes of text and
        extensions, not counting the last of them. At least the first entry is among them."""
        rows, held = self._rows, 0
        for row in rows[bisect_right(rows, after, key=_POSITION) : bisect_right(rows, upto, key=_POSITION)]:
            if held >= max(size, 1):
                return int(row[0]) - 1
            held += entries.size(row)
        return upto

    def begin(self) -> int:
        head, rows = self.head(), self._rows
        return rows[0][0] if rows else head + 1

    def gone(self, stream: str | None = None) -> int:
        return max(self._gone.values(), default=START) if stream is None else self._gone.get(stream, START)

    def volumes(self, after: str = "", limit: int | None = None) -> list[Volume]:
        names = sorted(stream for stream in self._volumes if stream > after)
        return [self._volumes[stream] for stream in names[:limit]]

    def volume(self, stream: str) -> Volume | None:
        return self._volumes.get(stream)

    def leaves(self, stream: str, numbers: Sequence[int]) -> list[Leaf]:
        full = self._leaves.get(stream, [])
        return [full[number] for number in sorted(set(numbers)) if 0 <= number < len(full)]

    def losses(self, erasure: Erasure) -> pa.Table:
        return losses(self.read(START, erasure.position - 1, len(self._rows)), erasure)

    def erase(self, erasure: Erasure) -> None:
        with self._positions.taking(0):
            before, self._rows = (
                self._rows,
                [row if row[0] >= erasure.position else _left(row, erasure) for row in self._rows],
            )
            changed = {row[0] for row, left in zip(before, self._rows, strict=True) if row[_TEXT] != left[_TEXT]}
        with self._turn:
            self._names = {name: at for name, at in self._names.items() if at not in changed}

    def head(self) -> int:
        return self._positions.head

    def trim(self, retention: Retention, before: int) -> int:
        with self._positions.taking(0):
            going = list(takewhile(lambda row: row[0] < before, self._expired(retention)))
            self._gone |= {row[_STREAM]: row[0] for row in going if row[_EVENT]}
            self._rows = self._rows[len(going) :]
        if going:
            with self._turn:
                self._keys = {key: taken for key, taken in self._keys.items() if taken.stop > going[-1][0] + 1}
                self._names = {name: at for name, at in self._names.items() if at > going[-1][0]}
        return len(going)

    def _expired(self, retention: Retention) -> Iterator[Row]:
        oldest = -inf if retention.age is None else self._clock.now() - retention.age * 1_000_000
        size = inf if retention.size is None else retention.size
        kept = sum(entries.size(row) for row in self._rows)
        for row in self._rows:
            if row[_RECEIVED] >= oldest and kept <= size:
                return
            yield row
            kept -= entries.size(row)


def _left(row: Row, erasure: Erasure) -> Row:
    """The row with what is left of its text; one without an event where nothing is, in its place."""
    if not row[_EVENT]:
        return row
    text = erasure.left(row[_EVENT], row[_SOURCE], row[_TEXT])
    if text is None:
        return (row[0], "", "", "", None, None, 0, row[_RECEIVED], "", None)
    return (*row[:_TEXT], text, *row[_SOURCE:])
