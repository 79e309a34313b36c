"""In-memory twins of log, registry and webhook store, for tests and for embedding without a disk.

Log and registry share one sequence of positions.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice, takewhile
from math import inf
from operator import attrgetter, itemgetter
from threading import Lock
from typing import Any, Final

import orjson
import pyarrow as pa

from triplewire.model import START, Erasure
from triplewire.model.clock import Clock
from triplewire.model.erasure import compute_losses
from triplewire.storage.log import appending, ports
from triplewire.storage.registry.ports import RegistryChange
from triplewire.storage.webhooks import DeadLetter, WebhookProgress


class PositionSequence:
    """The sequence of positions that log and registry share. `head` moves only when entries at the positions can be
    read."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._head = 0

    @property
    def head(self) -> int:
        return self._head

    @contextmanager
    def taking(self, count: int) -> Iterator[range]:
        """Take positions for a block that stores something at them. A block that fails takes none."""
        with self._lock:
            yield range(self._head + 1, self._head + count + 1)
            self._head += count


_ROW_POSITION = itemgetter(0)
_TEXT: Final = 3
_STREAM: Final = 1
_EVENT: Final = 2
_SOURCE: Final = 4
_RECEIVED: Final = 7


class MemoryLog:
    """The log in the memory of one process."""

    def __init__(
        self,
        positions: PositionSequence,
        clock: Clock,
        *,
        segments: ports.SegmentLimits = ports.SEGMENT_LIMITS,
        lookup: int = ports.LOOKUP_POSITIONS,
    ) -> None:
        """`find` looks through the newest `lookup` positions."""
        self._clock = clock
        self._limits = segments
        self._lookup = lookup
        self._positions = positions
        # Only ever grows; a trim puts another list in its place, so that readers need no lock.
        self._rows: list[appending.EntryRow] = []
        self._keys: dict[str, range] = {}
        self._floors: dict[str, int] = {}
        self._names: dict[appending.EventKey, int] = {}
        self._volumes: dict[str, ports.StreamVolume] = {}
        self._segments: dict[str, list[ports.Segment]] = {}
        self._turn = Lock()

    def append(self, publications: Sequence[ports.Publication]) -> list[Sequence[int]]:
        with self._turn:
            hashes = [appending.hash_events(each) for each in publications]
            planned = appending.plan_append(publications, hashes, self._known(publications, hashes))
            with self._positions.taking(planned.count) as taken:
                received, next_positions = self._clock.now(), iter(taken)
                for each in planned.fresh:
                    events = zip(each.publication.streams, each.publication.events, strict=False)
                    rows = list(appending.entry_rows(events, next_positions, received))
                    self._rows.extend(rows)
                    self._bind(rows, received)
                    self._names |= {name: row[0] for name, row in zip(each.names, rows, strict=True) if name}
            self._keys |= {key: taken[new.start : new.stop] for key, new in planned.keys.items()}
            return planned.positions(taken.start)

    def _bind(self, rows: Sequence[appending.EntryRow], received: int) -> None:
        arrivals: dict[str, list[ports.AppendedEvent]] = {}
        for row in rows:
            arrivals.setdefault(row[_STREAM], []).append((row[0], appending.entry_size(row)))
        for stream, come in arrivals.items():
            before = self._volumes.get(stream, ports.StreamVolume(stream))
            self._volumes[stream], full = ports.extend_volume(before, come, received, self._limits)
            self._segments[stream] = [*self._segments.get(stream, ()), *full]

    def _known(
        self, publications: Sequence[ports.Publication], hashes: Sequence[appending.Hashes]
    ) -> appending.KnownEvents:
        keys = {key: self._keys[key] for key in appending.publication_keys(publications) if key in self._keys}
        asked = (name for pair in zip(publications, hashes, strict=True) for name in appending.FreshEvents(*pair).names)
        places = {name: self._names[name] for name in asked if name is not None and name in self._names}
        texts = {row[0]: row[_TEXT] for row in self._rows} if places else {}
        return appending.KnownEvents(keys, {name: (at, texts[at]) for name, at in places.items()})

    def read(self, after: int, through: int, limit: int) -> pa.Table:
        rows = self._rows
        first = bisect_right(rows, after, key=_ROW_POSITION)
        last = bisect_right(rows, through, key=_ROW_POSITION)
        there = (row for row in islice(rows, first, last) if row[_EVENT])
        return appending.entries_table([list(islice(there, limit))])

    def entries(self, positions: Sequence[int]) -> pa.Table:
        wanted = set(positions)
        return appending.entries_table([[row for row in self._rows if row[0] in wanted and row[_EVENT]]])

    def find(self, event: str, stream: str | None = None) -> int | None:
        oldest = self.head() - self._lookup
        for row in takewhile(lambda row: row[0] > oldest, reversed(self._rows)):
            if row[_EVENT] == event and stream in (None, row[_STREAM]):
                return int(row[0])
        return None

    def page_end(self, after: int, through: int, size: int) -> int:
        rows, held = self._rows, 0
        for row in rows[bisect_right(rows, after, key=_ROW_POSITION) : bisect_right(rows, through, key=_ROW_POSITION)]:
            if held >= max(size, 1):
                return int(row[0]) - 1
            held += appending.entry_size(row)
        return through

    def begin(self) -> int:
        head, rows = self.head(), self._rows
        return rows[0][0] if rows else head + 1

    def floor(self, stream: str | None = None) -> int:
        return max(self._floors.values(), default=START) if stream is None else self._floors.get(stream, START)

    def volumes(self, after: str = "", limit: int | None = None) -> list[ports.StreamVolume]:
        names = sorted(stream for stream in self._volumes if stream > after)
        return [self._volumes[stream] for stream in names[:limit]]

    def volume(self, stream: str) -> ports.StreamVolume | None:
        return self._volumes.get(stream)

    def segments(self, stream: str, numbers: Sequence[int]) -> list[ports.Segment]:
        full = self._segments.get(stream, [])
        return [full[number] for number in sorted(set(numbers)) if 0 <= number < len(full)]

    def losses(self, erasure: Erasure) -> pa.Table:
        return compute_losses(self.read(START, erasure.position - 1, len(self._rows)), erasure)

    def erase(self, erasure: Erasure) -> None:
        with self._positions.taking(0):
            before, self._rows = (
                self._rows,
                [row if row[0] >= erasure.position else _remaining_row(row, erasure) for row in self._rows],
            )
            changed = {row[0] for row, left in zip(before, self._rows, strict=True) if row[_TEXT] != left[_TEXT]}
        with self._turn:
            self._names = {name: at for name, at in self._names.items() if at not in changed}

    def head(self) -> int:
        return self._positions.head

    def trim(self, retention: ports.LogRetention, before: int) -> int:
        with self._positions.taking(0):
            going = list(takewhile(lambda row: row[0] < before, self._expired(retention)))
            self._floors |= {row[_STREAM]: row[0] for row in going if row[_EVENT]}
            self._rows = self._rows[len(going) :]
        if going:
            with self._turn:
                self._keys = {key: taken for key, taken in self._keys.items() if taken.stop > going[-1][0] + 1}
                self._names = {name: at for name, at in self._names.items() if at > going[-1][0]}
        return len(going)

    def _expired(self, retention: ports.LogRetention) -> Iterator[appending.EntryRow]:
        oldest = -inf if retention.age is None else self._clock.now() - retention.age * 1_000_000
        size = inf if retention.size is None else retention.size
        kept = sum(appending.entry_size(row) for row in self._rows)
        for row in self._rows:
            if row[_RECEIVED] >= oldest and kept <= size:
                return
            yield row
            kept -= appending.entry_size(row)


