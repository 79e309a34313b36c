"""Messages of answers without an end, read in each format by as little code as it takes: none of it is Triplewire's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import orjson


@dataclass(frozen=True)
class Message:
    """Its name, where to resume after it, and what it says."""

    name: str
    position: str | None
    said: dict[str, Any]


Reader = Callable[[bytes], tuple[list[Message], bytes]]
"""The messages that are whole in some bytes, and the rest."""


def sse(data: bytes) -> tuple[list[Message], bytes]:
    *blocks, rest = data.split(b"\n\n")
    return [each for block in blocks for each in _sse(block.decode())], rest


def _sse(block: str) -> Iterator[Message]:
    fields = dict(line.partition(":")[::2] for line in block.split("\n") if line and not line.startswith(":"))
    said = {name: value.removeprefix(" ") for name, value in fields.items()}
    if "data" in said:
        yield Message(said.get("event", "message"), said.get("id"), orjson.loads(said["data"]))


def lines(data: bytes) -> tuple[list[Message], bytes]:
    *whole, rest = data.split(b"\n")
    return [_line(orjson.loads(line)) for line in whole if line.strip()], rest


def _line(said: dict[str, Any]) -> Message:
    return Message(said["type"], said.get("id", said.get("position")), said)


def rdf(data: bytes) -> tuple[list[Message], bytes]:
    """N-Quads and TriG: a comment says what follows."""
    *blocks, rest = data.split(b"\n\n")
    return [each for block in blocks for each in _rdf(block.decode())], rest


def _rdf(block: str) -> Iterator[Message]:
    head, _, statements = block.lstrip("#\n").strip().partition("\n")
    name, _, told = head.partition(" ")
    if told:
        said = orjson.loads(told)
        yield Message(name, said.get("id", said.get("position")), {**said, "body": statements})


def items(data: bytes) -> tuple[list[Message], bytes]:
    found: list[Message] = []
    while b"\r\n\r\n" in data.lstrip(b"\n"):
        head, _, after = data.lstrip(b"\n").partition(b"\r\n\r\n")
        headers = dict(line.partition(": ")[::2] for line in head.decode().split("\r\n"))
        size = int(headers["Body-Length"])
        if len(after) < size:
            break
        body, data = after[:size], after[size:]
        notice = headers.get("Notice")
        said = orjson.loads(body) if notice else {"event": headers["Event-Id"], "body": body.decode()}
        found.append(Message(notice or "event", headers.get("Position", said.get("position")), said))
    return found, data


READERS: dict[str, Reader] = {"sse": sse, "ndjson": lines, "nquads": rdf, "trig": rdf, "ztreamy": items}


@dataclass
class Ear:
    """The messages of one answer."""

    response: aiohttp.ClientResponse
    read: Reader = sse
    _rest: bytes = b""
    _heard: list[Message] = field(default_factory=list)

    async def next(self) -> Message:
        """Raises EOFError where the answer has ended."""
        while not self._heard:
            piece = await self.response.content.readany()
            if not piece:
                raise EOFError("the answer ended early")
            self._heard, self._rest = self.read(self._rest + piece)
        return self._heard.pop(0)

    async def take(self, count: int, name: str = "event") -> list[Message]:
        """The next of a name; those that are about the connection are passed over."""
        found: list[Message] = []
        while len(found) < count:
            message = await self.next()
            if message.name == name:
                found.append(message)
            assert message.name in (name, "position", "gap"), f"heard {message} where {name} was to come"
        return found
