"""Answers: what a worker says, as the one who asked takes it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import orjson

from triplewire.query import refusals
from triplewire.query.engines import Elsewhere, over_time
from triplewire.query.frames import Kind
from triplewire.query.processes import Process
from triplewire.query.requests import Bounds


class QueryAnswer:
    """An answer on its way. Take it to its end, or close it: until then it holds a process."""

    def __init__(self, process: Process, deadline: float, bounds: Bounds, give_back: Callable[[Process], None]) -> None:
        self.content_type = ""
        self.deadline = deadline
        """By the loop's clock: when whoever takes the answer must be done."""
        self._process: Process | None = process
        self._bounds = bounds
        self._give_back = give_back

    async def open(self) -> None:
        """Wait until the answer begins. Raises what the worker refuses, QueryLimit, or Elsewhere."""
        kind, payload = await self._next()
        if kind is Kind.HEAD:
            self.content_type = orjson.loads(payload)["content_type"]

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        """The next piece. Raises QueryLimit; what was taken before is then not the whole."""
        if self._process is None:
            raise StopAsyncIteration
        kind, payload = await self._next()
        if kind is Kind.END:
            raise StopAsyncIteration
        return payload

    def close(self) -> None:
        """Give the process back; a query that still runs is cancelled."""
        process, self._process = self._process, None
        if process is not None:
            self._give_back(process)

    async def _next(self) -> tuple[Kind, bytes]:
        assert self._process is not None, "the answer is closed"
        try:
            async with asyncio.timeout_at(self.deadline):
                kind, payload = await self._process.next()
        except TimeoutError:
            self.close()
            raise over_time(self._bounds.seconds) from None
        except BaseException:
            self.close()
            raise
        if self._process.free:
            self.close()
        if kind is Kind.ERROR:
            raise refusals.from_json(orjson.loads(payload))
        if kind is Kind.MOVE:
            raise Elsewhere
        return kind, payload
