"""Threat: a head that does not fit: headers without an end, many of them, an address of megabytes. It is read into
memory before anybody knows what it asks for, or who asks. What stops it: lines, headers and their number have
limits,
and what is over them is 400 before the rest is read.
"""

from __future__ import annotations

import pytest

from tests.hardening.wires import alive, wire
from tests.http.harness import house, run
from triplewire.http.server import HEADERS, LINE_BYTES

START = b"GET /health HTTP/1.1\r\nHost: x\r\n"


def many(count: int) -> bytes:
    return b"".join(b"X-%d: y\r\n" % number for number in range(count))


HUGE = {
    "an address": b"GET /" + b"a" * (LINE_BYTES + 1) + b" HTTP/1.1\r\nHost: x\r\n\r\n",
    "parameters": b"GET /health?" + b"a=b&" * LINE_BYTES + b" HTTP/1.1\r\nHost: x\r\n\r\n",
    "a method": b"G" * (LINE_BYTES + 1) + b" / HTTP/1.1\r\nHost: x\r\n\r\n",
    "a value": START + b"X-A: " + b"b" * (LINE_BYTES + 1) + b"\r\n\r\n",
    "a name": START + b"X" * (LINE_BYTES + 1) + b": b\r\n\r\n",
    "a cookie": START + b"Cookie: " + b"a=b;" * LINE_BYTES + b"\r\n\r\n",
    "many headers": START + many(HEADERS + 1) + b"\r\n",
    "headers without an end": START + many(100_000),
}


@pytest.mark.parametrize("sent", HUGE.values(), ids=HUGE)
def test_a_head_that_is_too_large_is_refused(sent: bytes) -> None:
    async def scene() -> None:
        async with house() as home, wire(home) as attacker:
            attacker.writer.write(sent)
            told = await attacker.answer()
            assert told.status == 400
            assert told.problem["type"].rpartition("/")[2] == "BadHttp"
            await alive(home)

    run(scene())


def test_a_head_within_the_limits_is_taken() -> None:
    async def scene() -> None:
        async with house() as home, wire(home) as client:
            await client.send(START + many(HEADERS // 2) + b"X-A: " + b"b" * (LINE_BYTES // 2) + b"\r\n\r\n")
            assert (await client.answer()).status in (200, 503)

    run(scene())


def test_requests_in_a_row_are_read_no_faster_than_they_are_answered() -> None:
    """Threat: thousands of requests at once, of which nobody takes the answers."""

    async def scene() -> None:
        async with house() as home, wire(home) as attacker:
            count = 2_000
            attacker.writer.write(b"GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n" * count)
            front = home.runner.front
            assert front is not None
            for _ in range(count):
                assert (await attacker.answer()).status == 404
                assert all(len(each._messages) <= 64 for each in front.connections)
            await alive(home)

    run(scene())
