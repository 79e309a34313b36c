"""Many subscriptions in one body: each line for itself, whatever the pieces in which it comes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any

import orjson
import pytest

from tests.http.harness import House, run
from tests.http.resources.test_routes import QUERY, call, controlled
from triplewire.http.resources.bodies import SUBSCRIPTION_BODY_BYTES
from triplewire.http.resources.bulk import (
    BULK_LINES,
    BULK_LINES_MOST,
    NDJSON,
    BulkLine,
    BulkLines,
    answer_lines,
    read_batches,
)
from triplewire.http.resources.subscription_requests import parse_bulk_subscription
from triplewire.http.resources.subscriptions import SubscriptionManager
from triplewire.model import format_position
from triplewire.model.errors import StorageFull
from triplewire.storage.registry.ports import Registry
from triplewire.storage.registry.subscriptions import SUBSCRIPTION
from triplewire.testing import Twin, open_twin

SENT = {"Content-Type": NDJSON}
FORM = "SELECT ?s {{ ?s <urn:p> {} }}"


def ndjson(*values: object) -> bytes:
    return b"".join(orjson.dumps(each) + b"\n" for each in values)


def lines(pieces: Iterable[bytes]) -> list[BulkLine]:
    made = BulkLines()
    return [line for piece in pieces for line in made.feed(piece)] + list(made.end())


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_lines_come_whole_out_of_any_pieces(size: int) -> None:
    body = b'{"a":1}\n\n  \r\n{"b":2}\r\nlast'
    pieces = [body[start : start + size] for start in range(0, len(body), size)]
    found = [(line.number, (line.text or b"").strip()) for line in lines(pieces)]
    assert found == [(1, b'{"a":1}'), (4, b'{"b":2}'), (5, b"last")]


def test_a_line_that_is_too_long_is_not_held() -> None:
    long = b"x" * (SUBSCRIPTION_BODY_BYTES // 2)
    assert lines([b"a\n", long, long, long, long, b"y\nb\n"]) == [
        BulkLine(1, b"a"),
        BulkLine(2, None),
        BulkLine(3, b"b"),
    ]
    assert lines([long * 3]) == [BulkLine(1, None)]
    assert lines([long * 3 + b"\nb"]) == [BulkLine(1, None), BulkLine(2, b"b")]


def test_so_many_are_taken_at_once_and_not_more_than_the_limit() -> None:
    async def scene() -> list[int]:
        async def pieces() -> AsyncIterator[bytes]:
            for _ in range(BULK_LINES_MOST // 1_000 + 5):
                yield b"x\n" * 1_000

        return [len(each) async for each in read_batches(pieces())]

    sizes = asyncio.run(scene())
    assert max(sizes) == BULK_LINES
    assert sum(sizes) == BULK_LINES_MOST + 1


def test_a_line_over_the_limit_says_so() -> None:
    with open_twin("memory") as stores:
        line = BulkLine(BULK_LINES_MOST + 1, ndjson({"sparql": QUERY}))
        (told,) = outcomes(stores.registry, stores, [line])
        assert "at most" in told["error"]["detail"]
        assert stores.log.head() == 0


def outcomes(registry: Registry, stores: Twin, given: list[BulkLine]) -> list[dict[str, Any]]:
    service = SubscriptionManager(registry, stores.clock)
    return [
        orjson.loads(each) for each in answer_lines(parse_bulk_subscription, service.register_each, given).splitlines()
    ]


class Full:
    """A registry that takes nothing."""

    def __init__(self, registry: Registry) -> None:
        self.get, self.list, self.changes = registry.get, registry.list, registry.changes

    def put(self, entries: object) -> list[int]:
        raise StorageFull("the disk is full")


def test_where_the_disk_is_full_each_line_says_so_and_bad_ones_what_is_bad() -> None:
    with open_twin("memory") as stores:
        given = [BulkLine(1, ndjson({"sparql": QUERY})), BulkLine(2, b"{")]
        told = outcomes(Full(stores.registry), stores, given)
        assert [each["error"]["status"] for each in told] == [507, 400]


async def bulk(at: House, body: Any) -> list[dict[str, Any]]:  # noqa: ANN401
    async with at.session.post(at.url + "/subscriptions", data=body, headers=SENT) as response:
        assert (response.status, response.content_type) == (200, NDJSON), await response.text()
        return [orjson.loads(each) for each in (await response.read()).splitlines()]


def test_a_bad_line_does_not_spoil_the_others() -> None:
    async def scene() -> None:
        async with controlled() as at:
            good = [{"sparql": FORM.format(number), "kind": "event"} for number in range(3)]
            bad = [{"sparql": "SELECT"}, {"sparql": QUERY, "kind": "x"}, 5]
            body = ndjson(good[0], bad[0], good[1], bad[1]) + b"{\n\n" + ndjson(bad[2], good[2])
            told = await bulk(at, body)
            assert [each["line"] for each in told] == [1, 2, 3, 4, 5, 7, 8]
            assert [each["error"]["status"] for each in told if "error" in each] == [400, 422, 400, 400]
            assert told[3]["error"]["field"] == "kind"
            assert {"line", "column"} <= set(told[1]["error"])
            made = [each for each in told if "id" in each]
            listed = (await call(at, "GET", "/subscriptions", 200))["subscriptions"]
            assert [(each["id"], each["since"]) for each in listed] == [(each["id"], each["position"]) for each in made]
            assert [each["sparql"] for each in listed] == [each["sparql"] for each in good]

    run(scene())


def test_a_long_body_is_made_in_several_transactions_as_it_comes() -> None:
    async def scene() -> None:
        async with controlled() as at:
            count = BULK_LINES + 500
            seen = list[int]()

            async def body() -> AsyncIterator[bytes]:
                for number in range(count):
                    yield ndjson({"sparql": FORM.format(number)})
                    if number % 100 == 0:
                        seen.append(at.twin.log.head())

            told = await bulk(at, body())
            assert [each["line"] for each in told] == list(range(1, count + 1))
            assert len(at.twin.registry.list(SUBSCRIPTION)) == count
            assert told[-1]["position"] == format_position(at.twin.log.head())

    run(scene())


def test_an_empty_body_makes_nothing() -> None:
    async def scene() -> None:
        async with controlled() as at:
            assert await bulk(at, b"\n\n") == []
            assert at.twin.log.head() == 0

    run(scene())
