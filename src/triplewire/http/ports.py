"""Ports of the edge: the commit queue, the change watches and the SPARQL service that it needs, and the thread pools in
which it calls them.

The service wiring gives the twins. There are thread pools by purpose, so that many replays delay no other request.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, Protocol, TypeVar

from triplewire.history.requests import HistoryRequest
from triplewire.storage.log.ports import Publication


class CommitQueue(Protocol):
    """Makes publications durable, many in one commit."""

    async def append(self, publication: Publication) -> Sequence[int]:
        """Return the positions of the events once they are durable. Raises StorageFull or Unavailable; then nothing was
        stored."""

    async def append_each(self, publications: Sequence[Publication]) -> list[Sequence[int]]:
        """Do the same for several publications."""


class ChangeWatch(Protocol):
    """Notices writes to a store, much cheaper than a query would."""

    def changed(self) -> bool:
        """Return whether there may be something new since the last call; True at the first."""


class NoChanges:
    """A watch of a store that is never written to."""

    def changed(self) -> bool:
        return False


class SparqlAnswer(Protocol):
    """An answer that has begun. The caller iterates to its end, or closes it."""

    @property
    def content_type(self) -> str: ...

    @property
    def deadline(self) -> float:
        """Time by which the caller must be done, by the clock of the event loop."""

    def __aiter__(self) -> AsyncIterator[bytes]:
        """Iterate over its bytes as they are computed. Raises QueryLimit; the answer is then incomplete."""

    def close(self) -> None:
        """Give up the rest."""


class SparqlService(Protocol):
    """SPARQL over history."""

    async def ask(self, request: HistoryRequest) -> SparqlAnswer:
        """Begin an answer. Raises InputError, QueryLimit or Unavailable."""


Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class ThreadPool:
    """A few threads for functions that wait for disks. Results come back to the event loop."""

    def __init__(self, threads: int, name: str) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=name)

    async def run(self, work: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._pool, lambda: work(*args, **kwargs))

    def close(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)
