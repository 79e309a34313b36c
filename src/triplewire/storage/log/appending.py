"""Appending to a log: which events are new, which are duplicates, and the rows that are stored.

The deduplication index finds an event by 64 bits of stream and id within microseconds. In the log's file the hashes
lie in the order of positions, so that a commit appends some bytes; in memory they are sorted, in runs that grow by
being merged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import blake2b
from itertools import repeat
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa

from triplewire.model import ENTRIES, Event
from triplewire.storage.log.ports import AppendResult, Publication

DEDUPLICATION_RUN: Final = 2**20
"""Ids given by publishers that are sorted in memory together, to find those that come again: at worst some 200 ms for
which publishers wait. All of the log are in memory, 16 bytes each: some 200 MB for 8 GiB of small events."""


EventKey: TypeAlias = tuple[str, str]
"""A stream, and the id of an event in it."""

Hashes: TypeAlias = npt.NDArray[np.uint64]

NO_HASH = 0
"""In place of a hash: the event at that position is not known by a name."""


def hash_key(name: EventKey) -> int:
    """The 64 bits of a key, never `NO_HASH`."""
    stream, id = name
    return int.from_bytes(blake2b(f"{stream}\n{id}".encode(), digest_size=8).digest(), "little") or 1


def pack_hashes(names: Sequence[EventKey | None], hashes: Mapping[EventKey, int]) -> bytes:
    """The hashes of events at successive positions."""
    return np.array([NO_HASH if name is None else hashes[name] for name in names], np.uint64).tobytes()


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

    def find(self, hashes: Sequence[int]) -> list[int]:
        """Positions at which one of the hashes may be."""
        asked = np.array(hashes, np.uint64)
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


@dataclass
class AppendPlan:
    """One pass over publications, in order. Positions of what is new are below zero until it is known where they
    begin: -1 is the first, -2 the next."""

    fresh: list[tuple[str, Event]] = field(default_factory=list)
    """Events to store, with their streams."""
    keys: dict[str, range] = field(default_factory=dict)
    """Index ranges in `fresh` of new publications with a key."""
    names: list[EventKey | None] = field(default_factory=list)
    """Event keys of the events to store, for deduplication."""
    _answers: list[Sequence[int]] = field(default_factory=list)

    def positions(self, start: int) -> list[Sequence[int]]:
        """The results of all publications, if the first new event takes position `start`."""
        return [_shift_positions(answer, start) for answer in self._answers]


def plan_append(publications: Iterable[Publication], known: KnownEvents) -> AppendPlan:
    made, keys, events = AppendPlan(), dict(known.keys), dict(known.events)
    for publication in publications:
        answer: Sequence[int] | None = None if publication.key is None else keys.get(publication.key)
        if answer is None:
            before = len(made.fresh)
            answer = _plan_publication(publication, made, events)
            if publication.key is not None and (new := range(before, len(made.fresh))):
                made.keys[publication.key] = new
                keys[publication.key] = range(-1 - before, -1 - len(made.fresh), -1)
        made._answers.append(answer)
    return made


def collect_event_keys(publications: Iterable[Publication]) -> list[EventKey]:
    """The names by which events of these may be known already."""
    return [
        (stream, event.id)
        for publication in publications
        if publication.given
        for stream, event in events_with_streams(publication)
        if event.id in publication.given
    ]


def events_with_streams(publication: Publication) -> Iterator[tuple[str, Event]]:
    streams = repeat(publication.stream) if isinstance(publication.stream, str) else publication.stream
    return zip(streams, publication.events, strict=False)


def _plan_publication(
    publication: Publication, made: AppendPlan, events: MutableMapping[EventKey, tuple[int, str]]
) -> Sequence[int]:
    before, given = len(made.fresh), publication.given
    if not given:
        made.fresh += events_with_streams(publication)
        made.names += [None] * (len(made.fresh) - before)
        return range(-1 - before, -1 - len(made.fresh), -1)
    names = [(stream, event.id) if event.id in given else None for stream, event in events_with_streams(publication)]
    there = [events.get(name) if name else None for name in names]
    pairs = list(zip(publication.events, there, strict=True))
    others = {event.id: found[0] for event, found in pairs if found and found[1] != event.text}
    if others and not publication.apart:
        return AppendResult(others.values(), others=others)
    if not any(there) and len(set(names)) == len(names):
        made.fresh += events_with_streams(publication)
        made.names += names
        new: Sequence[int] = range(-1 - before, -1 - len(made.fresh), -1)
        events.update(_keyed_texts(names, publication.events, new))
        return new
    return _plan_partly_known(publication, names, made, events, others)


def _plan_partly_known(
    publication: Publication,
    names: Sequence[EventKey | None],
    made: AppendPlan,
    events: MutableMapping[EventKey, tuple[int, str]],
    others: Mapping[str, int],
) -> AppendResult:
    found, repeated = list[int](), 0
    for (stream, event), name in zip(events_with_streams(publication), names, strict=True):
        known = events.get(name) if name else None
        repeated += known is not None and event.id not in others
        if known is None:
            made.fresh.append((stream, event))
            made.names.append(name)
            events.update(_keyed_texts([name], [event], [-len(made.fresh)]))
        found.append(-len(made.fresh) if known is None else known[0])
    return AppendResult(found, repeated, others)


def _keyed_texts(
    names: Sequence[EventKey | None], events: Sequence[Event], positions: Sequence[int]
) -> Iterator[tuple[EventKey, tuple[int, str]]]:
    for name, event, position in zip(names, events, positions, strict=True):
        if name is not None:
            yield name, (position, event.text)


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
            orjson.dumps(dict(headers.extensions)).decode() if headers.extensions else None,
        )


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
