"""What an edge needs from others, as ports; `compose` gives it the twins."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

import pyarrow as pa

from triplewire.history.requests import HistoryRequest
from triplewire.storage.log.ports import MeasuredLog, Publication, SegmentedLog


class Commits(Protocol):
    """Takes publications and makes them durable, many at once."""

    async def append(self, publication: Publication) -> Sequence[int]:
        """The positions it got, once it is durable. Raises StorageFull or Unavailable; then nothing was stored."""

    async def append_each(self, publications: Sequence[Publication]) -> list[Sequence[int]]:
        """The same for several at once."""


class Entries(SegmentedLog, MeasuredLog, Protocol):
    """A log that also finds single entries: for matches that are to be expanded, and for who resumes from an event."""

    def find(self, event: str, stream: str | None = None) -> int | None:
        """The newest position of the event with this id, in a stream or in any; None where the newest positions do not
        have it."""

    def entries(self, positions: Sequence[int]) -> pa.Table:
        """The entries at these positions that are still there, in order of position."""


class Watching(Protocol):
    """Notices that a store was written to, much cheaper than a query of it."""

    def changed(self) -> bool:
        """Whether there may be something new since the last call; the first call says yes."""


class Answer(Protocol):
    """An answer that has begun. Whoever got it takes it to its end, or closes it."""

    @property
    def content_type(self) -> str: ...

    @property
    def deadline(self) -> float:
        """By the loop's clock: when whoever takes it must be done."""

    def __aiter__(self) -> AsyncIterator[bytes]:
        """Its pieces, as they are found. Raises QueryLimit; what was taken before is then not the whole."""

    def close(self) -> None:
        """Nobody wants the rest."""


class Answers(Protocol):
    """SPARQL over history."""

    async def ask(self, request: HistoryRequest) -> Answer:
        """An answer that has begun. Raises InputError, QueryLimit or Unavailable."""
