"""Long-polling, over sockets."""

from __future__ import annotations

import asyncio
import gzip
from typing import Any
from urllib.parse import quote

import orjson
import pytest
import zstandard

from tests.http.delivery.disconnects import LineReading, RdfReading, SseReading
from tests.http.harness import House, house, run
from triplewire.model import format_position
from triplewire.storage.log.ports import LogRetention
from triplewire.testing.samples import EXAMPLE

pytestmark = pytest.mark.usefixtures("compiled")

POLL = "/streams/test?mode=poll&format=ndjson"


async def asked(at: House, path: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
    given = {name.replace("_", "-"): value for name, value in headers.items()} | {"Accept-Encoding": "identity"}
    async with at.session.get(at.url + path, headers=given) as response:
        return response.status, {**response.headers}, await response.read()


def told(body: bytes) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in body.splitlines()]


def following(headers: dict[str, str]) -> str:
    """The address that a Link leads to."""
    address, _, relation = headers["Link"].partition("; ")
    assert relation == 'rel="next"'
    return address.strip("<>")


def test_what_there_is_is_told_at_once_and_the_next_page_after_it() -> None:
    async def scene() -> None:
        async with house() as at:
            at.append(*range(5))
            status, headers, body = await asked(at, POLL + "&after=earliest&limit=3")
            assert (status, headers["Position"], headers["Cache-Control"]) == (200, format_position(3), "no-store")
            assert [each["position"] for each in told(body)] == [
                format_position(1),
                format_position(2),
                format_position(3),
            ]
            status, headers, body = await asked(at, following(headers))
            assert [each["position"] for each in told(body)] == [format_position(4), format_position(5)]
            status, headers, body = await asked(at, following(headers) + "&wait=0")
            assert (status, headers["Position"], body) == (204, format_position(5), b"")

    run(scene())


def test_who_waits_is_told_when_something_comes() -> None:
    async def scene() -> None:
        async with house() as at:
            polls = [asyncio.create_task(asked(at, POLL)) for _ in range(3)]
            while len(at.edge.events.topic) < 3:
                await asyncio.sleep(0)
            at.append(1)
            for poll in polls:
                _, headers, body = await poll
                assert ([each["position"] for each in told(body)], headers["Position"]) == (
                    [format_position(1)],
                    format_position(1),
                )
            assert len(at.edge.events.topic) == 0

    run(scene())


def test_what_was_published_before_is_told_however_short_the_wait() -> None:
    async def scene() -> None:
        async with house() as at:
            for number in range(1, 20):
                at.append(number)
                _, _, body = await asked(at, f"{POLL}&wait=0&after={format_position(number - 1)}")
                assert [each["position"] for each in told(body)] == [format_position(number)]

    run(scene())


def test_what_was_published_before_is_told_whole_however_many_pages_it_lies_on() -> None:
    """A feed that has handed out some of it, and not yet the rest, ends a page early."""

    async def scene() -> None:
        async with house() as at, at.listen("/streams/test") as ear:
            await ear.position()
            at.append(1)
            await ear.next()
            room = at.edge.events.topic
            for number in range(2, 40):
                at.append(number)
                assert room.position < number
                _, headers, body = await asked(at, f"{POLL}&wait=0&after=earliest")
                assert [each["position"] for each in told(body)] == [
                    format_position(each) for each in range(1, number + 1)
                ]
                assert headers["Position"] == format_position(number)

    run(scene())


@pytest.mark.parametrize(
    ("format", "reading"), [("sse", SseReading), ("nquads", RdfReading), ("trig", RdfReading), ("ndjson", LineReading)]
)
def test_every_format_is_told(format: str, reading: type[SseReading | RdfReading | LineReading]) -> None:
    async def scene() -> None:
        async with house() as at:
            at.append(1, 2)
            _, _, body = await asked(at, f"/streams/test?mode=poll&format={format}&after=earliest")
            assert [each.id for each in reading().feed(body)] == [format_position(1), format_position(2)]

    run(scene())


def test_answers_are_packed_as_the_client_likes() -> None:
    async def scene() -> None:
        async with house() as at:
            at.append(*range(50))
            _, _, plain = await asked(at, POLL + "&after=earliest")
            for name, unpack in (("gzip", gzip.decompress), ("zstd", zstandard.decompress)):
                async with at.session.get(
                    at.url + POLL + "&after=earliest", headers={"Accept-Encoding": name}, auto_decompress=False
                ) as response:
                    packed = await response.read()
                    assert response.headers["Content-Encoding"] == name
                assert unpack(packed) == plain
                assert len(packed) < len(plain) / 3

    run(scene())


def test_a_subscription_is_told_to_its_end_after_which_there_is_no_next() -> None:
    async def scene() -> None:
        async with house() as at:
            made = at.subscribe()
            (position,) = at.append(1)
            at.match([(position, made.since, None)])
            path = "/subscriptions/s1/notifications?mode=poll&format=ndjson"
            _, headers, body = await asked(at, path)
            assert [each["position"] for each in told(body)] == [format_position(position)]
            at.end("s1")
            at.match([])
            _, headers, body = await asked(at, following(headers))
            assert [each["type"] for each in told(body)] == ["end"]
            assert "Link" not in headers

    run(scene())


def test_a_gap_is_told_first() -> None:
    async def scene() -> None:
        async with house() as at:
            at.append(1, 2, 3)
            at.twin.clock.advance(9)
            at.append(4)
            at.twin.log.trim(LogRetention(age=5), before=9)
            _, _, body = await asked(at, POLL + f"&after={format_position(1)}")
            assert [each["type"] for each in told(body)] == ["position", "gap", "event"]

    run(scene())


@pytest.mark.parametrize(
    "wish", ["mode=push", "mode=poll&wait=x", "mode=poll&wait=-1", "mode=poll&limit=0", "mode=poll&limit=nan"]
)
def test_what_cannot_be_is_refused(wish: str) -> None:
    async def scene() -> None:
        async with house() as at:
            assert (await at.problem("GET", f"/streams/test?{wish}"))["status"] == 400

    run(scene())


def test_what_passes_a_sieve_is_polled_too() -> None:
    async def scene() -> None:
        async with house() as at:
            at.append(1, 2, 3)
            ask = quote(f"ASK {{ ?o <{EXAMPLE}result> ?v FILTER(?v > 1) }}")
            _, headers, body = await asked(at, f"{POLL}&ask={ask}&after=earliest&wait=0")
            assert [each["position"] for each in told(body)] == [format_position(2), format_position(3)]
            at.append(0, 4)
            _, _, body = await asked(at, following(headers))
            assert [each["position"] for each in told(body)] == [format_position(5)]

    run(scene())
