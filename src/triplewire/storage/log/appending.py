"""Appending to a log: which events are new, which are duplicates, and the rows that are stored.

The deduplication index finds an event by 64 bits of stream and id within microseconds. In the log's file the hashes
lie in the order of positions, so that a commit appends some bytes; in memory they are sorted, in runs that grow by
being merged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from hashlib import blake2b
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa

from triplewire.model import ENTRIES, Event, EventColumns, EventHeaders
from triplewire.storage.log.ports import AppendResult, Publication

DEDUPLICATION_RUN: Final = 2**20
"""Ids given by publishers that are sorted in memory together, to find those that come again: at worst some 200 ms for
which publishers wait. All of the log are in memory, 16 bytes each: some 200 MB for 8 GiB of small events."""


EventKey: TypeAlias = tuple[str, str]
"""A stream, and the id of an event in it."""

Hashes: TypeAlias = npt.NDArray[np.uint64]

NO_HASH = 0
"""In place of a hash: the event at that position is not known by a name."""

_NO_HASH, _OTHER = bytes(8), (1).to_bytes(8, "little")


def hash_events(publication: Publication) -> Hashes:
    """64 bits of the stream and id of each event, `NO_HASH` for one whose id the publisher did not give."""
    given, hashes = publication.given, list[bytes]()
    if not given:
        return np.zeros(len(publication.events), np.uint64)
    for stream, id in zip(publication.streams, publication.ids, strict=False):
        hashes.append(_hash(stream, id) if id in given else _NO_HASH)
    return np.frombuffer(b"".join(hashes), np.uint64)


def _hash(stream: str, id: str) -> bytes:
    digest = blake2b(f"{stream}\n{id}".encode(), digest_size=8).digest()
    return _OTHER if digest == _NO_HASH else digest


def unpack_hashes(data: bytes) -> Hashes:
    return np.frombuffer(data, np.uint64)


class DeduplicationIndex:
    """Positions by the hash of a key, in sorted runs. It may find a position too many, never one too few: callers look
    at the event."""

    def __init__(self, run: int = DEDUPLICATION_RUN) -> None:
        """A run has at most `run` hashes."""
        self._run = run
        self.position = 0
        """The position of the last hashes that were added."""
        self._runs: list[tuple[Hashes, npt.NDArray[np.int64]]] = []

    def add(self, blobs: Sequence[tuple[int, bytes]]) -> None:
        """Add hashes of events, each time from a position on; all are above those that were added."""
        if not blobs:
            return
        self.position = blobs[-1][0]
        parts = [(first, unpack_hashes(data)) for first, data in blobs]
        hashes = np.concatenate([part for _, part in parts])
        positions = np.concatenate([np.arange(first, first + len(part)) for first, part in parts])
        known = np.flatnonzero(hashes != NO_HASH)
        for start in range(0, len(known), self._run):
            rows = known[start : start + self._run]
            self._append(hashes[rows], positions[rows])

    def _append(self, hashes: Hashes, positions: npt.NDArray[np.int64]) -> None:
        """Append a run, merged with those before it while they are less than twice as long."""
        while self._runs and len(self._runs[-1][0]) < min(2 * len(hashes), self._run - len(hashes) + 1):
            older = self._runs.pop()
            hashes, positions = np.concatenate([older[0], hashes]), np.concatenate([older[1], positions])
        order = np.argsort(hashes)
        self._runs.append((hashes[order], positions[order]))

    def find(self, asked: Hashes) -> list[int]:
        """Positions at which one of the hashes may be."""
        return [position for run in self._runs for position in _search_run(*run, asked)]

    def forget(self, before: int) -> None:
        """Drop runs that end before a position."""
        self._runs = [run for run in self._runs if run[1].max() >= before]


def _search_run(hashes: Hashes, positions: npt.NDArray[np.int64], asked: Hashes) -> Iterator[int]:
    starts = np.searchsorted(hashes, asked)
    hits = np.flatnonzero(hashes[np.minimum(starts, len(hashes) - 1)] == asked)
    for hit in hits:
        end = np.searchsorted(hashes, asked[hit], side="right")
        yield from positions[starts[hit] : end].tolist()


@dataclass(frozen=True)
class KnownEvents:
    """Known keys and events that publications repeat: positions by key, and positions and texts by event."""

    keys: Mapping[str, range] = field(default_factory=dict)
    events: Mapping[EventKey, tuple[int, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class FreshEvents:
    """Events of one publication that are to be stored, and their hashes."""

    publication: Publication
    hashes: Hashes

    @property
    def names(self) -> Iterator[EventKey | None]:
        """The keys by which the events may be recognized when they come again."""
        keys = zip(self.publication.streams, self.publication.ids, strict=False)
        return (key if known else None for key, known in zip(keys, self.hashes.tolist(), strict=False))


@dataclass
class AppendPlan:
    """One pass over publications, in order. Positions of what is new are below zero until it is known where they
    begin: -1 is the first, -2 the next."""

    fresh: list[FreshEvents] = field(default_factory=list)
    count: int = 0
    """The number of events to store."""
    keys: dict[str, range] = field(default_factory=dict)
    """Ranges, among the events to store, of new publications with a key."""
    _answers: list[Sequence[int]] = field(default_factory=list)

    def positions(self, start: int) -> list[Sequence[int]]:
        """The results of all publications, if the first new event takes position `start`."""
        return [_shift_positions(answer, start) for answer in self._answers]

    def pack_hashes(self) -> bytes:
        """The hashes of the events to store; nothing if none can come again."""
        hashes = np.concatenate([np.zeros(0, np.uint64), *(each.hashes for each in self.fresh)])
        return hashes.tobytes() if hashes.any() else b""

    def _add(self, publication: Publication, hashes: Hashes) -> range:
        """Store the events of a publication, and return their positions."""
        before, self.count = self.count, self.count + len(publication.events)
        if publication.events:
            self.fresh.append(FreshEvents(publication, hashes))
        return range(-1 - before, -1 - self.count, -1)


def plan_append(publications: Sequence[Publication], hashes: Sequence[Hashes], known: KnownEvents) -> AppendPlan:
    """Plan what is stored. `hashes` are those of each publication."""
    made, keys, events = AppendPlan(), dict(known.keys), dict(known.events)
    distinct = not events and _are_distinct(hashes)
    for publication, own in zip(publications, hashes, strict=True):
        answer: Sequence[int] | None = None if publication.key is None else keys.get(publication.key)
        if answer is None:
            before = made.count
            answer = made._add(publication, own) if distinct else _plan_publication(publication, own, made, events)
            if publication.key is not None and made.count > before:
                made.keys[publication.key] = range(before, made.count)
                keys[publication.key] = range(-1 - before, -1 - made.count, -1)
        made._answers.append(answer)
    return made


def _are_distinct(hashes: Sequence[Hashes]) -> bool:
    """Whether no event repeats another of the same append: then there is no need to look at each."""
    given = np.concatenate([np.zeros(0, np.uint64), *hashes])
    given = np.sort(given[given != NO_HASH])
    return bool((given[1:] != given[:-1]).all())


def _plan_publication(
    publication: Publication, hashes: Hashes, made: AppendPlan, events: MutableMapping[EventKey, tuple[int, str]]
) -> Sequence[int]:
    names = [*FreshEvents(publication, hashes).names]
    there = [events.get(name) if name else None for name in names]
    pairs = list(zip(publication.events, there, strict=True))
    others = {event.id: found[0] for event, found in pairs if found and found[1] != event.text}
    if others and not publication.apart:
        return AppendResult(others.values(), others=others)
    found, fresh, repeated = list[int](), list[int](), 0
    for row, (event, name) in enumerate(zip(publication.events, names, strict=True)):
        known = events.get(name) if name else None
        repeated += known is not None and event.id not in others
        if known is None:
            known = (-1 - made.count - len(fresh), event.text)
            fresh.append(row)
            if name:
                events[name] = known
        found.append(known[0])
    if len(fresh) == len(names):
        return made._add(publication, hashes)
    made._add(_pick_events(publication, fresh), hashes[fresh])
    return AppendResult(found, repeated, others)


def _pick_events(publication: Publication, rows: Sequence[int]) -> Publication:
    stream = publication.stream
    streams = stream if isinstance(stream, str) else [stream[row] for row in rows]
    return replace(publication, stream=streams, events=[publication.events[row] for row in rows])


def _shift_positions(answer: Sequence[int], start: int) -> Sequence[int]:
    if isinstance(answer, range):
        return range(start - 1 - answer.start, start - 1 - answer.stop) if answer.step < 0 else answer
    assert isinstance(answer, AppendResult)
    return answer.shifted(start)


EntryRow: TypeAlias = tuple[int, str, str, str, str | None, str | None, int, int, str, str | None]
"""The values of one entry in the order of `ENTRIES`."""

_TEXT: Final = 3
_EXTENSIONS: Final = 9


@cache
def empty_entries() -> pa.Table:
    """Made once: readers ask ten times a second and mostly there is nothing new."""
    return ENTRIES.empty_table()


def entry_rows(events: Iterable[tuple[str, Event]], positions: Iterator[int], received: int) -> Iterator[EntryRow]:
    """Rows of events, which take the next positions in order."""
    for stream, event in events:
        headers = event.headers
        yield (
            next(positions),
            stream,
            event.id,
            event.text,
            headers.source,
            headers.application,
            received if headers.time is None else headers.time,
            received,
            headers.syntax,
            _format_extensions(headers),
        )


def _format_extensions(headers: EventHeaders) -> str | None:
    return orjson.dumps(dict(headers.extensions)).decode() if headers.extensions else None


def entries_batch(fresh: Iterable[FreshEvents], positions: range, received: int) -> pa.RecordBatch:
    """New events as entries at these positions."""
    batches, first = list[pa.RecordBatch](), positions.start
    for each in fresh:
        taken = range(first, first + len(each.publication.events))
        batches.append(_publication_batch(each.publication, taken, received))
        first = taken.stop
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def _publication_batch(publication: Publication, positions: range, received: int) -> pa.RecordBatch:
    events = publication.events
    if not isinstance(events, EventColumns):
        rows = entry_rows(zip(publication.streams, events, strict=False), iter(positions), received)
        columns: Iterable[object] = zip(*rows, strict=True)
    else:
        headers, count = events.headers, len(events)
        time, extensions = received if headers.time is None else headers.time, _format_extensions(headers)
        constants = (headers.source, headers.application, time, received, headers.syntax, extensions)
        stream = publication.stream
        streams = pa.repeat(stream, count) if isinstance(stream, str) else stream
        repeated = (
            pa.repeat(pa.scalar(value, field.type), count)
            for value, field in zip(constants, [*ENTRIES][_TEXT + 1 :], strict=True)
        )
        columns = (np.arange(positions.start, positions.stop), streams, events.ids, events.texts, *repeated)
    arrays = [
        column if isinstance(column, pa.Array) else pa.array(column, field.type)
        for column, field in zip(columns, ENTRIES, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=ENTRIES)


def entries_table(pages: Iterable[Sequence[EntryRow]]) -> pa.Table:
    """Rows as an `ENTRIES` table. They come in pages: tuples that live shortly cost the garbage collector little."""
    columns: list[list[int | str | None]] = [[] for _ in ENTRIES]
    for page in pages:
        for column, values in zip(columns, zip(*page, strict=True), strict=False):
            column.extend(values)
    if not columns[0]:
        return empty_entries()
    arrays = [pa.array(column, field.type) for column, field in zip(columns, ENTRIES, strict=True)]
    return pa.Table.from_arrays(arrays, schema=ENTRIES)


def publication_keys(publications: Sequence[Publication]) -> list[str]:
    return [publication.key for publication in publications if publication.key is not None]


def entry_size(row: EntryRow) -> int:
    """Bytes of text and extensions as UTF-8, which count for retention and pages."""
    text, others = row[_TEXT], row[_EXTENSIONS]
    return _bytes(text) + (_bytes(others) if others else 0)


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())
