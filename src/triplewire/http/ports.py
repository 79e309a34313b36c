"""Ports of the edge: the log, the commit queue, the change watches and the SPARQL service that it needs, and the
thread pools in which it calls them.

The service wiring gives the twins. Reading threads are kept apart by purpose, so that a rush of replays delays no
other request.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, Protocol, TypeVar

import pyarrow as pa

from triplewire.history.requests import HistoryRequest
from triplewire.storage.log.ports import MeasuredLog, Publication, SegmentedLog


class CommitQueue(Protocol):
    """Takes publications and makes them durable, many at once."""

    async def append(self, publication: Publication) -> Sequence[int]:
        """The positions it got, once it is durable. Raises StorageFull or Unavailable; then nothing was stored."""

    async def append_each(self, publications: Sequence[Publication]) -> list[Sequence[int]]:
        """The same for several at once."""


class EdgeLog(SegmentedLog, MeasuredLog, Protocol):
    """A log that also finds single entries: for matches that are to be expanded, and for who resumes from an event."""

    def find(self, event: str, stream: str | None = None) -> int | None:
        """The newest position of the event with this id, in a stream or in any; None where the newest positions do not
        have it."""

    def entries(self, positions: Sequence[int]) -> pa.Table:
        """The entries at these positions that are still there, in order of position."""


class ChangeWatch(Protocol):
    """Notices that a store was written to, much cheaper than a query of it."""

    def changed(self) -> bool:
        """Whether there may be something new since the last call; the first call says yes."""


class SparqlAnswer(Protocol):
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


class SparqlService(Protocol):
    """SPARQL over history."""

    async def ask(self, request: HistoryRequest) -> SparqlAnswer:
        """An answer that has begun. Raises InputError, QueryLimit or Unavailable."""


# Workers: threads for reading, apart from those that others use, so that a rush of replays delays nobody else.

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class ThreadPool:
    """A few threads. Functions that wait for disks run there; what they return comes back to the event loop."""

    def __init__(self, threads: int, name: str) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=name)

    async def run(self, work: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._pool, lambda: work(*args, **kwargs))

    def close(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)
