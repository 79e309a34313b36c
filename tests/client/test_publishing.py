"""Publishing many events over one connection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.http.harness import house, run
from tests.http.publish.test_items import item, rows
from triplewire.client import AsyncClient, Client
from triplewire.model import Event, EventHeaders, format_position
from triplewire.model.errors import BadRequest, DuplicateId, Unavailable
from triplewire.testing.samples import event


@pytest.mark.parametrize("packed", [False, True])
def test_each_item_of_a_request_is_acknowledged_before_the_next_is_there(packed: bool) -> None:
    async def scene() -> None:
        heard: asyncio.Queue[int] = asyncio.Queue()

        async def items() -> AsyncIterator[Event | dict[str, str]]:
            for number in range(1, 4):
                yield Event(
                    f"urn:e:{number}", event(number).text, EventHeaders("roof", None, 5, extensions={"X-A": "1"})
                )
                assert await heard.get() == number
            yield {"event": "urn:e:4", "format": "text/turtle", "body": "broken"}

        async with house() as at, AsyncClient(at.url) as client:
            found = []
            async for told in client.publish_each("test", items(), compress=packed, application="app"):
                found.append(told)
                if "position" in told:
                    heard.put_nowait(told["item"])
            assert [each.get("position") for each in found] == [
                format_position(1),
                format_position(2),
                format_position(3),
                None,
                None,
            ]
            assert found[3]["problem"]["status"] == 400
            assert found[4]["end"] == {"items": 4, "events": 3, "repeated": 0, "refused": 1}
            first = rows(at)[0]
            assert (first["event"], first["text"], first["source"]) == ("urn:e:1", event(1).text, "roof")
            assert (first["application"], first["time"], first["extensions"]) == ("app", 5, '{"X-A":"1"}')

    run(scene())


def test_a_socket_publishes_and_hears() -> None:
    async def scene() -> None:
        async with house() as at, AsyncClient(at.url) as client:
            async with client.open_publisher("test") as publishing:
                under_way = [await publishing.send(event(number)) for number in range(1, 6)]
                assert [(await each)["position"] for each in under_way] == [
                    format_position(number) for number in range(1, 6)
                ]
                assert (await publishing.publish(event(1)))["repeated"] == 1
                with pytest.raises(DuplicateId, match=format_position(1)):
                    await publishing.publish(event(1, 7.5))
                with pytest.raises(BadRequest):
                    await publishing.publish(b"{")
                last = await publishing.send(event(6))
            assert last.done()
            assert len(rows(at)) == 6

    run(scene())


def test_an_edge_that_goes_leaves_nobody_waiting() -> None:
    async def scene() -> None:
        async with house() as at, AsyncClient(at.url) as client, client.open_publisher("test") as publishing:
            await publishing.publish(event(1))
            at.edge.streaming_publish.close()
            with pytest.raises(Unavailable):
                await asyncio.gather(*[publishing.publish(event(number)) for number in range(2, 200)])
        async with AsyncClient("http://127.0.0.1:9") as nobody:
            with pytest.raises(Unavailable):
                await nobody.open_publisher("test").__aenter__()

    run(scene())


def test_programs_without_a_loop_publish_too() -> None:
    def talk(url: str) -> None:
        with Client(url) as client:
            told = list(client.publish_each("test", [item(1), item(2)], "application/ztreamy-stream"))
            assert [each.get("position") for each in told] == [format_position(1), format_position(2), None]
            with client.open_publisher("test") as publishing:
                assert publishing.publish(event(3))["position"] == format_position(3)

    async def scene() -> None:
        async with house() as at:
            await asyncio.to_thread(talk, at.url)

    run(scene())