def _remaining_row(row: appending.EntryRow, erasure: Erasure) -> appending.EntryRow:
    """The row with the text that remains; a row without an event if nothing does."""
    if not row[_EVENT]:
        return row
    text = erasure.left(row[_EVENT], row[_SOURCE], row[_TEXT])
    if text is None:
        return (row[0], "", "", "", None, None, 0, row[_RECEIVED], "", None)
    return (*row[:_TEXT], text, *row[_SOURCE:])


_CHANGE_POSITION = attrgetter("position")


class MemoryRegistry:
    """The registry in the memory of one process."""

    def __init__(self, positions: PositionSequence) -> None:
        self._positions = positions
        self._changes: list[RegistryChange] = []
        self._things: dict[tuple[str, str], RegistryChange] = {}

    def put(self, entries: Sequence[tuple[str, str, Mapping[str, Any] | None]]) -> list[int]:
        with self._positions.taking(len(entries)) as taken:
            made = [
                RegistryChange(at, kind, key, _copy_value(value))
                for at, (kind, key, value) in zip(taken, entries, strict=True)
            ]
            self._changes.extend(made)
            # Replaced, not changed: a reader keeps the state that it has.
            self._things = _apply_changes(self._things, made)
        return list(taken)

    def get(self, kind: str, key: str) -> RegistryChange | None:
        return self._things.get((kind, key))

    def list(
        self, kind: str, *, after: int = START, below: str | None = None, limit: int | None = None
    ) -> Sequence[RegistryChange]:
        found = [each for each in self._things.values() if each.kind == kind and each.position > after]
        asked = [each for each in found if below is None or each.key < below]
        return sorted(asked, key=_CHANGE_POSITION)[:limit]

    def changes(self, after: int, through: int, most: int | None = None) -> Sequence[RegistryChange]:
        first = bisect_right(self._changes, after, key=_CHANGE_POSITION)
        last = bisect_right(self._changes, through, key=_CHANGE_POSITION)
        return self._changes[first : last if most is None else min(last, first + most)]

    def redact(self, position: int, value: Mapping[str, Any]) -> None:
        with self._positions.taking(0):
            self._changes = [
                replace(each, value=_copy_value(value)) if each.position == position else each for each in self._changes
            ]
            self._things = _apply_changes({}, self._changes)


