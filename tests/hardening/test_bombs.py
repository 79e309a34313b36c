"""Threat: a few kilobytes that say that they are gigabytes: a compressed body, one that is compressed more than
once, a
compressed message over a WebSocket. Whoever inflates them whole has no memory left for others. What stops it: bodies
are inflated in small pieces, of which no more are taken than a body may have; only one coding is taken; messages
have
the same limit.
"""

from __future__ import annotations

import asyncio
import base64
import gzip
import os
import zlib
from collections.abc import Callable

import aiohttp
import pytest
import zstandard

from tests.hardening.wires import Wire, alive, wire
from tests.http.harness import body, house, run
from triplewire.rdf.checks import BODY_BYTES
from triplewire.testing.samples import event

TURTLE = {"Content-Type": "text/turtle"}
OVER = BODY_BYTES + 1
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "zstd": zstandard.compress,
}


@pytest.mark.parametrize("coding", PACKERS)
def test_a_bomb_is_refused_at_the_limit(coding: str) -> None:
    async def scene() -> None:
        async with house() as home:
            bomb = PACKERS[coding](b"#" * OVER) * 20
            told = await home.problem("POST", "/streams/a", data=bomb, headers={**TURTLE, "Content-Encoding": coding})
            assert (told["status"], told["limit"]) == (413, BODY_BYTES)
            await alive(home)

    run(scene())


@pytest.mark.parametrize("codings", ["gzip, gzip", "gzip,deflate", "deflate, zstd", "br"])
def test_codings_of_codings_are_not_taken(codings: str) -> None:
    async def scene() -> None:
        async with house() as home:
            bomb = gzip.compress(gzip.compress(b"#" * OVER))
            told = await home.problem("POST", "/streams/a", data=bomb, headers={**TURTLE, "Content-Encoding": codings})
            assert (told["status"], told["known"]) == (415, ["gzip", "deflate", "zstd"])

    run(scene())


def test_a_bomb_inside_of_a_body_stays_packed() -> None:
    """One coding is taken off, and what is inside is no RDF."""

    async def scene() -> None:
        async with house() as home:
            bomb = gzip.compress(gzip.compress(b"#" * OVER))
            told = await home.problem("POST", "/streams/a", data=bomb, headers={**TURTLE, "Content-Encoding": "gzip"})
            assert told["status"] == 400

    run(scene())


@pytest.mark.parametrize("coding", PACKERS)
def test_who_keeps_publishing_sends_no_item_that_is_larger(coding: str) -> None:
    async def scene() -> None:
        async with house() as home:
            bomb = PACKERS[coding](b'{"body":"' + b"a" * OVER)
            headers = {"Content-Type": "application/x-ndjson", "Content-Encoding": coding}
            async with home.session.post(home.url + "/streams/a?ack=each", data=bomb, headers=headers) as response:
                assert b"larger than the limit" in await response.read()
            assert home.twin.log.head() == 0
            await alive(home)

    run(scene())


def frame(payload: bytes, first: int) -> bytes:
    """Of a client: a message that is packed, and that says that it is whole."""
    mask = os.urandom(4)
    masked = bytes(byte ^ mask[number % 4] for number, byte in enumerate(payload))
    return bytes([first, 0x80 | 127]) + len(payload).to_bytes(8, "big") + mask + masked


async def shaken(attacker: Wire, path: str) -> bytes:
    """A WebSocket whose messages may be packed."""
    key = base64.b64encode(os.urandom(16)).decode()
    head = (
        f"GET {path} HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    )
    packed = "Sec-WebSocket-Extensions: permessage-deflate\r\n"
    await attacker.send(f"{head}{packed}Sec-WebSocket-Key: {key}\r\n\r\n".encode())
    return await attacker.reader.readuntil(b"\r\n\r\n")


@pytest.mark.parametrize("path", ["/streams/a/publish", "/streams/a"])
def test_a_message_that_is_a_bomb_ends_its_connection(path: str) -> None:
    async def scene() -> None:
        async with house() as home, wire(home) as attacker:
            told = await shaken(attacker, path)
            assert told.startswith(b"HTTP/1.1 101")
            packer = zlib.compressobj(wbits=-15)
            bomb = packer.compress(b"a" * 4 * OVER) + packer.flush(zlib.Z_SYNC_FLUSH)
            await attacker.send(frame(bomb[:-4], 0xC1))
            async with asyncio.timeout(20):
                await attacker.rest()
            assert home.twin.log.head() == 0
            await alive(home)

    run(scene())


def test_a_message_within_the_limit_is_taken_packed() -> None:
    async def scene() -> None:
        async with (
            house() as home,
            aiohttp.ClientSession() as session,
            session.ws_connect(home.url + "/streams/a/publish?type=application/n-quads", compress=15) as socket,
        ):
            await socket.send_bytes(body(event(1)))
            await socket.receive_json()
            assert home.twin.log.head() == 1

    run(scene())
