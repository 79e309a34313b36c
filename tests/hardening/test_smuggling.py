"""Threat: somebody behind a proxy that others share sends a request of which the proxy and the edge disagree where
it
ends. What one of them takes for a body is the next request to the other: it passes the proxy's checks, or answers
somebody else. What stops it: framing that can be read in two ways is refused, and its connection is closed, so that
nothing after it is read as a request.
"""

from __future__ import annotations

import pytest

from tests.hardening.wires import alive, wire
from tests.http.harness import body, house, run
from triplewire.testing.samples import event

HEAD = b"POST /streams/a HTTP/1.1\r\nHost: x\r\nContent-Type: application/n-quads\r\n"
EVENT = body(event(1))
LENGTH = b"Content-Length: %d\r\n" % len(EVENT)
CHUNKED = b"Transfer-Encoding: chunked\r\n"
CHUNKS = b"%x\r\n%b\r\n0\r\n\r\n" % (len(EVENT), EVENT)
SMUGGLED = (
    b"POST /streams/smuggled HTTP/1.1\r\nHost: x\r\nContent-Type: application/n-quads\r\n" + LENGTH + b"\r\n" + EVENT
)


def sized(text: str) -> bytes:
    """A chunk of that size, as it is written."""
    return HEAD + CHUNKED + b"\r\n" + text.encode() + b"\r\n" + EVENT + b"\r\n0\r\n\r\n"


SIZE = f"{len(EVENT):x}"
AMBIGUOUS = {
    "a length, then chunks": HEAD + LENGTH + CHUNKED + b"\r\n" + CHUNKS,
    "chunks, then a length": HEAD + CHUNKED + LENGTH + b"\r\n" + CHUNKS,
    "two lengths": HEAD + LENGTH + b"Content-Length: 3\r\n\r\n" + EVENT,
    "the same length twice": HEAD + LENGTH + LENGTH + b"\r\n" + EVENT,
    "a list of lengths": HEAD + b"Content-Length: 3, 3\r\n\r\n" + EVENT,
    "a signed length": HEAD + b"Content-Length: +3\r\n\r\n" + EVENT,
    "a negative length": HEAD + b"Content-Length: -1\r\n\r\n" + EVENT,
    "a length in hexadecimal": HEAD + b"Content-Length: 0x3\r\n\r\n" + EVENT,
    "a length with an underscore": HEAD + b"Content-Length: 1_0\r\n\r\n" + EVENT,
    "a length in other digits": HEAD + "Content-Length: ٣\r\n\r\n".encode() + EVENT,
    "a length without an end": HEAD + b"Content-Length: " + b"9" * 40 + b"\r\n\r\n" + EVENT,
    "no length": HEAD + b"Content-Length:\r\n\r\n" + EVENT,
    "a space before the colon": HEAD + b"Transfer-Encoding : chunked\r\n\r\n" + CHUNKS,
    "a vertical tab": HEAD + b"Transfer-Encoding: \x0bchunked\r\n\r\n" + CHUNKS,
    "a coding that nobody knows": HEAD + b"Transfer-Encoding: xchunked\r\n\r\n" + CHUNKS,
    "chunks that are not last": HEAD + b"Transfer-Encoding: chunked, identity\r\n\r\n" + CHUNKS,
    "chunks twice": HEAD + CHUNKED + CHUNKED + b"\r\n" + CHUNKS,
    "another coding below the chunks": HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n" + CHUNKS,
    "chunks of HTTP/1.0": HEAD.replace(b"1.1", b"1.0") + CHUNKED + b"\r\n" + CHUNKS,
    "a folded header": HEAD + b"X-A: b\r\n " + LENGTH + b"\r\n" + EVENT,
    "a folded first header": b"POST /streams/a HTTP/1.1\r\n Host: x\r\n" + LENGTH + b"\r\n" + EVENT,
    "lines that end with LF alone": (HEAD + LENGTH).replace(b"\r\n", b"\n") + b"\n" + EVENT,
    "one header that ends with LF alone": HEAD + b"X-A: b\n" + LENGTH + b"\r\n" + EVENT,
    "one header that ends with CR alone": HEAD + b"X-A: b\r" + LENGTH + b"\r\n" + EVENT,
    "a NUL in a header": HEAD + b"X-A: b\0\r\n" + LENGTH + b"\r\n" + EVENT,
    "two hosts": b"GET /health HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
    "no host": b"GET /health HTTP/1.1\r\n\r\n",
    "HTTP/0.9": b"GET /health\r\n\r\n",
    "the preface of HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "a size with a prefix": sized("0x" + SIZE),
    "a size with a sign": sized("+" + SIZE),
    "a size with an underscore": sized("0_" + SIZE),
    "a size with a space": sized(SIZE + " "),
    "a size without an end": sized("f" * 40),
    "an extension with LF": sized(SIZE + ";a\nb"),
    "a chunk without an end": HEAD + CHUNKED + b"\r\n" + CHUNKS.replace(b"\r\n0\r\n", b"XX0\r\n"),
    "chunks that end with LF alone": HEAD + CHUNKED + b"\r\n" + CHUNKS.replace(b"\r\n", b"\n"),
    "trailers without an end": HEAD + CHUNKED + b"\r\n" + CHUNKS[:-2] + b"X-A: b\r\n" * 10_000 + b"\r\n",
}


@pytest.mark.parametrize("sent", AMBIGUOUS.values(), ids=AMBIGUOUS)
def test_framing_that_can_be_read_in_two_ways_is_refused(sent: bytes) -> None:
    async def scene() -> None:
        async with house() as home, wire(home) as attacker:
            await attacker.send(sent + SMUGGLED)
            told = await attacker.answer()
            assert told.status == 400
            assert told.problem["type"].rpartition("/")[2] == "BadHttp"
            assert await attacker.rest() == b"", "nothing after it is answered"
            assert home.twin.log.head() == 0, "nothing of it is stored"
            await alive(home)

    run(scene())


CLEAR = {
    "a length": HEAD + LENGTH + b"\r\n" + EVENT,
    "chunks": HEAD + CHUNKED + b"\r\n" + CHUNKS,
    "chunks in capitals": HEAD + CHUNKED.upper() + b"\r\n" + CHUNKS,
    "an extension, which is ignored": sized(SIZE + ';a="b"'),
    "a size with zeros": sized("000" + SIZE),
}


@pytest.mark.parametrize("sent", CLEAR.values(), ids=CLEAR)
def test_framing_that_is_clear_is_taken_and_the_next_request_is_the_next(sent: bytes) -> None:
    async def scene() -> None:
        async with house() as home, wire(home) as client:
            await client.send(sent + b"GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n")
            assert [(await client.answer()).status for _ in range(2)] == [201, 404]
            assert home.twin.log.head() == 1

    run(scene())


def test_a_body_that_a_handler_does_not_read_is_no_request() -> None:
    """A handler that ignores a body leaves it on the connection, where it must not be taken for a request."""

    async def scene() -> None:
        async with house() as home, wire(home) as attacker:
            head = b"GET /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(SMUGGLED)
            await attacker.send(head + SMUGGLED + b"GET /elsewhere HTTP/1.1\r\nHost: x\r\n\r\n")
            first, second = await attacker.answer(), await attacker.answer()
            assert (b"nowhere" in first.body, b"elsewhere" in second.body) == (True, True)
            assert home.twin.log.head() == 0

    run(scene())
