"""The targets of `bench doors`: ports that take what is posted to them and say no more, or do not answer at all."""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from collections.abc import Callable, Collection
from typing import cast

import uvloop

from triplewire.bench.fanout_links import answer, more_files

_TAKEN = b"HTTP/1.1 204 No Content\r\n\r\n"
_LENGTH = re.compile(rb"\r\ncontent-length: (\d+)", re.IGNORECASE)
_ID = re.compile(rb"\r\nwebhook-id: \w+_(\w{16})\r\n", re.IGNORECASE)

Call = tuple[int, str, float]
"""Which target was called, the position of what it was told, and when."""


class Target(asyncio.Protocol):
    """One connection to one target."""

    def __init__(self, number: int, hanging: Collection[int], heard: Callable[[Call], None]) -> None:
        self._number = number
        self._hanging = hanging
        self._heard = heard
        self._rest = b""
        self._transport: asyncio.WriteTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.WriteTransport, transport)

    def data_received(self, data: bytes) -> None:
        self._rest += data
        while b"\r\n\r\n" in self._rest and self._number not in self._hanging:
            head, _, body = self._rest.partition(b"\r\n\r\n")
            length, id = _LENGTH.search(head), _ID.search(head + b"\r\n")
            if length is None or id is None or len(body) < int(length[1]):
                return
            self._rest = body[int(length[1]) :]
            self._heard((self._number, id[1].decode(), time.monotonic()))
            assert self._transport is not None
            self._transport.write(_TAKEN)


class Targets:
    """All of them, and what they were told since the last order."""

    def __init__(self) -> None:
        self._calls: list[Call] = []
        self._hanging: set[int] = set()
        self._wanted = 0
        self._enough = asyncio.Event()
        self._servers: list[asyncio.Server] = []

    async def open(self, count: int) -> list[int]:
        """Their ports."""
        loop = asyncio.get_running_loop()
        self._servers = [
            await loop.create_server(lambda number=number: Target(number, self._hanging, self._hear), "127.0.0.1", 0)  # type: ignore[misc]
            for number in range(count)
        ]
        return [server.sockets[0].getsockname()[1] for server in self._servers]

    def hang(self, numbers: Collection[int]) -> None:
        self._hanging.clear()
        self._hanging.update(numbers)
        self._calls.clear()

    async def calls(self, count: int) -> list[Call]:
        """When there are so many."""
        self._wanted = count
        if len(self._calls) < count:
            self._enough.clear()
            await self._enough.wait()
        found, self._calls, self._wanted = self._calls, [], 0
        return found

    def _hear(self, call: Call) -> None:
        self._calls.append(call)
        if len(self._calls) == self._wanted:
            self._enough.set()


async def _serve() -> None:
    loop, targets = asyncio.get_running_loop(), Targets()
    answer(ports=await targets.open(json.loads(sys.stdin.readline())["targets"]))
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        order = json.loads(line)
        if "hang" in order:
            targets.hang(order["hang"])
            answer(hanging=len(order["hang"]))
        else:
            answer(calls=await targets.calls(order["calls"]))


def main() -> None:
    more_files()
    uvloop.run(_serve())


if __name__ == "__main__":
    main()
