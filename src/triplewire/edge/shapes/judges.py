"""Judges: the process that knows the validator, as the event loop sees it."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from typing import Any

import orjson

from triplewire.config import limits
from triplewire.model.errors import InputError, Unavailable

Verdict = dict[str, Any] | None
"""What an event does wrong; None for one that conforms."""
COMMAND = (sys.executable, "-m", "triplewire.rdf.shacl_worker")


class Judges:
    """One process, which begins with the first question and begins anew after it was killed. Questions are answered in
    the order in which they come, so that events stay in theirs."""

    def __init__(self, seconds: float = limits.SHAPES_SECONDS, command: Sequence[str] = COMMAND) -> None:
        self.seconds = seconds
        """For one question."""
        self._command = command
        self._process: Process | None = None
        self._taught: set[str] = set()
        self._turn = asyncio.Lock()

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def check(self, shapes: str) -> None:
        """Raises InputError for shapes that make no sense, Unavailable if that is not found out in time."""
        await self._asked({"key": "", "shapes": shapes, "events": []})

    async def judge(self, key: str, shapes: str, events: Sequence[str]) -> list[Verdict]:
        """Of events' texts, by shapes that have a key of their own. Raises Unavailable where it takes too long."""
        found: list[Verdict] = []
        for start in range(0, len(events), limits.SHAPES_EVENTS):
            some = events[start : start + limits.SHAPES_EVENTS]
            found += (await self._asked({"key": key, "shapes": shapes, "events": some}))["verdicts"]
        return found

    async def close(self) -> None:
        await self._end()

    async def _asked(self, question: dict[str, Any]) -> dict[str, Any]:
        async with self._turn:
            return await self._answered(question)

    async def _answered(self, question: dict[str, Any]) -> dict[str, Any]:
        key = question["key"]
        try:
            process = await self._started()
            taught = key in self._taught
            self._taught.add(key)
            _send(process, {**question, "shapes": None} if taught and key else question)
            async with asyncio.timeout(self.seconds):
                answer = await _receive(process)
        except (OSError, EOFError, TimeoutError):
            await self._end()
            raise Unavailable(f"the shapes were not decided within {self.seconds:g} s; simpler ones may be") from None
        except BaseException:
            await asyncio.shield(self._end())  # its answer would be taken for another's
            raise
        if "error" in answer:
            self._taught.discard(key)
            raise InputError(answer["error"])
        return answer

    async def _started(self) -> Process:
        if self._process is not None and self.running:
            return self._process
        self._taught = set()
        self._process = await asyncio.create_subprocess_exec(
            *self._command, stdin=PIPE, stdout=PIPE, start_new_session=True, limit=limits.BODY_BYTES
        )
        async with asyncio.timeout(limits.WORKER_START_SECONDS):
            await _receive(self._process)
        return self._process

    async def _end(self) -> None:
        """Kill it, and wait until it is gone."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.returncode is None:
            process.kill()
        if process.stdin is not None:
            process.stdin.close()
        await process.communicate()


def _send(process: Process, told: dict[str, Any]) -> None:
    assert process.stdin is not None
    data = orjson.dumps(told)
    process.stdin.write(len(data).to_bytes(4) + data)


async def _receive(process: Process) -> dict[str, Any]:
    assert process.stdout is not None
    size = int.from_bytes(await process.stdout.readexactly(4))
    found: dict[str, Any] = orjson.loads(await process.stdout.readexactly(size))
    return found
