"""The pool of query workers, for the event loop: processes, the queue of waiting queries, streamed answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import suppress
from typing import Any, Final

import orjson

from triplewire.config.settings import QUERIES_AT_ONCE
from triplewire.config.workers import FINAL_FRAMES, FrameKind, WorkerCommand, WorkerProcess, decode_error
from triplewire.history.engines import WrongEngine, time_limit_error
from triplewire.history.requests import HistoryRequest, QueryLimits
from triplewire.model.errors import QueryLimit, Unavailable, Unsupported

QUERIES_WAITING: Final = 64
"""SPARQL queries that wait for a process. Above it a client gets 503: at worst these wait for 16 minutes."""

QUERY_GRACE_SECONDS: Final = 1.0
"""How long a process may take to stop a query that was cancelled or ran out of time. Then it is killed."""


class QueryProcess(WorkerProcess):
    """A query worker. `free` says that it waits for the next query."""

    free = True
    _number = 0

    def ask(self, request: HistoryRequest) -> None:
        self._number += 1
        self.free = False
        self.send(FrameKind.REQUEST, {"number": self._number, "request": request.to_json()})

    async def receive(self) -> tuple[FrameKind, bytes]:
        kind, payload = await super().receive()
        self.free = kind in FINAL_FRAMES or kind is FrameKind.READY
        return kind, payload

    async def next(self) -> tuple[FrameKind, bytes]:
        """Return the next frame of the answer. Raises QueryLimit if the process has died."""
        try:
            return await self.receive()
        except (EOFError, OSError):
            code = await self.wait_for_exit()
            why = f"was ended by signal {-code}" if code < 0 else f"ended with status {code}"
            advice = "maybe for want of memory; ask for less at a time, or try again"
            raise QueryLimit(f"the process that ran the query {why}, {advice}") from None

    async def cancel(self, seconds: float) -> None:
        """Cancel the running query. A worker that does not stop in time is killed."""
        with suppress(OSError):
            self.send(FrameKind.CANCEL, {"number": self._number})
        try:
            async with asyncio.timeout(seconds):
                while not self.free:
                    await self.next()
        except (TimeoutError, QueryLimit):
            await self.end()


class QueryAnswer:
    """A streamed answer. It holds a process until it is read to its end or closed."""

    def __init__(
        self, process: QueryProcess, deadline: float, bounds: QueryLimits, give_back: Callable[[QueryProcess], None]
    ) -> None:
        self.content_type = ""
        self.deadline = deadline
        """By the loop's clock: the answer must have been read by then."""
        self._process: QueryProcess | None = process
        self._bounds = bounds
        self._give_back = give_back

    async def open(self) -> None:
        """Wait until the answer begins. Raises the error of the worker, QueryLimit or WrongEngine."""
        kind, payload = await self._next()
        if kind is FrameKind.HEAD:
            self.content_type = orjson.loads(payload)["content_type"]

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        """Return the next piece. Raises QueryLimit; the pieces before are then not the whole answer."""
        if self._process is None:
            raise StopAsyncIteration
        kind, payload = await self._next()
        if kind is FrameKind.END:
            raise StopAsyncIteration
        return payload

    def close(self) -> None:
        """Return the process to the pool; a query that still runs is cancelled."""
        process, self._process = self._process, None
        if process is not None:
            self._give_back(process)

    async def _next(self) -> tuple[FrameKind, bytes]:
        assert self._process is not None, "the answer is closed"
        try:
            async with asyncio.timeout_at(self.deadline):
                kind, payload = await self._process.next()
        except TimeoutError:
            self.close()
            raise time_limit_error(self._bounds.seconds) from None
        except BaseException:
            self.close()
            raise
        if self._process.free:
            self.close()
        if kind is FrameKind.ERROR:
            raise decode_error(payload)
        if kind is FrameKind.WRONG_ENGINE:
            raise WrongEngine
        return kind, payload


class QueryWorkerPool:
    """Processes of one kind, started on demand and reused, and the queue of queries that wait for one."""

    def __init__(
        self,
        command: WorkerCommand,
        bounds: QueryLimits,
        *,
        processes: int = QUERIES_AT_ONCE,
        waiting: int = QUERIES_WAITING,
        grace: float = QUERY_GRACE_SECONDS,
    ) -> None:
        self._command = command
        self._bounds = bounds
        self._slots = asyncio.Semaphore(processes)
        self._waiting_limit = waiting
        self._grace = grace
        self._idle: list[QueryProcess] = []
        self._all: set[QueryProcess] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.waiting = 0
        """The number of queries that wait for a process."""

    @property
    def pids(self) -> list[int]:
        return [process.pid for process in self._all]

    async def ask(self, request: HistoryRequest) -> QueryAnswer:
        """Return an answer that has begun. Raises Unavailable when too many queries wait, and what `open` raises."""
        process = await self._take()
        bounds = self._bounds.within(request.seconds)
        deadline = asyncio.get_running_loop().time() + bounds.seconds + self._grace
        process.ask(request)
        answer = QueryAnswer(process, deadline, bounds, self._give_back)
        await answer.open()
        return answer

    def _give_back(self, process: QueryProcess) -> None:
        if process.free and process.alive:
            self._release(process)
        else:
            self._background(self._recover(process))

    def close(self) -> None:
        """Kill all processes, whatever they do."""
        for task in self._tasks:
            task.cancel()
        for process in self._all:
            process.kill()
        for process in self._all:
            process.wait()
        self._all.clear()

    async def _take(self) -> QueryProcess:
        if self._slots.locked() and self.waiting >= self._waiting_limit:
            raise Unavailable(f"{self.waiting} queries wait already; try again later")
        self.waiting += 1
        try:
            await self._slots.acquire()
        finally:
            self.waiting -= 1
        try:
            return await self._ready()
        except BaseException:
            self._slots.release()
            raise

    async def _ready(self) -> QueryProcess:
        while self._idle:
            process = self._idle.pop()
            if process.alive:
                return process
            await self._discard(process)
        process = await QueryProcess.start(self._command)
        self._all.add(process)
        return process

    async def _recover(self, process: QueryProcess) -> None:
        await process.cancel(self._grace)
        if process.alive:
            self._release(process)
        else:
            await self._discard(process)
            self._slots.release()

    def _release(self, process: QueryProcess) -> None:
        self._idle.append(process)
        self._slots.release()

    async def _discard(self, process: QueryProcess) -> None:
        await process.end()
        self._all.discard(process)

    def _background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class HistoryService:
    """Answers queries with DuckDB; with Spark, if there is one, where a query requests it or is too large."""

    def __init__(self, duckdb: QueryWorkerPool, spark: QueryWorkerPool | None = None) -> None:
        self._duckdb = duckdb
        self._spark = spark

    async def ask(self, request: HistoryRequest) -> QueryAnswer:
        """Return an answer that has begun. Raises InputError, QueryLimit or Unavailable."""
        if request.engine == "spark":
            return await self._ask_spark(request)
        try:
            return await self._duckdb.ask(request)
        except WrongEngine:
            return await self._ask_spark(request)

    def close(self) -> None:
        for pool in (self._duckdb, self._spark):
            if pool is not None:
                pool.close()

    async def _ask_spark(self, request: HistoryRequest) -> QueryAnswer:
        if self._spark is None:
            raise Unsupported("engine=spark", hint="this edge has no Spark; use engine=duckdb")
        return await self._spark.ask(request)
