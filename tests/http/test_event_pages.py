"""Reading the log in pages, over sockets."""

from __future__ import annotations

import pytest

from tests.http.harness import house, run
from tests.http.test_consume import publish
from triplewire.client import AsyncClient
from triplewire.http.app import EdgeLimits
from triplewire.model import END, MATCHED_COLUMNS, START
from triplewire.model.errors import BadRequest
from triplewire.storage.log.ports import LogRetention


def test_a_page_has_what_lies_between_two_positions() -> None:
    async def scene() -> None:
        async with house() as at, AsyncClient(at.url) as client:
            await publish(at, 1, 2, 3)
            await publish(at, 4, stream="other")
            page = await client.page(after=1, until=3)
            assert page.events.column_names == list(MATCHED_COLUMNS)
            assert (page.events["position"].to_pylist(), page.position, page.earliest) == ([2, 3], 3, None)
            assert (await client.page()).position == 4
            other = await client.page(stream="other")
            assert (other.events["position"].to_pylist(), other.position) == ([4], 4)
            past = await client.page(after=9)
            assert (past.events.num_rows, past.position) == (0, 9)

    run(scene())


def test_pages_are_bounded_and_go_on() -> None:
    async def scene() -> None:
        async with house(limits=EdgeLimits(page_events=2)) as at, AsyncClient(at.url) as client:
            await publish(at, 1, 2, 3)
            first = await client.page()
            second = await client.page(after=first.position)
            assert (first.position, second.position) == (2, 3)
            assert second.events["position"].to_pylist() == [3]

    run(scene())


def test_who_asks_for_what_is_gone_is_told() -> None:
    async def scene() -> None:
        async with house() as at, AsyncClient(at.url) as client:
            await publish(at, 1, 2, 3)
            at.twin.log.trim(LogRetention(age=0.0, size=1), 3)
            assert (await client.page(after=1)).earliest == 3
            assert (await client.page(START, END)).earliest is None

    run(scene())


def test_what_is_no_position_is_refused() -> None:
    async def scene() -> None:
        async with house() as at, AsyncClient(at.url) as client:
            with pytest.raises(BadRequest, match="'7' is not a position"):
                await client._call("GET", "/events", params={"through": "7"})
            with pytest.raises(BadRequest, match="no name"):
                await client.page(stream="no name")

    run(scene())