def _apply_changes(
    things: Mapping[tuple[str, str], RegistryChange], made: Sequence[RegistryChange]
) -> dict[tuple[str, str], RegistryChange]:
    newest = {**things, **{(change.kind, change.key): change for change in made}}
    return {name: change for name, change in newest.items() if change.value is not None}


def _copy_value(value: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """The value as a reader would get it: plain JSON, detached from the writer's object."""
    return None if value is None else orjson.loads(orjson.dumps(dict(value)))


class MemoryWebhookStore:
    """The webhook store in the memory of one process."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._progress: dict[str, WebhookProgress] = {}
        self._dead_letters: dict[str, dict[int, DeadLetter]] = {}
        self._redeliveries: dict[str, set[int]] = {}
        self._secrets: dict[str, str] = {}

    def record(self, progress: Mapping[str, WebhookProgress], dead_letters: Sequence[DeadLetter] = ()) -> None:
        self._progress.update(progress)
        for each in dead_letters:
            self._dead_letters.setdefault(each.hook, {})[each.position] = each

    def progress(self) -> Mapping[str, WebhookProgress]:
        counts = {id: len(letters) for id, letters in self._dead_letters.items() if letters}
        known = {**self._progress, **counts}
        return {id: replace(self._progress.get(id, WebhookProgress(START)), parked=counts.get(id, 0)) for id in known}

    def dead_letters(self, hook: str, after: int = START, limit: int = 1) -> Sequence[DeadLetter]:
        letters = self._dead_letters.get(hook, {})
        return [letters[position] for position in sorted(letters) if position > after][:limit]

    def remove(self, hook: str, positions: Sequence[int]) -> None:
        for position in positions:
            self._dead_letters.get(hook, {}).pop(position, None)
        self.end_redelivery(hook, positions)

    def request_redelivery(self, hook: str, positions: Sequence[int] | None = None) -> int:
        letters = set(self._dead_letters.get(hook, {}))
        chosen = letters if positions is None else letters & set(positions)
        self._redeliveries.setdefault(hook, set()).update(chosen)
        return len(chosen)

    def redeliveries(self) -> Mapping[str, Sequence[int]]:
        return {hook: sorted(positions) for hook, positions in self._redeliveries.items() if positions}

    def end_redelivery(self, hook: str, positions: Sequence[int]) -> None:
        self._redeliveries.get(hook, set()).difference_update(positions)

    def put_secrets(self, secrets: Mapping[str, str]) -> None:
        self._secrets.update(secrets)

    def secret(self, hook: str) -> str | None:
        return self._secrets.get(hook)

    def forget(self, hook: str) -> None:
        for each in (self._progress, self._dead_letters, self._redeliveries, self._secrets):
            each.pop(hook, None)

    def acquire(self) -> bool:
        return self._lock.acquire(blocking=False)

    def release(self) -> None:
        self._lock.release()
