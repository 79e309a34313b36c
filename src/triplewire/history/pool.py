"""The pool of query workers, for the event loop: processes, the queue of waiting queries, streamed answers."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from triplewire.config.settings import QUERIES_AT_ONCE
from triplewire.history import protocol
from triplewire.history.engines import WrongEngine, time_limit_error
from triplewire.history.protocol import FINAL_FRAMES, STREAM_BYTES, FrameKind, encode_json_frame, receive_frame
from triplewire.history.requests import HistoryRequest, QueryLimits
from triplewire.model.errors import QueryLimit, Unavailable, Unsupported

QUERIES_WAITING: Final = 64
"""SPARQL queries that wait for a process. Above it a client is told 503: at worst these wait for 16 minutes."""

QUERY_GRACE_SECONDS: Final = 1.0
"""How long a process may take to give up a query that was cancelled or ran out of time. Then it is killed."""

WORKER_START_SECONDS: Final = 30.0
"""How long the process of queries may take to start; half a second is usual."""


# Processes: the workers as the event loop sees them.


@dataclass(frozen=True)
class WorkerCommand:
    """How a worker is started. The number of its end of the socket becomes the last argument."""

    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    start_seconds: float = WORKER_START_SECONDS


class WorkerProcess:
    """One worker. It runs one query at a time; `free` says that it waits for the next."""

    def __init__(
        self, popen: subprocess.Popen[bytes], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._popen = popen
        self._reader = reader
        self._writer = writer
        self._number = 0
        self.free = True

    @classmethod
    async def start(cls, launch: WorkerCommand) -> WorkerProcess:
        """A worker that is ready. Raises Unavailable."""
        ours, theirs = socket.socketpair()
        with theirs:
            popen = subprocess.Popen(
                [*launch.command, str(theirs.fileno())],
                env={**os.environ, **launch.environment},
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                # Ctrl-C reaches the edge alone, which then ends its workers.
                start_new_session=True,
            )
        ours.setblocking(False)
        process = cls(popen, *await asyncio.open_unix_connection(sock=ours, limit=STREAM_BYTES))
        try:
            async with asyncio.timeout(launch.start_seconds):
                await receive_frame(process._reader)
        except (EOFError, OSError, TimeoutError):
            await process.end()
            raise Unavailable("the process for queries does not start; the log of the edge says why") from None
        except asyncio.CancelledError:
            process.kill()
            process.wait()
            raise
        return process

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def alive(self) -> bool:
        return self._popen.poll() is None and not self._reader.at_eof()

    def send(self, request: HistoryRequest) -> None:
        """Begin a query."""
        self._number += 1
        self.free = False
        self._writer.write(encode_json_frame(FrameKind.QUERY, {"number": self._number, "request": request.to_json()}))

    async def next(self) -> tuple[FrameKind, bytes]:
        """The next frame of the answer. Raises QueryLimit if the process has died."""
        try:
            kind, payload = await receive_frame(self._reader)
        except (EOFError, OSError):
            raise QueryLimit(await self._last_words()) from None
        self.free = kind in FINAL_FRAMES
        return kind, payload

    async def give_up(self, seconds: float) -> None:
        """Cancel what runs. A worker that does not obey in time is killed."""
        with suppress(OSError):
            self._writer.write(encode_json_frame(FrameKind.CANCEL, {"number": self._number}))
        try:
            async with asyncio.timeout(seconds):
                while not self.free:
                    await self.next()
        except (TimeoutError, QueryLimit):
            await self.end()

    async def end(self) -> None:
        """Kill it, and wait elsewhere until its memory is given back."""
        self.kill()
        await asyncio.to_thread(self.wait)

    def kill(self) -> None:
        self._popen.kill()
        self._writer.close()

    def wait(self) -> None:
        """Until it has ended."""
        self._popen.wait()

    async def _last_words(self) -> str:
        """Why it is gone: its end of the socket closes a moment before it can be asked."""
        code = await asyncio.to_thread(self._popen.wait)
        why = f"was ended by signal {-code}" if code < 0 else f"ended with status {code}"
        return f"the process that ran the query {why}, maybe for want of memory; ask for less at a time, or try again"


# Answers: what a worker says, as the one who asked takes it.


class QueryAnswer:
    """An answer on its way. Take it to its end, or close it: until then it holds a process."""

    def __init__(
        self, process: WorkerProcess, deadline: float, bounds: QueryLimits, give_back: Callable[[WorkerProcess], None]
    ) -> None:
        self.content_type = ""
        self.deadline = deadline
        """By the loop's clock: when whoever takes the answer must be done."""
        self._process: WorkerProcess | None = process
        self._bounds = bounds
        self._give_back = give_back

    async def open(self) -> None:
        """Wait until the answer begins. Raises what the worker refuses, QueryLimit, or Elsewhere."""
        kind, payload = await self._next()
        if kind is FrameKind.HEAD:
            self.content_type = orjson.loads(payload)["content_type"]

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        """The next piece. Raises QueryLimit; what was taken before is then not the whole."""
        if self._process is None:
            raise StopAsyncIteration
        kind, payload = await self._next()
        if kind is FrameKind.END:
            raise StopAsyncIteration
        return payload

    def close(self) -> None:
        """Give the process back; a query that still runs is cancelled."""
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
            raise protocol.error_from_json(orjson.loads(payload))
        if kind is FrameKind.MOVE:
            raise WrongEngine
        return kind, payload


