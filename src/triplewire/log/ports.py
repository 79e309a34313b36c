"""The log port: an ordered, durable sequence of events, and the outbox of what matched."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol, Self

import pyarrow as pa

from triplewire.log.leaves import Leaf, Volume
from triplewire.model import Erasure, Event

_NOTHING: Mapping[str, int] = MappingProxyType({})


@dataclass(frozen=True)
class Publication:
    """Events to append, together and in order."""

    stream: str | Sequence[str]
    """Of all of them, or of each."""
    events: Sequence[Event]
    key: str | None = None
    """By which it is known when it comes again."""
    given: Set[str] = frozenset()
    """Ids of those events that have theirs from the publisher: each is stored once in its stream."""
    apart: bool = False
    """Each event is taken or refused by itself, if its id is taken; else all are, together."""


class Places(tuple[int, ...]):
    """Positions of the events of a publication some of which were there before."""

    repeated: int
    """How many were."""
    others: Mapping[str, int]
    """Ids of its events that others with another text have, and where these are. If there are any, nothing of it is
    stored, and the positions are those; of events that are taken apart, the rest is."""

    def __new__(cls, positions: Iterable[int], repeated: int = 0, others: Mapping[str, int] = _NOTHING) -> Self:
        made = super().__new__(cls, positions)
        made.repeated, made.others = repeated, others
        return made

    def moved(self, start: int) -> Places:
        """The same, with -1, -2 and so on as `start` and what follows it."""

        def place(position: int) -> int:
            return position if position >= 0 else start - 1 - position

        return Places(map(place, self), self.repeated, {id: place(at) for id, at in self.others.items()})


@dataclass(frozen=True)
class Retention:
    """What the log keeps: an entry goes when it is older than `age` seconds or beyond the newest `size` bytes.

    Entries go oldest first, up to the first that is kept. Size counts the text of events, as UTF-8.
    """

    age: float | None = None
    size: int | None = None


class Log(Protocol):
    """Events in one order of positions, shared with the registry.

    Called from any thread. Every twin passes the same contract suite (`tests/log/test_contract.py`).
    """

    def append(self, publications: Sequence[Publication]) -> list[Sequence[int]]:
        """Store all of them in one transaction; the positions of each publication, in order.

        Returns only after they are durable. Raises StorageFull when the disk refuses; then none is stored. They are a
        range where all is new. Where a key is known nothing is stored again: the publication gets the range that it
        had. Where ids are given and known, `Places` tell where these events are. Both hold while the log keeps them.
        """

    def read(self, after: int, upto: int, limit: int) -> pa.Table:
        """At most `limit` entries at positions p with `after < p <= upto`, in order, as an `ENTRIES` table."""

    def head(self) -> int:
        """The newest position of log and registry together; 0 before the first."""

    def trim(self, retention: Retention, before: int) -> int:
        """Drop what retention lets go, only at positions below `before`; the number of entries dropped."""


class Measured(Log, Protocol):
    """A log that also knows how long it is."""

    def begin(self) -> int:
        """The position of the oldest entry that was not trimmed away, erased or not; one above the head if there is
        none. What is not there above it was erased."""

    def gone(self, stream: str | None = None) -> int:
        """The position of the newest event of a stream, or of any, that was trimmed away; START where none was. Of what
        was erased before that nobody is told."""

    def reach(self, after: int, upto: int, size: int) -> int:
        """The last position p up to `upto` for which the entries at positions q with `after < q <= p` hold at most
        `size` bytes of text and extensions, not counting the last of them. At least the first entry is among
        them."""


class Bound(Protocol):
    """A log that knows its streams leaf by leaf, also those whose events it has let go."""

    def volumes(self, after: str = "", limit: int | None = None) -> list[Volume]:
        """Of streams to which anything was ever published, in the order of their names: those after a name, so many at
        most."""

    def volume(self, stream: str) -> Volume | None:
        """Of one stream; None where nothing was ever published to it."""

    def leaves(self, stream: str, numbers: Sequence[int]) -> list[Leaf]:
        """Those of the full leaves of a stream that have these numbers, in order. It costs what it gives."""


class Erasable(Measured, Protocol):
    """A log that can forget for good."""

    def losses(self, erasure: Erasure) -> pa.Table:
        """What its entries would lose, as `LOSSES`."""

    def erase(self, erasure: Erasure) -> None:
        """Delete what an erasure names, so that no byte of it is left. An entry that goes whole is read no more; its
        position is not given to another. Doing it again does nothing. Raises StorageFull, or Unavailable where
        somebody is in the way; then it is to be done again."""


class Outbox(Protocol):
    """Matches on their way from the pipeline to the edges, at most one chunk for each batch of the pipeline.

    A run of the pipeline numbers its batches from 0 on and writes them in order; a twin is made for one run, and
    all runs share what it holds. Called from any thread.
    """

    def write(self, batch: int, upto: int, matches: pa.Table) -> None:
        """Store the matches of a batch that ends at position `upto`; returns only after they are durable.

        A batch written before is left as it is, and matches at or below `head()` are dropped: no match is handed
        out twice, be it a batch that is replayed or a new run that begins again further back. Raises StorageFull.
        """

    def read(self, after: int, limit: int) -> list[Chunk]:
        """At most `limit` chunks with a sequence number above `after`, in order. Batches without matches have none."""

    def head(self) -> int:
        """The position up to which everything was matched; 0 before the first batch."""

    def trim(self, before: int) -> int:
        """Drop chunks that end below position `before`; the number of chunks dropped."""


class ErasableOutbox(Outbox, Protocol):
    """An outbox that can forget for good."""

    def erase(self, positions: Collection[int], *, across: bool = False) -> int:
        """Delete the matches of the events at these positions, so that no byte of them is left; how many there were.
        Where matches are `across` events, from the one at `value` on, those go between whose ends such a position lies:
        what is in between is not known. Doing it again does nothing. Raises what a log raises."""


@dataclass(frozen=True)
class Chunk:
    """One batch of matches. `sequence` only grows; `upto` is the position up to which it speaks.

    The two are the same number: chunks do not overlap, so whoever resumes after a position reads from there.
    """

    sequence: int
    upto: int
    matches: pa.Table
