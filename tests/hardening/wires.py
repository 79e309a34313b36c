"""Bare sockets: what a client could send that no library would, and what comes back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import orjson

from tests.http.harness import House


@dataclass(frozen=True)
class Wire:
    """One connection to an edge."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def answer(self) -> Answer:
        """The next answer, with a length or without a body."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        told = Answer(head.removesuffix(b"\r\n\r\n"), b"")
        size = int(told.headers.get(b"content-length", b"0"))
        return Answer(told.head, await self.reader.readexactly(size))

    async def rest(self) -> bytes:
        """All until the edge closes the connection."""
        return await self.reader.read()


@dataclass(frozen=True)
class Answer:
    head: bytes
    body: bytes

    @property
    def status(self) -> int:
        return int(self.head.split(b" ", 2)[1])

    @property
    def headers(self) -> dict[bytes, bytes]:
        pairs = (line.partition(b":") for line in self.head.split(b"\r\n")[1:])
        return {name.lower(): value.strip() for name, _, value in pairs}

    @property
    def problem(self) -> dict[str, Any]:
        assert self.headers[b"content-type"] == b"application/problem+json", self.head
        found: dict[str, Any] = orjson.loads(self.body)
        return found


@asynccontextmanager
async def wire(home: House) -> AsyncIterator[Wire]:
    reader, writer = await asyncio.open_connection("127.0.0.1", int(home.url.rpartition(":")[2]))
    try:
        yield Wire(reader, writer)
    finally:
        writer.close()


async def alive(home: House) -> None:
    """The edge still answers others."""
    async with home.session.get(home.url + "/health") as response:
        assert response.status in (200, 503)
