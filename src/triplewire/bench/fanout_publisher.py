"""The publisher of `bench fanout`: a process that sends one event after the other, each when it is due.

An event tells the moment it was due, not the one it was sent: a server that lets its publisher wait does not get
better figures by that.
"""

from __future__ import annotations

import gc
import json
import random
import socket
import sys
import time
from typing import Any

from triplewire.bench.fanout_events import KINDS
from triplewire.bench.fanout_links import answer


class Publisher:
    """One connection, which stays open."""

    def __init__(self, told: dict[str, Any]) -> None:
        self._make, kind = KINDS[told["kind"]]
        self._size: int = told["size"]
        host, port = told["address"]
        self._head = f"POST {told['path']} HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: {kind}\r\nContent-Length: "
        self._socket = socket.create_connection((host, port), timeout=60.0)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def publish(self, first: int, count: int, rate: float, *, uneven: bool) -> int:
        """So many events; the number of the last. `uneven`: as a Poisson process has them."""
        draw, due = random.Random(first), time.monotonic()
        for number in range(first, first + count):
            time.sleep(max(0.0, due - time.monotonic()))
            self._send(number, int(due * 1e9))
            due += draw.expovariate(rate) if uneven else 1 / rate
        return first + count - 1

    def _send(self, number: int, due: int) -> None:
        body = self._make(number, due, self._size)
        self._socket.sendall(f"{self._head}{len(body)}\r\n\r\n".encode() + body)
        self._read_answer()

    def _read_answer(self) -> None:
        data = b""
        while b"\r\n\r\n" not in data:
            data += self._more()
        head, _, body = data.partition(b"\r\n\r\n")
        length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        while len(body) < int(length.partition(b":")[2]):
            body += self._more()
        if not head.split()[1].startswith(b"2"):
            raise ConnectionError(f"publishing was answered with {head.splitlines()[0]!r}: {body[:300]!r}")

    def _more(self) -> bytes:
        data = self._socket.recv(65_536)
        if not data:
            raise ConnectionError("the server closed the publisher's connection")
        return data


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
