"""The publisher of `bench fanout`: a process that sends one event after the other, each when it is due.

It does not wait for the answer to one before it sends the next, as long as it has connections. An event tells the
moment it was due, not the one it was sent: a server that lets its publisher wait does not get better figures by that.

Events have a chosen size. Like real ones they are alike and not the same: predicates and the beginnings of IRIs come
again, sensors, values, numbers, times and words do not. All but the time follows from the number.
"""

from __future__ import annotations

import gc
import json
import random
import re
import select
import socket
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from bench.links import answer

MARK = re.compile(rb"sent (\d+) at (\d+) ")
"""The number of an event in a message of any format, and when it was due in nanoseconds of the monotonic clock."""

_BASE = "http://a.example"
_SOSA = "http://www.w3.org/ns/sosa/"
_PROPERTIES = ("no2", "noise", "speed", "occupancy", "temperature", "humidity")
_WORDS = Path(__file__).with_name("words.txt").read_text().split()
_CONNECTIONS = 16
"""Publishes under way at most. Connections are opened as needed: one, where each is answered before the next is due."""
_PATIENCE = 60.0


def write_observation(number: int, due: int, size: int) -> bytes:
    """Return a sensor's observation of four quads, as N-Quads: `size` bytes, or as few as it takes."""
    draw = random.Random(number)
    subject, graph = f"<{_BASE}/o/{number}>", f"<{_BASE}/e/{number}>"
    head = (
        f"{subject} <{_SOSA}madeBySensor> <{_BASE}/sensor/{draw.randrange(2_000)}> {graph} .\n"
        f"{subject} <{_SOSA}observedProperty> <{_BASE}/property/{draw.choice(_PROPERTIES)}> {graph} .\n"
        f'{subject} <{_SOSA}hasSimpleResult> "{draw.uniform(0, 100):.1f}" {graph} .\n'
        f'{subject} <{_BASE}/note> "sent {number} at {due} '
    )
    return _fill_up(draw, head, f'" {graph} .\n', size)


def write_post(number: int, due: int, size: int) -> bytes:
    """Return a post of a microblog like that of figure 2 in the paper on Ztreamy, of about that size."""
    draw = random.Random(number)
    base, notice = "http://identi.example", f"<http://identi.example/notice/{97_000_000 + number}>"
    user = f"<{base}/user/{draw.randrange(20_000)}>"

    def write_place() -> str:
        return f'[ a geo:Place; geo:lat "{draw.uniform(-90, 90):.3f}"; geo:long "{draw.uniform(-180, 180):.3f}" ]'

    head = (
        "@prefix dc: <http://purl.org/dc/elements/1.1/> .\n"
        "@prefix foaf: <http://xmlns.com/foaf/0.1/> .\n"
        "@prefix geo: <http://www.w3.org/2003/01/geo/wgs84_pos#> .\n"
        f"@prefix ns: <{base}/ns/> .\n"
        f"{notice}\n  dc:creator {user};\n"
        f'  dc:date "2012-10-25T11:{draw.randrange(60):02}:{draw.randrange(60):02}+00:00";\n'
        f"  ns:conversation <{base}/conversation/{draw.randrange(10**8)}>;\n"
        f'  ns:hashtag "{draw.choice(_WORDS)}{draw.randrange(100)}";\n'
        f"  ns:location {write_place()} .\n"
        f"{user} foaf:based_near {write_place()} .\n"
        f'{notice} ns:content "sent {number} at {due} '
    )
    return _fill_up(draw, head, '" .\n', size + draw.randrange(-100, 101))


def _fill_up(draw: random.Random, head: str, end: str, size: int) -> bytes:
    """Return so many characters, with words in the middle; none if there is no space for them."""
    words, space = "", size - len(head) - len(end)
    while len(words) < space:
        words += draw.choice(_WORDS) + " "
    return (head + words[: max(0, space)] + end).encode()


KINDS: Mapping[str, tuple[Callable[[int, int, int], bytes], str]] = {
    "observation": (write_observation, "application/n-quads"),
    "post": (write_post, "text/turtle"),
}
"""Kinds of events, and the media type of their bodies."""


class PublisherConnection:
    """A connection that stays open, and has one request under way at a time."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._socket = socket.create_connection(address, timeout=_PATIENCE)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._answer = b""

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, request: bytes) -> None:
        self._answer = b""
        self._socket.sendall(request)

    def receive(self) -> bool:
        """Read what there is; return whether the answer is complete. Raises ConnectionError unless it is a success."""
        data = self._socket.recv(65_536)
        if not data:
            raise ConnectionError("the server closed the publisher's connection")
        self._answer += data
        head, end, body = self._answer.partition(b"\r\n\r\n")
        length = re.search(rb"\r\ncontent-length:\s*(\d+)", head, re.IGNORECASE)
        if not end or len(body) < (int(length[1]) if length else 0):
            return False
        if not head.split()[1].startswith(b"2"):
            raise ConnectionError(f"publishing was answered with {head.splitlines()[0]!r}: {body[:300]!r}")
        return True


class Publisher:
    """Makes requests and has connections for them."""

    def __init__(self, setup: dict[str, Any]) -> None:
        self._write, kind = KINDS[setup["kind"]]
        self._size: int = setup["size"]
        host, port = self._address = tuple(setup["address"])
        self._head = f"POST {setup['path']} HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: {kind}\r\nContent-Length: "
        self._idle = [PublisherConnection(self._address)]
        self._busy: list[PublisherConnection] = []

    def publish(self, first: int, count: int, rate: float, *, uneven: bool) -> int:
        """Publish so many events until all are answered; return the number of the last. `uneven`: as a Poisson process
        has them."""
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
        body = self._write(number, due, self._size)
        self._look(0)
        while not self._idle and len(self._busy) >= _CONNECTIONS:
            self._wait()
        connection = self._idle.pop() if self._idle else PublisherConnection(self._address)
        connection.send(f"{self._head}{len(body)}\r\n\r\n".encode() + body)
        self._busy.append(connection)

    def _wait(self) -> None:
        if not self._look(_PATIENCE):
            raise TimeoutError(f"publishing was not answered within {_PATIENCE:.0f} s")

    def _look(self, seconds: float) -> int:
        """Read answers that come within that time; return how many connections had data."""
        if not self._busy:
            time.sleep(seconds)
            return 0
        ready = select.select(self._busy, [], [], seconds)[0]
        for connection in ready:
            if connection.receive():
                self._busy.remove(connection)
                self._idle.append(connection)
        return len(ready)


def main() -> None:
    gc.disable()
    publisher = Publisher(json.loads(sys.stdin.readline()))
    for line in iter(sys.stdin.readline, ""):
        try:
            answer(last=publisher.publish(**json.loads(line)))
        except OSError as error:
            answer(failed=str(error))
            return


if __name__ == "__main__":
    main()
