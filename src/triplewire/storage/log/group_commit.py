"""Group commit: publishes that arrive at the same time share one transaction."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict, deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from threading import Condition, Thread
from typing import Final, TypeAlias

from triplewire.model.errors import Unavailable
from triplewire.storage.log.ports import Log, Publication

COMMIT_EVENTS: Final = 20_000
"""Events in one transaction of the log. With events of 1 kB, 20 MB of write-ahead log at once."""

COMMIT_QUEUE: Final = 1_024
"""Publishes that wait for their commit. Above it a publisher is told 503 and to try again."""

COMMIT_QUEUE_BYTES: Final = 128 * 1024 * 1024
"""Text of the publishes that wait for their commit: their count alone would allow 16 GiB of large bodies."""


CommitResult: TypeAlias = list[Sequence[int]] | BaseException
"""The outcome for one publisher: positions, or the error for which nothing is stored."""


@dataclass(frozen=True)
class Waiter:
    """Publications whose publisher waits, on its own event loop, to hear that they are durable."""

    publications: Sequence[Publication]
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[list[Sequence[int]]]
    size: int


@dataclass
class CommitCounts:
    """Counts of commits, and of publications that were refused because the queue was full."""

    transactions: int = 0
    publications: int = 0
    events: int = 0
    refused: int = 0
    cpu: float = field(default=0.0, compare=False)
    """CPU seconds that appending took."""


class GroupCommit:
    """One thread that appends, in one transaction, everything that waits; meanwhile the next group gathers.

    Nothing is delayed on purpose: a single publish commits at once, and the busier the disk, the larger the groups.
    """

    def __init__(
        self, log: Log, *, queue: int = COMMIT_QUEUE, queue_bytes: int = COMMIT_QUEUE_BYTES, group: int = COMMIT_EVENTS
    ) -> None:
        """At most `queue` publications of `queue_bytes` of text wait; one transaction takes up to `group` events."""
        self.counts = CommitCounts()
        self._log = log
        self._queue, self._queue_bytes, self._group = queue, queue_bytes, group
        self._waiting: deque[Waiter] = deque()
        self._bytes = 0
        self._closed = False
        self._wake = Condition()
        self._thread = Thread(target=self._run, name="group-commit", daemon=True)
        self._thread.start()

    async def append(self, publication: Publication) -> Sequence[int]:
        """Append a publication; return its positions once it is durable. Raises Unavailable at once if too much is
        queued, and the error of the log if its group failed; then nothing of the group is stored. A caller that is
        cancelled while it waits does not learn whether it was stored."""
        (positions,) = await self.append_each([publication])
        return positions

    async def append_each(self, publications: Sequence[Publication]) -> list[Sequence[int]]:
        """The same for several, which go into one transaction."""
        loop = asyncio.get_running_loop()
        size = sum(publication.size for publication in publications)
        waiter = Waiter(publications, loop, loop.create_future(), size)
        self._enter(waiter)
        return await waiter.future

    def close(self) -> None:
        """Commit what waits, then end. Publications that come later raise Unavailable."""
        with self._wake:
            self._closed = True
            self._wake.notify()
        self._thread.join()

    def waiting(self) -> int:
        """Publications that wait for a transaction to take them."""
        return len(self._waiting)

    def _enter(self, waiter: Waiter) -> None:
        with self._wake:
            if self._closed:
                raise Unavailable("the log is closing; publish again")
            if self._full(waiter.size):
                self.counts.refused += 1
                raise Unavailable(f"{len(self._waiting)} publishes wait for the disk already; publish again later")
            self._waiting.append(waiter)
            self._bytes += waiter.size
            self._wake.notify()

    def _full(self, size: int) -> bool:
        waiting = len(self._waiting)
        return waiting >= self._queue or (waiting > 0 and self._bytes + size > self._queue_bytes)

    def _run(self) -> None:
        while group := self._take():
            _resolve_group(group, self._commit(group))

    def _take(self) -> list[Waiter]:
        """The publications of the next transaction; none once all is committed and the queue is closed."""
        with self._wake:
            self._wake.wait_for(lambda: self._waiting or self._closed)
            group: list[Waiter] = []
            events = 0
            while self._waiting and (not group or events + _events(self._waiting[0]) <= self._group):
                waiter = self._waiting.popleft()
                group.append(waiter)
                events += _events(waiter)
                self._bytes -= waiter.size
            return group

    def _commit(self, group: Sequence[Waiter]) -> Sequence[CommitResult]:
        began = time.thread_time()
        publications = [publication for waiter in group for publication in waiter.publications]
        try:
            answers = iter(self._log.append(publications))
        except BaseException as error:  # the thread must outlive whatever happens, or all publishers wait forever
            return [error] * len(group)
        self.counts.cpu += time.thread_time() - began
        self.counts.transactions += 1
        self.counts.publications += len(publications)
        self.counts.events += sum(len(publication.events) for publication in publications)
        return [list(islice(answers, len(waiter.publications))) for waiter in group]


def _events(waiter: Waiter) -> int:
    return sum(len(publication.events) for publication in waiter.publications)


def _resolve_group(group: Sequence[Waiter], answers: Sequence[CommitResult]) -> None:
    """Wake each event loop once for all of its waiters."""
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[list[Sequence[int]]], CommitResult]]] = (
        defaultdict(list)
    )
    for waiter, answer in zip(group, answers, strict=True):
        by_loop[waiter.loop].append((waiter.future, answer))
    for loop, results in by_loop.items():
        with suppress(RuntimeError):  # the loop was closed: nobody waits any more
            loop.call_soon_threadsafe(_resolve, results)


def _resolve(results: Sequence[tuple[asyncio.Future[list[Sequence[int]]], CommitResult]]) -> None:
    for future, answer in results:
        if future.done():
            continue
        if isinstance(answer, BaseException):
            future.set_exception(answer)
        else:
            future.set_result(answer)
