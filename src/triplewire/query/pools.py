"""Pools: processes that answer queries, and the queue of those who wait for one."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from triplewire.config import limits
from triplewire.errors import Unavailable
from triplewire.query.answers import QueryAnswer
from triplewire.query.processes import Launch, Process
from triplewire.query.requests import Bounds, QueryRequest


class Pool:
    """Processes of one kind, started when they are needed and kept, and the queue of those who wait for one."""

    def __init__(
        self,
        launch: Launch,
        bounds: Bounds,
        *,
        processes: int = limits.QUERIES_AT_ONCE,
        waiting: int = limits.QUERIES_WAITING,
        grace: float = limits.QUERY_GRACE_SECONDS,
    ) -> None:
        self._launch = launch
        self._bounds = bounds
        self._slots = asyncio.Semaphore(processes)
        self._most_waiting = waiting
        self._grace = grace
        self._idle: list[Process] = []
        self._all: set[Process] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.waiting = 0
        """How many queries wait for a process."""

    @property
    def pids(self) -> list[int]:
        return [process.pid for process in self._all]

    def warm(self) -> None:
        """Start a process in the background, for the first query to come."""
        self._background(self._warmed())

    async def ask(self, request: QueryRequest) -> QueryAnswer:
        """An answer that has begun. Raises Unavailable when too many wait already, and what `QueryAnswer` does."""
        process = await self._take()
        bounds = self._bounds.within(request.seconds)
        deadline = asyncio.get_running_loop().time() + bounds.seconds + self._grace
        process.send(request)
        answer = QueryAnswer(process, deadline, bounds, self._give_back)
        await answer.open()
        return answer

    def _give_back(self, process: Process) -> None:
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

    async def _take(self) -> Process:
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

    async def _ready(self) -> Process:
        while self._idle:
            process = self._idle.pop()
            if process.alive:
                return process
            await self._lost(process)
        process = await Process.start(self._launch)
        self._all.add(process)
        return process

    async def _warmed(self) -> None:
        try:
            self._settled(await self._take())
        except Unavailable:
            return

    async def _recovered(self, process: Process) -> None:
        await process.give_up(self._grace)
        if process.alive:
            self._settled(process)
        else:
            await self._lost(process)
            self._slots.release()

    def _settled(self, process: Process) -> None:
        self._idle.append(process)
        self._slots.release()

    async def _lost(self, process: Process) -> None:
        await process.end()
        self._all.discard(process)

    def _background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
