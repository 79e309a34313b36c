"""The client over WebSockets, and of many subscriptions over one connection, against a real edge."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

import pytest

from tests.http.harness import House, run
from tests.http.resources.test_routes import controlled
from triplewire.client import AsyncClient
from triplewire.client.feeds import Transport
from triplewire.model import format_position
from triplewire.model.errors import BadRequest, NotFound
from triplewire.storage.log.ports import LogRetention

QUERY = "SELECT ?s { ?s <urn:p> 1 }"


async def cut(at: House) -> None:
    """End every connection without a word, once it is there."""

    def here() -> int:
        return len(at.edge.events.topic) + len(at.edge.matches.topic)

    while not here():
        await asyncio.sleep(0)
    assert at.runner.server is not None
    for handler in at.runner.server.connections:
        transport = handler.transport
        assert transport is not None
        transport.abort()
    while here():
        await asyncio.sleep(0)


def test_events_are_heard_over_a_websocket_that_breaks_and_none_is_lost() -> None:
    async def scene() -> None:
        async with controlled() as at, AsyncClient(at.url, transport="websocket") as client:
            at.append(*range(5))
            async with aclosing(client.consume("test", after="earliest")) as events:
                found = [(await anext(events))["position"] for _ in range(3)]
                await cut(at)
                at.append(6)
                found += [(await anext(events))["position"] for _ in range(3)]
            assert found == [format_position(number) for number in range(1, 7)]

    run(scene())


def test_who_listens_from_now_on_loses_nothing_when_it_breaks_before_the_first_message() -> None:
    async def scene() -> None:
        async with (
            controlled() as at,
            AsyncClient(at.url, transport="websocket") as client,
            aclosing(client.consume("test")) as events,
        ):
            first = asyncio.ensure_future(anext(events))
            await cut(at)
            at.append(1)
            assert (await first)["position"] == format_position(1)

    run(scene())


@pytest.mark.parametrize("transport", ["sse", "websocket"])
def test_many_subscriptions_are_heard_in_order_until_the_last_one_ends(transport: Transport) -> None:
    async def scene() -> None:
        async with controlled() as at, AsyncClient(at.url, transport=transport) as client:
            made = [await client.subscribe(QUERY) for _ in range(3)]
            sinces = [int(each["since"], 16) for each in made]
            positions = list(at.append(1, 2))
            at.match([(position, since, None) for position in positions for since in sinces])
            heard: list[tuple[Any, Any]] = []
            async with aclosing(client.notifications([each["id"] for each in reversed(made)])) as notifications:
                async for each in notifications:
                    heard.append((each["position"], each["subscription"]))
                    if len(heard) == 2:
                        await client.unsubscribe(made[2]["id"])
                        at.match([])
                    if len(heard) == 6:
                        for other in made[:2]:
                            await client.unsubscribe(other["id"])
                        at.match([])
            assert heard == [(format_position(position), each["id"]) for position in positions for each in made]

    run(scene())


def test_a_gap_is_told() -> None:
    async def scene() -> None:
        async with controlled() as at, AsyncClient(at.url, transport="websocket") as client:
            at.append(1, 2, 3)
            at.twin.clock.advance(9)
            at.append(4)
            at.twin.log.trim(LogRetention(age=5), before=9)
            gaps: list[dict[str, Any]] = []
            async with aclosing(client.consume("test", after=format_position(1), on_gap=gaps.append)) as events:
                assert (await anext(events))["position"] == format_position(4)
            assert gaps[0]["earliest"] == format_position(4)

    run(scene())


def test_what_is_refused_is_raised() -> None:
    async def scene() -> None:
        async with controlled() as at, AsyncClient(at.url, transport="websocket") as client:
            with pytest.raises(NotFound):
                await anext(client.notifications("none"))
            with pytest.raises(BadRequest):
                await anext(client.consume("test", after="never"))

    run(scene())
