"""The load generator of `bench fanout`: a process that holds many connections and reads them as cheaply as it can.

It keeps how many bytes came over each connection since the mark, and their checksum. Every so many connections one is
*sampled*: read as a client has to, with the delay of every message. Clients of one stream get the same bytes, so a
connection whose bytes are those of a sampled one got the same messages.
"""

from __future__ import annotations

import gc
import json
import os
import select
import socket
import time
import zlib
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import zstandard

from bench.fanout_publisher import MARK
from bench.links import allow_files, answer

_ORDERS = 0
_BUFFER = 1 << 18
_UNANSWERED = 128
"""Connections that wait for their first message while others are being opened: a gentle ramp."""
_PAUSE = 0.002
"""Seconds between two looks at sampled connections: nothing is woken for each message. Delays contain it."""
_LEISURE = 0.25
"""Seconds between two looks at the others, of which only the bytes count, not when they came: all that came to one of
them meanwhile is read at once."""
_SOME = 256
"""Others that are read before the next look at the sampled ones: a millisecond."""
_BIND_NO_PORT = 24
"""IP_BIND_ADDRESS_NO_PORT: the port is chosen when the other end is known, so that an address has all of them."""
_HEAD_MOST = 16_384


class ChunkedBody:
    """Takes `Transfer-Encoding: chunked` off, however it was cut into pieces."""

    def __init__(self) -> None:
        self._rest = b""
        self._left = 0
        """Bytes that are left of the chunk, with the two that end it."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        data, self._rest = self._rest + data, b""
        while data:
            if self._left > 2:
                body = data[: self._left - 2]
                self._left -= len(body)
                data = data[len(body) :]
                yield body
            elif self._left:
                gone = min(self._left, len(data))
                self._left -= gone
                data = data[gone:]
            else:
                line, end, after = data.partition(b"\r\n")
                if not end:
                    self._rest = data
                    return
                self._left, data = int(line.partition(b";")[0], 16) + 2, after


class MessageStream:
    """An answer that never ends, read as a client has to: head, chunks, compression, messages."""

    def __init__(self) -> None:
        self.opened = False
        """Whether the head is there, and something after it."""
        self.heard: list[tuple[int, int]] = []
        """Number of an event, and when it was due, since it was looked at last."""
        self.plain = 0
        """Bytes before compression, and without chunks."""
        self._head = self._text = b""
        self._chunks: ChunkedBody | None = None
        self._decode: Callable[[bytes], bytes] = bytes

    def feed(self, data: bytes) -> None:
        """Raises ValueError for an answer that is not HTTP, or not 200."""
        if self.opened:
            self._feed_body(data)
            return
        self._head += data
        head, end, body = self._head.partition(b"\r\n\r\n")
        if end and body:
            self.opened = True
            self._open(head)
            self._feed_body(body)
        elif not end and len(self._head) > _HEAD_MOST:
            raise ValueError("the answer's head does not end")

    def _open(self, head: bytes) -> None:
        first, *rest = head.decode("latin-1").split("\r\n")
        if first.split()[1:2] != ["200"]:
            raise ValueError(f"the answer is {first!r}")
        pairs = (each.lower().partition(":") for each in rest)
        fields = {name.strip(): value.strip() for name, _, value in pairs}
        self._chunks = ChunkedBody() if "chunked" in fields.get("transfer-encoding", "") else None
        match fields.get("content-encoding", "identity"):
            case "gzip" | "deflate":
                self._decode = zlib.decompressobj(47).decompress
            case "zstd":
                self._decode = zstandard.ZstdDecompressor().decompressobj(read_across_frames=True).decompress
            case "identity":
                self._decode = bytes
            case other:
                raise ValueError(f"the answer is encoded as {other!r}")

    def _feed_body(self, data: bytes) -> None:
        for piece in (data,) if self._chunks is None else self._chunks.feed(data):
            text = self._decode(piece)
            self.plain += len(text)
            self._text += text
        last = 0
        for found in MARK.finditer(self._text):
            self.heard.append((int(found[1]), int(found[2])))
            last = found.end()
        # A mark is short: the rest that is kept is enough to find one that is cut in two.
        self._text = self._text[max(last, len(self._text) - 64) :]


class SampledConnection:
    """Numbers of events, their delays in milliseconds, and the bytes at which each was there."""

    def __init__(self, stream: MessageStream, *, traced: bool) -> None:
        self.stream = stream
        self.traced = traced
        self.last = -1
        self.mark()

    def mark(self) -> None:
        self.numbers: list[int] = []
        self.delays: list[float] = []
        self.ends: list[int] = []
        self.blocks: list[tuple[int, bytes]] = []
        self._plain = self.stream.plain

    def feed(self, data: bytes, size: int) -> None:
        now = time.monotonic_ns()
        self.stream.feed(data)
        for number, due in self.stream.heard:
            self.numbers.append(number)
            self.delays.append(round((now - due) / 1e6, 2))
            self.ends.append(size)
            self.last = max(self.last, number)
        self.stream.heard.clear()
        if self.traced:
            self.blocks.append((now, data))

    def to_report(self, size: int, checksum: int) -> dict[str, Any]:
        plain = self.stream.plain - self._plain
        lists = {"numbers": self.numbers, "delays": self.delays, "ends": self.ends}
        return {"digest": [size, checksum], "plain": plain, **lists}


class FanoutClients:
    """All connections of this process, by their file numbers."""

    def __init__(self, setup: dict[str, Any], most: int) -> None:
        self._setup = setup
        self._address = tuple(setup["address"])
        self._request = setup["request"].encode()
        self._sockets: list[socket.socket | None] = [None] * most
        self._opening: dict[int, MessageStream] = {}
        self._sampled: dict[int, SampledConnection] = {}
        self._sizes = [0] * most
        self._checksums = [0] * most
        self._begun = self._gone = 0
        self._opened: list[int] = []
        self._buffer = bytearray(_BUFFER)
        self._view = memoryview(self._buffer)
        self._orders = b""
        self._epoll = select.epoll()
        self._epoll.register(_ORDERS, select.EPOLLIN)
        self._others = select.epoll()
        self._looked = 0.0

    def run(self) -> None:
        """Run until there are no more orders."""
        while True:
            connecting = self._begun < self._setup["count"]
            while connecting and len(self._opening) < _UNANSWERED and self._begun < self._setup["count"]:
                self._connect()
            ready = self._epoll.poll(0.01 if connecting else _LEISURE, 4096)
            if self._read(ready) and not self._obey():
                return
            self._read_others()
            if not connecting:
                time.sleep(_PAUSE)

    def _read_others(self) -> None:
        """Read some of those that are not sampled, if it is time for them."""
        if time.monotonic() - self._looked >= _LEISURE:
            ready = self._others.poll(0, _SOME)
            self._read(ready)
            if len(ready) < _SOME:
                self._looked = time.monotonic()

    def _connect(self) -> None:
        client = socket.socket()
        client.setsockopt(socket.IPPROTO_IP, _BIND_NO_PORT, 1)
        client.bind((self._setup["source"], 0))
        client.settimeout(30.0)
        client.connect(self._address)
        client.sendall(self._request)
        client.setblocking(False)
        number = client.fileno()
        self._sockets[number] = client
        self._opening[number] = MessageStream()
        self._begun += 1
        self._epoll.register(number, select.EPOLLIN | select.EPOLLET)

    def _read(self, ready: list[tuple[int, int]]) -> bool:
        """Read all that is there; return whether there are orders among it."""
        ordered = False
        sockets, sizes, checksums, buffer, view = self._sockets, self._sizes, self._checksums, self._buffer, self._view
        sampled, opening = self._sampled, self._opening
        for number, _ in ready:
            client = sockets[number]
            if client is None:
                ordered = ordered or number == _ORDERS
                continue
            size = _BUFFER
            while size == _BUFFER:
                try:
                    size = client.recv_into(buffer)
                except BlockingIOError:
                    break
                except OSError:
                    size = 0
                if not size:
                    self._lose(number)
                    break
                data = view[:size]
                sizes[number] += size
                checksums[number] = zlib.crc32(data, checksums[number])
                if number in sampled:
                    sampled[number].feed(bytes(data), sizes[number])
                elif number in opening:
                    self._feed_opening(number, bytes(data))
        return ordered

    def _feed_opening(self, number: int, data: bytes) -> None:
        stream = self._opening[number]
        stream.feed(data)
        if stream.opened:
            del self._opening[number]
            if len(self._opened) % self._setup["every"] == 0:
                traced = not self._sampled and bool(self._setup["trace"])
                self._sampled[number] = SampledConnection(stream, traced=traced)
            else:
                self._epoll.unregister(number)
                self._others.register(number, select.EPOLLIN | select.EPOLLET)
            self._opened.append(number)

    def _lose(self, number: int) -> None:
        if number in self._opening:
            raise ConnectionError("the server closed a connection before its first message")
        # It stays in the table of numbers: a number that came again would hide the messages that this one missed.
        (self._epoll if number in self._sampled else self._others).unregister(number)
        self._gone += 1

    def _obey(self) -> bool:
        """Carry out orders; return whether there can be more."""
        data = os.read(_ORDERS, 65_536)
        while ready := self._others.poll(0, 4096):
            self._read(ready)
        *lines, self._orders = (self._orders + data).split(b"\n")
        for line in lines:
            order = json.loads(line)
            if order["do"] == "mark":
                for number in self._opened:
                    self._sizes[number] = self._checksums[number] = 0
                for each in self._sampled.values():
                    each.mark()
            answer(**(self._report() if order["do"] == "report" else self._status(order.get("last", -1))))
        return bool(data)

    def _status(self, last: int) -> dict[str, Any]:
        """Return counts; `behind` are sampled connections that have not heard that event yet."""
        return {
            "opened": len(self._opened),
            "gone": self._gone,
            "bytes": sum(self._sizes[number] for number in self._opened),
            "behind": sum(each.last < last for each in self._sampled.values()),
        }

    def _report(self) -> dict[str, Any]:
        digests = Counter((self._sizes[number], self._checksums[number]) for number in self._opened)
        sampled = self._sampled.items()
        samples = [each.to_report(self._sizes[number], self._checksums[number]) for number, each in sampled]
        for each in self._sampled.values():
            if each.traced and each.blocks:
                began = each.blocks[0][0]
                blocks = [(at - began, b64encode(data).decode()) for at, data in each.blocks]
                Path(self._setup["trace"]).write_text(json.dumps(blocks))
        counts = [[*digest, count] for digest, count in digests.items()]
        return {"digests": counts, "samples": samples, "gone": self._gone}


def main() -> None:
    gc.disable()
    most = allow_files()
    # Without a buffer, which would keep orders from being waited for together with data.
    setup = json.loads(os.fdopen(_ORDERS, "rb", buffering=0, closefd=False).readline())
    try:
        FanoutClients(setup, most).run()
    except (OSError, ValueError) as error:
        answer(failed=str(error))


if __name__ == "__main__":
    main()
