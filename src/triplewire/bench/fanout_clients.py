"""The load generator of `bench fanout`: a process that holds many connections and reads them as cheaply as it can.

Of every connection it keeps how many bytes came since the mark, and their checksum. Every so many connections one is
*sampled*: read as a client has to, with the delay of every message. Clients that hear the same get the same bytes, so
a connection whose bytes are those of a sampled one has heard what that one heard.
"""

from __future__ import annotations

import gc
import json
import os
import select
import socket
import time
from base64 import b64encode
from collections import Counter
from pathlib import Path
from typing import Any
from zlib import crc32

from triplewire.bench.fanout_links import answer, more_files
from triplewire.bench.fanout_streams import Stream

_ORDERS = 0
_BUFFER = 1 << 18
_UNANSWERED = 128
"""Connections that wait for their first message while others are being opened: a gentle ramp."""

_PAUSE = 0.002
"""Seconds between two looks at sampled connections: nothing is woken for each message. Delays have it."""

_LEISURE = 0.25
"""Seconds between two looks at the others, of which only what came counts, not when: what came to one of them meanwhile
is read at once."""
_SOME = 256
"""Of them that are read before the next look at the sampled ones: a millisecond."""

_BIND_NO_PORT = 24
"""IP_BIND_ADDRESS_NO_PORT: the port is chosen when the other end is known, so that an address has all of them."""


class Ear:
    """A sampled connection: numbers of events, their delays in milliseconds, and the bytes at which each was there."""

    def __init__(self, stream: Stream, *, traced: bool) -> None:
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

    def take(self, data: bytes, size: int) -> None:
        now = time.monotonic_ns()
        self.stream.take(data)
        for number, due in self.stream.heard:
            self.numbers.append(number)
            self.delays.append(round((now - due) / 1e6, 2))
            self.ends.append(size)
            self.last = max(self.last, number)
        self.stream.heard.clear()
        if self.traced:
            self.blocks.append((now, data))

    def told(self, size: int, checksum: int) -> dict[str, Any]:
        return {
            "digest": [size, checksum],
            "plain": self.stream.plain - self._plain,
            "numbers": self.numbers,
            "delays": self.delays,
            "ends": self.ends,
        }


class Clients:
    """All connections of this process, by their file numbers."""

    def __init__(self, told: dict[str, Any], most: int) -> None:
        self._told = told
        self._address = tuple(told["address"])
        self._request = told["request"].encode()
        self._sockets: list[socket.socket | None] = [None] * most
        self._opening: dict[int, Stream] = {}
        self._ears: dict[int, Ear] = {}
        self._sizes = [0] * most
        self._checksums = [0] * most
        self._begun = 0
        self._opened: list[int] = []
        self._gone = 0
        self._buffer = bytearray(_BUFFER)
        self._view = memoryview(self._buffer)
        self._orders = b""
        self._epoll = select.epoll()
        self._epoll.register(_ORDERS, select.EPOLLIN)
        self._others = select.epoll()
        self._looked = 0.0

    def run(self) -> None:
        """Until there are no more orders."""
        while True:
            connecting = self._begun < self._told["count"]
            while connecting and len(self._opening) < _UNANSWERED and self._begun < self._told["count"]:
                self._connect()
            ready = self._epoll.poll(0.01 if connecting else _LEISURE, 4096)
            if self._hear(ready) and not self._obey():
                return
            self._look()
            if not connecting:
                time.sleep(_PAUSE)

    def _look(self) -> None:
        """Read some of those that are not sampled, if it is time for them."""
        if time.monotonic() - self._looked < _LEISURE:
            return
        ready = self._others.poll(0, _SOME)
        self._hear(ready)
        if len(ready) < _SOME:
            self._looked = time.monotonic()

    def _connect(self) -> None:
        client = socket.socket()
        client.setsockopt(socket.IPPROTO_IP, _BIND_NO_PORT, 1)
        client.bind((self._told["source"], 0))
        client.settimeout(30.0)
        client.connect(self._address)
        client.sendall(self._request)
        client.setblocking(False)
        number = client.fileno()
        self._sockets[number] = client
        self._opening[number] = Stream()
        self._begun += 1
        self._epoll.register(number, select.EPOLLIN | select.EPOLLET)

    def _hear(self, ready: list[tuple[int, int]]) -> bool:
        """Read what is there; whether there are orders among it."""
        ordered = False
        sockets, sizes, checksums, buffer, view = self._sockets, self._sizes, self._checksums, self._buffer, self._view
        ears, opening = self._ears, self._opening
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
                checksums[number] = crc32(data, checksums[number])
                if number in ears:
                    ears[number].take(bytes(data), sizes[number])
                elif number in opening:
                    self._answered(number, bytes(data))
        return ordered

    def _answered(self, number: int, data: bytes) -> None:
        stream = self._opening[number]
        stream.take(data)
        if stream.opened:
            del self._opening[number]
            if len(self._opened) % self._told["every"] == 0:
                self._ears[number] = Ear(stream, traced=not self._ears and bool(self._told["trace"]))
            else:
                self._epoll.unregister(number)
                self._others.register(number, select.EPOLLIN | select.EPOLLET)
            self._opened.append(number)

    def _lose(self, number: int) -> None:
        client = self._sockets[number]
        assert client is not None
        if number in self._opening:
            raise ConnectionError("the server closed a connection before its first message")
        # It stays in the table of numbers: a number that came again would hide what this one did not hear.
        (self._epoll if number in self._ears else self._others).unregister(number)
        self._gone += 1

    def _obey(self) -> bool:
        """Whether there can be more orders."""
        data = os.read(_ORDERS, 65_536)
        while ready := self._others.poll(0, 4096):
            self._hear(ready)
        *lines, self._orders = (self._orders + data).split(b"\n")
        for line in lines:
            order = json.loads(line)
            if order["do"] == "mark":
                self._mark()
            answer(**(self._report() if order["do"] == "report" else self._status(order.get("upto", -1))))
        return bool(data)

    def _mark(self) -> None:
        for number in self._opened:
            self._sizes[number] = self._checksums[number] = 0
        for ear in self._ears.values():
            ear.mark()

    def _status(self, upto: int) -> dict[str, Any]:
        """`behind`: sampled connections that have not heard that event yet."""
        return {
            "opened": len(self._opened),
            "gone": self._gone,
            "bytes": sum(self._sizes[number] for number in self._opened),
            "behind": sum(ear.last < upto for ear in self._ears.values()),
        }

    def _report(self) -> dict[str, Any]:
        digests = Counter((self._sizes[number], self._checksums[number]) for number in self._opened)
        samples = [ear.told(self._sizes[number], self._checksums[number]) for number, ear in self._ears.items()]
        for ear in self._ears.values():
            if ear.traced and ear.blocks:
                began = ear.blocks[0][0]
                blocks = [(at - began, b64encode(data).decode()) for at, data in ear.blocks]
                Path(self._told["trace"]).write_text(json.dumps(blocks))
        return {
            "digests": [[*digest, count] for digest, count in digests.items()],
            "samples": samples,
            "gone": self._gone,
        }


def main() -> None:
    gc.disable()
    most = more_files()
    # Without a buffer, which would keep orders from being waited for together with what comes in.
    told = json.loads(os.fdopen(_ORDERS, "rb", buffering=0, closefd=False).readline())
    try:
        Clients(told, most).run()
    except (OSError, ValueError) as error:
        answer(failed=str(error))


if __name__ == "__main__":
    main()
