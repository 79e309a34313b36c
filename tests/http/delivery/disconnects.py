"""Clients on bare sockets that are cut off after so many bytes, and what they have read of each format by then."""

from __future__ import annotations

import asyncio
import base64
import re
import zlib
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import urlsplit

import orjson
import zstandard

from triplewire.client.feeds import SseParser
from triplewire.rdf.ztreamy import ZtreamySplitter, parse_item

Json = dict[str, Any]


@dataclass(frozen=True)
class Heard:
    """A whole message: what it is called, and the id from which a client that has it resumes."""

    type: str
    id: str | None
    data: Json


class Reading(Protocol):
    """Takes what came, in pieces, and gives the messages that are whole."""

    def feed(self, data: bytes) -> Iterator[Heard]: ...


class SseReading:
    def __init__(self) -> None:
        self._parser = SseParser()

    def feed(self, data: bytes) -> Iterator[Heard]:
        for each in self._parser.feed(data):
            yield Heard(each.event, each.id, orjson.loads(each.data))


class LineReading:
    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[Heard]:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in filter(None, lines):
            yield heard(orjson.loads(line))


class RdfReading:
    """Of N-Quads and TriG: comments tell messages apart."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[Heard]:
        *blocks, self._rest = (self._rest + data).split(b"\n\n")
        for block in blocks:
            for name, told in re.findall(rb"^# (\w+) (\{.*\})$", block, re.MULTILINE):
                yield heard({"type": name.decode(), **orjson.loads(told)})


class FrameReading:
    """Of a WebSocket, once hands were shaken."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[Heard]:
        self._rest += data
        while (found := _frame(self._rest)) is not None:
            kind, payload, self._rest = found
            if kind == 1:
                yield heard(orjson.loads(payload))


class ItemReading:
    """Of Ztreamy items."""

    def __init__(self) -> None:
        self._cutter = ZtreamySplitter()

    def feed(self, data: bytes) -> Iterator[Heard]:
        for cut in self._cutter.feed(data):
            item = parse_item(cut.data)
            told = dict(item.headers.extensions)
            if "Notice" in told:
                yield heard({"type": told["Notice"], **orjson.loads(item.body)})
            else:
                yield heard({"type": "item", "position": told["Position"]})


def heard(told: Json) -> Heard:
    return Heard(told["type"], told.get("id", told.get("position")), told)


def _frame(data: bytes) -> tuple[int, bytes, bytes] | None:
    if len(data) < 2:
        return None
    size, start = data[1] & 127, 2
    if size > 125:
        start += 2 if size == 126 else 8
        size = int.from_bytes(data[2:start], "big")
    if len(data) < start + size:
        return None
    return data[0] & 15, data[start : start + size], data[start + size :]


class Body:
    """Takes the bytes of an answer, and gives those of its body: of its chunks, unpacked."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.whole = False
        self._rest = b""
        self._left = 0
        """Bytes that are to come of a chunk, with the end of its line."""
        self._unpack: Callable[[bytes], bytes] = lambda data: data

    def feed(self, data: bytes) -> bytes:
        self._rest += data
        if not self.status and b"\r\n\r\n" in self._rest:
            head, _, self._rest = self._rest.partition(b"\r\n\r\n")
            self._begin(head.decode())
        return self._content() if self.status else b""

    def _begin(self, head: str) -> None:
        first, *lines = head.split("\r\n")
        self.status = int(first.split()[1])
        self.headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        self._unpack = unpacking(self.headers.get("content-encoding", ""))

    def _content(self) -> bytes:
        if self.headers.get("transfer-encoding") == "chunked":
            return self._unpack(b"".join(self._chunks()))
        size = int(self.headers.get("content-length", 1 << 60))
        self.whole = len(self._rest) >= size
        if "content-length" in self.headers and not self.whole:
            return b""
        found, self._rest = self._rest, b""
        return self._unpack(found)

    def _chunks(self) -> Iterator[bytes]:
        """What came of them, whole or not."""
        while self._rest:
            if not self._left:
                size, found, rest = self._rest.partition(b"\r\n")
                if not found:
                    return
                self.whole = size == b"0"
                self._left, self._rest = int(size, 16) + 2, rest
            piece, self._rest = self._rest[: self._left], self._rest[self._left :]
            yield piece[: max(0, self._left - 2)]
            self._left -= len(piece)


def unpacking(encoding: str) -> Callable[[bytes], bytes]:
    """Unpacks a stream piece by piece, as far as it came."""
    if encoding == "gzip":
        return zlib.decompressobj(31).decompress
    if encoding == "zstd":
        # Frames follow each other.
        return zstandard.ZstdDecompressor().decompressobj(read_across_frames=True).decompress
    assert not encoding, encoding
    return lambda data: data


Say = Callable[[Json], None]


async def read(
    url: str,
    path: str,
    budget: int,
    take: Callable[[bytes, Body, Say], Awaitable[bool]],
    **headers: str,
) -> Body:
    """Ask for an answer and read so many bytes of it, then go without a word. Each piece of its body is given to
    `take`, which may say something over a WebSocket, and tells whether it wants more."""
    address = urlsplit(url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    try:
        writer.write(_request(path, address.netloc, headers))
        body, wanted = Body(), True
        while budget and wanted:
            piece = await reader.read(min(budget, 1 << 16))
            budget -= len(piece)
            wanted = await take(body.feed(piece), body, lambda said: writer.write(masked(said)))
            wanted = wanted and bool(piece) and not body.whole
        return body
    finally:
        writer.transport.abort()


def _request(path: str, host: str, headers: Mapping[str, str]) -> bytes:
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([f"GET {path} HTTP/1.1", f"Host: {host}", *lines, "", ""]).encode()


UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec_WebSocket_Version": "13",
    "Sec_WebSocket_Key": base64.b64encode(bytes(16)).decode(),
}


def masked(said: Json) -> bytes:
    """A message of a client, masked with zeros."""
    payload = orjson.dumps(said)
    assert len(payload) < 126
    return bytes((0x81, 0x80 | len(payload))) + bytes(4) + payload
