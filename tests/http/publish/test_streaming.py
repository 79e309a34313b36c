"""Requests and WebSockets that keep publishing."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import aiohttp
import orjson
import pytest
from websockets.asyncio.client import connect

from tests.http.harness import House, body, house, run
from tests.http.publish.test_items import item, rows
from triplewire.http.app import EdgeLimits, EdgeParts
from triplewire.model import format_position
from triplewire.storage.log.group_commit import GroupCommit
from triplewire.testing import Fault, FaultyLog, GatedLog
from triplewire.testing.samples import event

TYPES = {"ztreamy": "application/ztreamy-stream", "ndjson": "application/x-ndjson", "nquads": "application/n-quads"}


class Hand:
    """A body that the test goes on writing, and the lines of the answer."""

    def __init__(self, first: bytes) -> None:
        self.first = first
        self._pieces: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.response: aiohttp.ClientResponse | None = None

    def send(self, piece: bytes | None) -> None:
        self._pieces.put_nowait(piece)

    async def body(self) -> AsyncIterator[bytes]:
        # The client sends the head of its request with the first piece.
        yield self.first
        while (piece := await self._pieces.get()) is not None:
            yield piece

    async def next(self) -> dict[str, Any]:
        assert self.response is not None
        line = await self.response.content.readline()
        assert line, "the answer has ended"
        found: dict[str, Any] = orjson.loads(line)
        return found


@asynccontextmanager
async def publishing(at: House, kind: str, **headers: str) -> AsyncIterator[Hand]:
    hand = Hand(gzip.compress(b"\n") if headers else b"\n")
    sent = {"Content-Type": TYPES[kind], **headers}
    posted = at.session.post(at.url + "/streams/test?ack=each", data=hand.body(), headers=sent)
    async with posted as response:
        assert response.status == 200, await response.text()
        hand.response = response
        assert await hand.next() == {"begin": {"stream": "test"}}
        yield hand
        hand.send(None)


def line(number: int) -> bytes:
    return (
        orjson.dumps({"event": f"urn:e:{number}", "format": "text/turtle", "body": f"<urn:s> <urn:p> {number} ."})
        + b"\n"
    )


def written(kind: str, number: int) -> bytes:
    """An item after which it is known that it is whole."""
    if kind == "nquads":
        return body(event(number)) + b"\n#\n"
    return item(number) if kind == "ztreamy" else line(number)


@pytest.mark.parametrize("kind", TYPES)
def test_each_item_is_acknowledged_while_the_request_goes_on(kind: str) -> None:
    async def scene() -> None:
        async with house() as at, publishing(at, kind) as hand:
            for number in range(1, 4):
                hand.send(written(kind, number))
                assert await hand.next() == {"item": number, "events": 1, "position": format_position(number)}
            hand.send(written(kind, 2))
            assert await hand.next() == {"item": 4, "events": 1, "position": format_position(2), "repeated": 1}
            hand.send(None)
            assert await hand.next() == {"end": {"items": 4, "events": 4, "repeated": 1, "refused": 0}}
            assert len(rows(at)) == 3

    run(scene())


def test_a_compressed_body_goes_on_too() -> None:
    async def scene() -> None:
        packer = zlib.compressobj(wbits=31)
        async with house() as at, publishing(at, "ndjson", **{"Content-Encoding": "gzip"}) as hand:
            for number in range(1, 4):
                hand.send(packer.compress(line(number)) + packer.flush(zlib.Z_SYNC_FLUSH))
                assert (await hand.next())["position"] == format_position(number)
            hand.send(gzip.compress(b"")[:5])
            hand.send(None)
            assert "is not gzip" in (await hand.next())["problem"]["detail"]

    run(scene())


def test_a_refused_item_is_told_and_the_next_is_taken() -> None:
    async def scene() -> None:
        async with house() as at, publishing(at, "ndjson") as hand:
            hand.send(b"{\n" + line(1))
            told = await hand.next()
            assert (told["item"], told["line"], told["problem"]["status"]) == (1, 2, 400)
            assert (await hand.next())["position"] == format_position(1)
            hand.send(line(1).replace(b"> 1 .", b"> 7 ."))
            assert (await hand.next())["problem"]["position"] == format_position(1)
            hand.send(None)
            assert (await hand.next())["end"]["refused"] == 2

    run(scene())


def test_where_items_cannot_be_told_apart_any_more_it_ends() -> None:
    async def scene() -> None:
        async with house() as at, publishing(at, "ztreamy") as hand:
            hand.send(item(1) + b"Body-Length: -1\n\n" + item(2))
            assert (await hand.next())["position"] == format_position(1)
            assert "Body-Length" in (await hand.next())["problem"]["detail"]
            assert (await hand.next())["end"] == {"items": 2, "events": 1, "repeated": 0, "refused": 1}
            assert len(rows(at)) == 1

    run(scene())


def test_what_the_disk_refused_is_told_item_by_item() -> None:
    def change(parts: EdgeParts) -> EdgeParts:
        return replace(parts, commits=GroupCommit(FaultyLog(parts.log, [Fault.FULL])))

    async def scene() -> None:
        async with house(change=change) as at, publishing(at, "ndjson") as hand:
            hand.send(line(1) + b"{\n")
            assert [(await hand.next())["problem"]["status"] for _ in range(2)] == [507, 400]
            hand.send(line(1))
            assert (await hand.next())["position"] == format_position(1)

    run(scene())


def test_only_so_much_is_under_way_at_a_time() -> None:
    """The disk does not answer: after some pieces nothing more is read, and the sender waits."""
    gates: list[GatedLog] = []

    def change(parts: EdgeParts) -> EdgeParts:
        gates.append(GatedLog(parts.log))
        return replace(parts, commits=GroupCommit(gates[0]))

    async def scene() -> None:
        async with house(change=change) as at, publishing(at, "ndjson") as hand:
            piece = b"".join(line(number) for number in range(1_000))
            for _ in range(400):
                hand.send(piece)
            while hand._pieces.qsize() > 350:
                await asyncio.sleep(0)
            await asyncio.to_thread(gates[0].arrived.wait)
            while (before := hand._pieces.qsize()) and not await _still(hand, before):
                pass
            assert hand._pieces.qsize() > 0
            gates[0].gate.set()
            told = [await hand.next() for _ in range(3_000)]
            assert [each["item"] for each in told] == list(range(1, 3_001))

    run(scene())


async def _still(hand: Hand, before: int) -> bool:
    """Whether nothing more is taken from the sender, however often others have their turn."""
    for _ in range(2_000):
        await asyncio.sleep(0)
    return hand._pieces.qsize() == before


def test_an_edge_that_closes_acknowledges_what_it_has() -> None:
    async def scene() -> None:
        async with house() as at, publishing(at, "ndjson") as hand:
            hand.send(line(1))
            assert (await hand.next())["position"] == format_position(1)
            async with at.session.ws_connect(at.url + "/streams/test/publish") as socket:
                await socket.send_str(line(2).decode())
                assert (await socket.receive_json())["position"] == format_position(2)
                at.edge.streaming_publish.close()
                assert (await hand.next())["end"]["items"] == 1
                assert (await socket.receive()).type is aiohttp.WSMsgType.CLOSE
                assert socket.close_code == aiohttp.WSCloseCode.GOING_AWAY

    run(scene())


@pytest.mark.parametrize(
    ("media_type", "message"),
    [
        ("application/x-ndjson", line(1).decode()),
        ("application/ztreamy-stream", item(1)),
        ("text/turtle", "<urn:s> <urn:p> 1 ."),
        ("application/n-quads", body(event(1))),
        ("text/csv", b"a,b\n1,2"),
    ],
)
def test_each_message_of_a_socket_is_acknowledged(media_type: str, message: str | bytes) -> None:
    async def scene() -> None:
        async with (
            house() as at,
            at.session.ws_connect(f"{at.url}/streams/test/publish?type={media_type}") as socket,
        ):
            await (socket.send_str(message) if isinstance(message, str) else socket.send_bytes(message))
            assert await socket.receive_json() == {"item": 1, "events": 1, "position": format_position(1)}
            if media_type != "text/csv":
                await socket.send_bytes(b"\xff broken")
                assert (await socket.receive_json())["problem"]["status"] == 400
            await socket.close()
            assert len(rows(at)) == 1

    run(scene())


def test_there_are_only_so_many_publishers_and_foreign_pages_are_none() -> None:
    async def scene() -> None:
        async with house(limits=EdgeLimits(publishers=0)) as at:
            told = await at.problem(
                "POST", "/streams/test?ack=each", data=b"", headers={"Content-Type": TYPES["ndjson"]}
            )
            assert told["status"] == 503
            told = await at.problem("GET", "/streams/test/publish", headers={"Origin": "https://evil.example"})
            assert told["status"] == 403
            told = await at.problem("POST", "/streams/test?ack=each", data=b"", headers={"Content-Type": "text/turtle"})
            assert told["status"] == 415

    run(scene())


def test_curl_publishes_a_body_that_does_not_end() -> None:
    async def scene() -> None:
        async with house() as at:
            headers = ("-H", f"Content-Type: {TYPES['ndjson']}", "-H", "Expect:")
            url = at.url + "/streams/test?ack=each"
            pipe = asyncio.subprocess.PIPE
            curl = await asyncio.create_subprocess_exec(
                "curl", "-sNT", ".", "-X", "POST", *headers, url, stdin=pipe, stdout=pipe
            )
            assert curl.stdin is not None
            assert curl.stdout is not None
            curl.stdin.write(line(1))
            assert orjson.loads(await curl.stdout.readline()) == {"begin": {"stream": "test"}}
            assert orjson.loads(await curl.stdout.readline())["position"] == format_position(1)
            curl.stdin.write(line(2))
            assert orjson.loads(await curl.stdout.readline())["position"] == format_position(2)
            curl.stdin.close()
            assert orjson.loads(await curl.stdout.readline())["end"]["items"] == 2
            assert await curl.wait() == 0

    run(scene())


def test_the_websockets_package_publishes() -> None:
    async def scene() -> None:
        async with house() as at:
            url = at.url.replace("http", "ws") + "/streams/test/publish"
            async with connect(url) as socket:
                for number in range(1, 4):
                    await socket.send(line(number).decode())
                told = [orjson.loads(await socket.recv()) for _ in range(3)]
            assert [each["position"] for each in told] == [format_position(1), format_position(2), format_position(3)]

    run(scene())
