"""The publisher of `bench fanout`: a process that sends one event after the other, each when it is due.

It does not wait for the answer to one before it sends the next, as long as it has connections. An event tells the
moment it was due, not the one it was sent: a server that lets its publisher wait does not get better figures by that.
"""

from __future__ import annotations

import gc
import json
import random
import select
import socket
import sys
import time
from typing import Any

from triplewire.bench.fanout_events import KINDS
from triplewire.bench.fanout_links import answer

_CONNECTIONS = 16
"""Publishes under way at most. As many as are needed are opened: one, where each is answered before the next is due."""

_PATIENCE = 60.0


class Connection:
    """One that stays open, and has one request under way at a time."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._socket = socket.create_connection(address, timeout=_PATIENCE)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._answer = b""

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, request: bytes) -> None:
        self._answer = b""
        self._socket.sendall(request)

    def answered(self) -> bool:
        """Read what there is; whether the answer is complete. Raises ConnectionError for one that is no success."""
        data = self._socket.recv(65_536)
        if not data:
            raise ConnectionError("the server closed the publisher's connection")
        self._answer += data
        head, end, body = self._answer.partition(b"\r\n\r\n")
        if not end or len(body) < _length(head):
            return False
        if not head.split()[1].startswith(b"2"):
            raise ConnectionError(f"publishing was answered with {head.splitlines()[0]!r}: {body[:300]!r}")
        return True


def _length(head: bytes) -> int:
    lines = (line.partition(b":") for line in head.lower().split(b"\r\n"))
    return next((int(value) for name, _, value in lines if name == b"content-length"), 0)


class Publisher:
    """Makes requests and has connections for them."""

    def __init__(self, told: dict[str, Any]) -> None:
        self._make, kind = KINDS[told["kind"]]
        self._size: int = told["size"]
        host, port = self._address = tuple(told["address"])
        self._head = f"POST {told['path']} HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: {kind}\r\nContent-Length: "
        self._idle = [Connection(self._address)]
        self._busy: list[Connection] = []

    def publish(self, first: int, count: int, rate: float, *, uneven: bool) -> int:
        """So many events, until all are answered; the number of the last. `uneven`: as a Poisson process has them."""
        draw, due = random.Random(first), time.monotonic()
        for number in range(first, first + count):
            while (left := due - time.monotonic()) > 0:
                self._look(left)
            self._send(number, int(due * 1e9))
            due += draw.expovariate(rate) if uneven else 1 / rate
        while self._busy:
            self._wait()
        return first + count - 1

    def _send(self, number: int, due: int) -> None:
        body = self._make(number, due, self._size)
        self._look(0)
        while not self._idle and len(self._busy) >= _CONNECTIONS:
            self._wait()
        connection = self._idle.pop() if self._idle else Connection(self._address)
        connection.send(f"{self._head}{len(body)}\r\n\r\n".encode() + body)
        self._busy.append(connection)

    def _wait(self) -> None:
        if not self._look(_PATIENCE):
            raise TimeoutError(f"publishing was not answered within {_PATIENCE:.0f} s")

    def _look(self, seconds: float) -> int:
        """Whether answers have come, or come within that time; how many connections had something to say."""
        if not self._busy:
            time.sleep(seconds)
            return 0
        ready = select.select(self._busy, [], [], seconds)[0]
        for connection in ready:
            if connection.answered():
                self._busy.remove(connection)
                self._idle.append(connection)
        return len(ready)


def main() -> None:
    gc.disable()
    publisher = Publisher(json.loads(sys.stdin.readline()))
    for line in iter(sys.stdin.readline, ""):
        order = json.loads(line)
        try:
            last = publisher.publish(order["first"], order["count"], order["rate"], uneven=order["uneven"])
        except OSError as error:
            answer(failed=str(error))
            return
        answer(last=last)


if __name__ == "__main__":
    main()
