"""Threat: a client opens connections and lets its requests trickle, or does not read its answers. Each costs it next
to
nothing, and an edge a connection and memory, until there are none left for others. What stops it: a head, a body and
an
answer that waits to be read have a time, which is looked at by the edge's clock; what is kept open on purpose has a
limit in number instead.
"""

from __future__ import annotations

import asyncio

import pytest

from tests.hardening.wires import Wire, alive, wire
from tests.http.harness import House, body, house, run
from triplewire.http.rate_limits import BODY_RATE, BODY_SECONDS, HEAD_SECONDS, READING_SECONDS
from triplewire.testing.samples import event

HEAD = b"POST /streams/a HTTP/1.1\r\nHost: x\r\nContent-Type: application/n-quads\r\n"


async def look(home: House, seconds: float) -> None:
    """Let time go by, and have the edge look at its connections; before that, what was sent arrives."""
    assert home.runner.front is not None
    home.runner.front.check_connections()
    home.twin.clock.advance(seconds)
    home.runner.front.check_connections()


async def arrived(home: House, connections: int = 1) -> None:
    front = home.runner.front
    while front is None or len(front.connections) < connections:
        await asyncio.sleep(0)
    await alive(home)


@pytest.mark.parametrize(
    "sent", [b"", b"G", b"GET / HTTP/1.1\r\nHost: x\r\nX-A: b\r\n"], ids=["nothing", "a byte", "most"]
)
def test_a_head_that_does_not_end_is_given_up(sent: bytes) -> None:
    async def scene() -> None:
        async with house() as home, wire(home) as slow:
            await slow.send(sent)
            await arrived(home)
            await look(home, HEAD_SECONDS + 1)
            told = await slow.answer()
            assert (told.status, await slow.rest()) == (408, b"")
            assert f"{HEAD_SECONDS:g} seconds" in told.problem["detail"]
            await alive(home)

    run(scene())


def test_a_byte_now_and_then_does_not_help() -> None:
    async def scene() -> None:
        async with house() as home, wire(home) as slow:
            await slow.send(b"GET / HTTP/1.1\r\nX-A: ")
            await arrived(home)
            await look(home, HEAD_SECONDS - 1)
            await slow.send(b"b")
            await alive(home)
            await look(home, 2)
            assert (await slow.answer()).status == 408

    run(scene())


def test_the_second_head_of_a_connection_has_the_same_time() -> None:
    async def scene() -> None:
        async with house() as home, wire(home) as slow:
            await slow.send(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
            await slow.answer()
            await look(home, 2 * HEAD_SECONDS)
            await slow.send(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
            assert (await slow.answer()).status != 408, "a connection that is idle between requests is no attack"
            await slow.send(b"GET /hea")
            await alive(home)
            await look(home, HEAD_SECONDS + 1)
            assert (await slow.answer()).status == 408

    run(scene())


@pytest.mark.parametrize("framing", [b"Content-Length: 100000", b"Transfer-Encoding: chunked"])
def test_a_body_that_trickles_is_given_up(framing: bytes) -> None:
    async def scene() -> None:
        async with house() as home, wire(home) as slow:
            await slow.send(HEAD + framing + b"\r\n\r\n" + (b"5\r\n<x:s>\r\n" if b"chunked" in framing else b"<x:s>"))
            await arrived(home)
            await look(home, BODY_SECONDS + 1)
            told = await slow.answer()
            assert (told.status, await slow.rest()) == (408, b"")
            assert str(BODY_RATE) in told.problem["detail"]
            assert home.twin.log.head() == 0
            await alive(home)

    run(scene())


def test_a_long_body_has_longer() -> None:
    async def scene() -> None:
        async with house() as home, wire(home) as steady:
            first, last = b"#" * 10 * BODY_RATE + b"\n", body(event(1))
            await steady.send(HEAD + b"Content-Length: %d\r\n\r\n" % (len(first) + len(last)) + first)
            await arrived(home)
            await look(home, BODY_SECONDS + 9)
            await steady.send(last)
            assert (await steady.answer()).status == 201

    run(scene())


def test_who_keeps_publishing_may_be_quiet() -> None:
    async def scene() -> None:
        async with house() as home, wire(home) as quiet:
            await quiet.send(HEAD.replace(b"/a ", b"/a?ack=each ") + b"Transfer-Encoding: chunked\r\n\r\n")
            await quiet.reader.readuntil(b"begin")
            await look(home, 100 * BODY_SECONDS)
            await quiet.send(b"0\r\n\r\n")
            assert b'"end"' in await quiet.reader.readuntil(b'"end"')

    run(scene())


def test_an_answer_that_nobody_reads_is_given_up() -> None:
    async def scene() -> None:
        async with house() as home:
            for number in range(20):
                home.append(*range(200 * number, 200 * (number + 1)))
            async with wire(home) as deaf:
                await _fill(home, deaf)
                await look(home, READING_SECONDS - 1)
                assert home.runner.front is not None
                assert len(home.runner.front.connections) == 2
                home.twin.clock.advance(2)
                home.runner.front.check_connections()
                while len(home.runner.front.connections) > 1:
                    await asyncio.sleep(0)
                await alive(home)

    run(scene())


async def _fill(home: House, deaf: Wire) -> None:
    """Ask for more than the sockets between the two can hold, until the edge has to keep some."""
    front = home.runner.front
    assert front is not None
    await arrived(home)
    while not any(each.transport and each.transport.get_write_buffer_size() for each in front.connections):
        await deaf.send(b"GET /events?limit=4000 HTTP/1.1\r\nHost: x\r\n\r\n")
        await asyncio.sleep(0)
    before = -1
    while (
        kept := sum(each.transport.get_write_buffer_size() for each in front.connections if each.transport)
    ) > before:
        before = kept
        await alive(home)