class QueryWorkerPool:
    """Processes of one kind, started when they are needed and kept, and the queue of those who wait for one."""

    def __init__(
        self,
        launch: WorkerCommand,
        bounds: QueryLimits,
        *,
        processes: int = QUERIES_AT_ONCE,
        waiting: int = QUERIES_WAITING,
        grace: float = QUERY_GRACE_SECONDS,
    ) -> None:
        self._launch = launch
        self._bounds = bounds
        self._slots = asyncio.Semaphore(processes)
        self._most_waiting = waiting
        self._grace = grace
        self._idle: list[WorkerProcess] = []
        self._all: set[WorkerProcess] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.waiting = 0
        """How many queries wait for a process."""

    @property
    def pids(self) -> list[int]:
        return [process.pid for process in self._all]

    def warm(self) -> None:
        """Start a process in the background, for the first query to come."""
        self._background(self._warmed())

    async def ask(self, request: HistoryRequest) -> QueryAnswer:
        """An answer that has begun. Raises Unavailable when too many wait already, and what `QueryAnswer` does."""
        process = await self._take()
        bounds = self._bounds.within(request.seconds)
        deadline = asyncio.get_running_loop().time() + bounds.seconds + self._grace
        process.send(request)
        answer = QueryAnswer(process, deadline, bounds, self._give_back)
        await answer.open()
        return answer

    def _give_back(self, process: WorkerProcess) -> None:
        if process.free and process.alive:
            self._settled(process)
        else:
            self._background(self._recovered(process))

    def close(self) -> None:
        """End all processes, whatever they do."""
        for task in self._tasks:
            task.cancel()
        for process in self._all:
            process.kill()
        for process in self._all:
            process.wait()
        self._all.clear()

    async def _take(self) -> WorkerProcess:
        if self._slots.locked() and self.waiting >= self._most_waiting:
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

    async def _ready(self) -> WorkerProcess:
        while self._idle:
            process = self._idle.pop()
            if process.alive:
                return process
            await self._lost(process)
        process = await WorkerProcess.start(self._launch)
        self._all.add(process)
        return process

    async def _warmed(self) -> None:
        try:
            self._settled(await self._take())
        except Unavailable:
            return

    async def _recovered(self, process: WorkerProcess) -> None:
        await process.give_up(self._grace)
        if process.alive:
            self._settled(process)
        else:
            await self._lost(process)
            self._slots.release()

    def _settled(self, process: WorkerProcess) -> None:
        self._idle.append(process)
        self._slots.release()

    async def _lost(self, process: WorkerProcess) -> None:
        await process.end()
        self._all.discard(process)

    def _background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


# Queries: SPARQL over history for an event loop, each query in a process of its own.


class HistoryService:
    """Answers queries with DuckDB; with Spark, if there is one, where a query wishes for it or is too large."""

    def __init__(self, duckdb: QueryWorkerPool, spark: QueryWorkerPool | None = None) -> None:
        self._duckdb = duckdb
        self._spark = spark

    def start(self) -> None:
        """Get ready for the first query, in the background."""
        self._duckdb.warm()

    async def ask(self, request: HistoryRequest) -> QueryAnswer:
        """An answer that has begun. Raises InputError, QueryLimit or Unavailable."""
        if request.engine == "spark":
            return await self._of_spark(request)
        try:
            return await self._duckdb.ask(request)
        except WrongEngine:
            return await self._of_spark(request)

    def close(self) -> None:
        """End all processes."""
        for pool in (self._duckdb, self._spark):
            if pool is not None:
                pool.close()

    async def _of_spark(self, request: HistoryRequest) -> QueryAnswer:
        if self._spark is None:
            raise Unsupported("engine=spark", hint="this edge has no Spark; say engine=duckdb")
        return await self._spark.ask(request)
