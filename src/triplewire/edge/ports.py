"""What an edge needs from others, as ports; `compose` gives it the twins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import pyarrow as pa

from triplewire.log.ports import Log, Publication


class Commits(Protocol):
    """Takes publications and makes them durable, many at once."""

    async def append(self, publication: Publication) -> range:
        """The positions it got, once it is durable. Raises StorageFull or Unavailable; then nothing was stored."""


class Entries(Log, Protocol):
    """A log that also finds single entries, for matches that are to be expanded."""

    def entries(self, positions: Sequence[int]) -> pa.Table:
        """The entries at these positions that are still there, in order of position."""


class Watching(Protocol):
    """Notices that a store was written to, much cheaper than a query of it."""

    def changed(self) -> bool:
        """Whether there may be something new since the last call; the first call says yes."""


class Answers(Protocol):
    """SPARQL over history."""

    async def answer(self, text: str) -> Mapping[str, Any]:
        """A SPARQL 1.1 JSON results document. Raises InputError, QueryLimit or Unavailable."""
