"""Listening: many SSE connections in one loop, reading as little of each frame as the count needs."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import cast

from triplewire.bench.workload import BASE

_FRAME_END = b"\n\n"


@dataclass
class Heard:
    """What arrived: how often each (question, event), and when it arrived last, in seconds of `perf_counter`."""

    counts: dict[tuple[int, int], int] = field(default_factory=dict)
    times: dict[tuple[int, int], float] = field(default_factory=dict)
    total: int = 0

    def note(self, question: int, event: int, at: float) -> None:
        key = (question, event)
        self.counts[key] = self.counts.get(key, 0) + 1
        self.times[key] = at
        self.total += 1


class Ear(asyncio.Protocol):
    """One connection to what one question is told. `event` finds the numbers of events in it."""

    def __init__(self, heard: Heard, event: re.Pattern[bytes], question: int, request: bytes) -> None:
        self._heard = heard
        self._event = event
        self._question = question
        self._request = request
        self._rest = b""
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast(asyncio.Transport, transport).write(self._request)

    def data_received(self, data: bytes) -> None:
        if not self.opened.done():
            self.opened.set_result(None)
        whole, end, rest = (self._rest + data).rpartition(_FRAME_END)
        self._rest = rest
        if end:
            at = time.perf_counter()
            for number in self._event.findall(whole):
                self._heard.note(self._question, int(number), at)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.opened.done():
            self.opened.set_exception(exc or ConnectionError("closed before the first byte"))


async def listen(
    host: str, port: int, paths: Sequence[str], heard: Heard, base: str = BASE
) -> list[asyncio.BaseTransport]:
    """Open one connection for each path; returns when every one of them was answered. Ids of events are their numbers
    after `base` and `e/`."""
    loop = asyncio.get_running_loop()
    event = re.compile(rb'"event":"' + re.escape(base.encode()) + rb'e/(\d+)"')
    transports: list[asyncio.BaseTransport] = []
    ears: list[Ear] = []
    for question, path in enumerate(paths):
        request = f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nAccept: text/event-stream\r\n\r\n".encode()
        transport, ear = await loop.create_connection(partial(Ear, heard, event, question, request), host, port)
        transports.append(transport)
        ears.append(ear)
    await asyncio.gather(*(ear.opened for ear in ears))
    return transports
