"""Threat: bytes that are no request. They are answered with a problem, and appear neither in it nor in the log."""

from __future__ import annotations

import asyncio
import logging

import orjson
import pytest

from tests.http.harness import House, house, run

SECRET = b"a-token-that-nobody-may-read"
_HEAD = b"POST /streams/a HTTP/1.1\r\nHost: x\r\n"
GARBAGE = {
    "a first line that is too long": b"GET /" + SECRET * 400 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
    "a header that is too long": b"GET / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + SECRET * 400 + b"\r\n\r\n",
    "a header without a name": b"GET / HTTP/1.1\r\nHost: x\r\n: " + SECRET + b"\r\n\r\n",
    "no HTTP at all": SECRET + b"\r\n\r\n",
    "two lengths": _HEAD + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n" + SECRET,
    "a length and chunks": _HEAD + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a length that is none": _HEAD + b"Content-Length: +1\r\n\r\n" + SECRET,
}


@pytest.mark.parametrize("sent", GARBAGE.values(), ids=GARBAGE)
def test_what_is_no_http_is_told_as_a_problem(sent: bytes, caplog: pytest.LogCaptureFixture) -> None:
    async def check() -> None:
        async with house() as home:
            head, _, told = (await _answer(home, sent)).partition(b"\r\n\r\n")
            assert head.split()[1] == b"400", head
            assert b"application/problem+json" in head
            problem = orjson.loads(told)
            assert (problem["status"], problem["type"].rpartition("/")[2]) == (400, "BadHttp")
            assert SECRET not in told

    with caplog.at_level(logging.DEBUG):
        run(check())
    assert SECRET.decode() not in caplog.text


async def _answer(home: House, sent: bytes) -> bytes:
    """All that comes until the edge closes the connection."""
    port = int(home.url.rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(sent)
    await writer.drain()
    found = await reader.read()
    writer.close()
    return found
