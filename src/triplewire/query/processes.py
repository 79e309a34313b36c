"""Processes: the workers as the event loop sees them."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from triplewire.config import limits
from triplewire.errors import QueryLimit, Unavailable
from triplewire.query.frames import LAST, STREAM_BYTES, Kind, json_frame, receive
from triplewire.query.requests import QueryRequest


@dataclass(frozen=True)
class Launch:
    """How a worker is started. The number of its end of the socket becomes the last argument."""

    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    start_seconds: float = limits.WORKER_START_SECONDS


class Process:
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
    async def start(cls, launch: Launch) -> Process:
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
                await receive(process._reader)
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

    def send(self, request: QueryRequest) -> None:
        """Begin a query."""
        self._number += 1
        self.free = False
        self._writer.write(json_frame(Kind.QUERY, {"number": self._number, "request": request.to_json()}))

    async def next(self) -> tuple[Kind, bytes]:
        """The next frame of the answer. Raises QueryLimit if the process has died."""
        try:
            kind, payload = await receive(self._reader)
        except (EOFError, OSError):
            raise QueryLimit(await self._last_words()) from None
        self.free = kind in LAST
        return kind, payload

    async def give_up(self, seconds: float) -> None:
        """Cancel what runs. A worker that does not obey in time is killed."""
        with suppress(OSError):
            self._writer.write(json_frame(Kind.CANCEL, {"number": self._number}))
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
