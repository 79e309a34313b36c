"""Listeners who are led to a repeater: at the door, or in the middle of a stream; each hears every event once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.http.harness import House, data, house, run
from tests.network.edges import at_once, mirror, relayed
from triplewire.client import AsyncClient
from triplewire.http.app import EdgeLimits, EdgeParts
from triplewire.http.delivery.options import LingerTimes
from triplewire.http.peers.load_balancing import MOVE_SPREAD_MILLISECONDS, OverloadDetector
from triplewire.http.stream_filters.parameters import StreamView
from triplewire.model.clock import ManualClock
from triplewire.testing import event


@dataclass
class Tree:
    """An edge that a test strains, and one below it that has the same stream."""

    above: House
    below: House
    share: list[float]
    address: str
    carrying: AsyncExitStack
    """Closed, it stops the relay between them."""

    def strain(self) -> None:
        self.share[0] = 1.0

    def relax(self) -> None:
        self.share[0] = 0.0

    async def announce(self, **fields: Any) -> None:  # noqa: ANN401
        told = {"streams": {"test": self.address}, "load": 0.1, "free": 1_000, **fields}
        async with self.above.session.put(f"{self.above.url}/repeaters/r1", json=told) as response:
            assert response.status == 204, await response.text()
        # From now on the edge keeps the ids by which listeners can be moved.
        self.above.edge.migration.step()


@asynccontextmanager
async def tree(folder: Path) -> AsyncIterator[Tree]:
    share = [0.0]

    def strained(parts: EdgeParts) -> EdgeParts:
        return replace(parts, overload=OverloadDetector(lambda: share[0], lambda: 0.0, ManualClock().ticks))

    async with AsyncExitStack() as open:
        limits = EdgeLimits(chance=lambda: 0.0)
        above = await open.enter_async_context(house(change=strained, limits=limits))
        below = await open.enter_async_context(house())
        carrying = await open.enter_async_context(AsyncExitStack())
        await carrying.enter_async_context(relayed(mirror(above), folder, below))
        made = Tree(above, below, share, f"{below.url}/streams/test", carrying)
        await made.announce()
        yield made


async def redirected(at: House, path: str, **headers: str) -> tuple[int, str | None, str | None]:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    async with at.session.get(at.url + path, headers=given, allow_redirects=False) as response:
        return response.status, response.headers.get("Location"), response.headers.get("Link")


async def moved(at: Tree, heard: AsyncIterator[dict[str, Any]]) -> list[str]:
    """What a client heard until it was moved: once it is done with the past."""
    found: list[str] = []
    at.strain()
    while not at.above.edge.migration.step():
        at.above.append(len(found))
        found.append((await anext(heard))["event"])
    at.relax()
    return found


def test_a_client_is_moved_in_the_middle_and_hears_everything_once(tmp_path: Path) -> None:
    async def scene() -> None:
        async with tree(tmp_path) as at, AsyncClient(at.above.url) as client:
            heard = client.consume("test", "earliest")
            found = await moved(at, heard)
            count = len(found)
            at.above.append(*range(count, count + 10))
            found += [(await anext(heard))["event"] for _ in range(10)]
            assert at.below.edge.topics.count()["streams"] == 1
            await heard.aclose()
            assert found == [event(number).id for number in range(count + 10)]

    run(scene())


def test_a_client_comes_home_when_the_other_edge_goes(tmp_path: Path) -> None:
    async def scene() -> None:
        async with tree(tmp_path) as at, AsyncClient(at.above.url) as client:
            heard = client.consume("test", "earliest")
            found = await moved(at, heard)
            count = len(found)
            at.above.append(count)
            found += [(await anext(heard))["event"]]
            assert at.below.edge.topics.count()["streams"] == 1
            await at.carrying.aclose()
            await at.below.runner.cleanup()
            at.above.append(count + 1, count + 2)
            found += [(await anext(heard))["event"] for _ in range(2)]
            await heard.aclose()
            assert found == [event(number).id for number in range(count + 3)]

    run(scene())


def test_the_last_message_says_where_to_go_on(tmp_path: Path) -> None:
    async def scene() -> None:
        async with tree(tmp_path) as at, at.above.listen("/streams/test?after=earliest") as ear:
            at.strain()
            while not at.above.edge.migration.step():
                (first,) = at.above.append(1)
                while (await ear.next()).event != "event":
                    pass
            (last,) = await ear.rest()
            told = data(last)
            assert (last.event, int(told["position"], 16)) == ("move", first)
            assert 0 <= told["retry"] <= MOVE_SPREAD_MILLISECONDS
            address, query = told["location"].split("?")
            assert address == at.address
            assert parse_qs(query) == {"format": ["sse"], "after": [event(1).id], "moved": ["1"]}

    run(scene())


def test_relays_and_who_listens_where_nobody_repeats_are_not_moved(tmp_path: Path) -> None:
    async def scene() -> None:
        async with tree(tmp_path) as at, at.above.listen("/streams/other") as ear:
            await ear.position()
            at.above.append(1)
            at.above.append(2, stream="other")
            assert data(await ear.next())["event"] == event(2).id
            at.strain()
            assert at.above.edge.migration.step() == 0

    run(scene())


def test_newcomers_are_led_to_the_repeater(tmp_path: Path) -> None:
    async def scene() -> None:
        async with tree(tmp_path) as at:
            async with at.above.listen("/streams/test") as ear:
                assert ear.response.headers["Link"] == f'<{at.address}>; rel="alternate"'
            positions = at.above.append(1, 2)
            at.strain()
            status, location, link = await redirected(at.above, "/streams/test?source=roof")
            assert (status, link) == (307, f'<{at.address}>; rel="alternate"')
            assert parse_qs(urlsplit(location or "").query).keys() >= {"source", "moved"}
            token = f"{positions[0]:016x}"
            for path, headers in (("?after=" + token, {}), ("?after=now", {"Last_Event_ID": token})):
                status, location, _ = await redirected(at.above, f"/streams/test{path}", **headers)
                assert status == 307
                assert parse_qs(urlsplit(location or "").query)["after"] == [event(1).id]
            async with AsyncClient(at.above.url) as client:
                heard = client.consume("test", token)
                assert (await anext(heard))["event"] == event(2).id
                await heard.aclose()

    run(scene())


def test_who_cannot_be_led_without_loss_is_taken(tmp_path: Path) -> None:
    async def scene() -> None:
        async with tree(tmp_path) as at:
            at.above.append(1)
            (other,) = at.above.append(2, stream="other")
            at.strain()
            for path in ("?after=earliest", f"?after={other:016x}", "?stay=1"):
                async with at.above.listen(f"/streams/test{path}"):
                    pass
            async with at.above.listen("/streams/test", Relay_Id="r1"):
                pass
            await at.announce(load=1.0)
            async with at.above.listen("/streams/test") as ear:
                assert not [each for each in ear.response.headers.getall("Link") if 'rel="alternate"' in each]

    run(scene())


def test_a_listener_waits_for_the_event_that_it_comes_from(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house(limits=EdgeLimits(sleep=at_once)) as at:
            problem = await at.problem("GET", f"/streams/test?after={event(1).id}&moved=1")
            assert problem["status"] == 404
        looked, there = asyncio.Event(), asyncio.Event()

        async def look(seconds: float) -> None:
            looked.set()
            await there.wait()

        async with house(limits=EdgeLimits(sleep=look)) as at:

            async def listens() -> str:
                async with at.listen(f"/streams/test?after={event(2).id}&moved=1", Last_Event_ID="0" * 16) as ear:
                    while (message := await ear.next()).event != "event":
                        pass
                    assert message.id == data(message)["event"]
                    return message.id or ""

            listening = asyncio.create_task(listens())
            await looked.wait()
            at.append(1, 2, 3)
            there.set()
            assert await listening == event(3).id

    run(scene())


@pytest.mark.parametrize(
    ("id", "told", "field"),
    [
        ("r1", {"streams": {}}, "streams"),
        ("r1", {"streams": {"s": "ftp://x/streams/s"}}, "streams"),
        ("r1", {"streams": {"s": "http://x/streams/s?a=b"}}, "streams"),
        ("r1", {"streams": {"s": 'http://x/"\r\n'}}, "streams"),
        ("r1", {"streams": {"s": "http://x/streams/s"}, "load": 2}, "load"),
        ("r1", {"streams": {"s": "http://x/streams/s"}, "free": -1}, "free"),
        ("r1", [], None),
        ("no id", {"streams": {"s": "http://x/streams/s"}}, None),
        ("r1", {"streams": {"no name": "http://x/streams/s"}}, None),
    ],
)
def test_an_announcement_that_cannot_be_is_refused(id: str, told: object, field: str | None) -> None:
    async def scene() -> None:
        async with house() as at:
            problem = await at.problem("PUT", f"/repeaters/{id}", json=told)
            assert problem["status"] == (400 if field is None else 422)
            assert problem.get("field") == field
            async with at.session.get(f"{at.url}/repeaters") as response:
                assert await response.json() == {"repeaters": []}

    run(scene())


def test_who_would_take_positions_to_the_wrong_edge_is_not_redirected(tmp_path: Path) -> None:
    async def scene() -> None:
        async with tree(tmp_path) as at:
            at.above.append(1)
            at.strain()
            for path in ("?format=ndjson", "?format=trig"):
                told = await redirected(at.above, f"/streams/test{path}")
                assert told == (200, None, f'<{at.address}>; rel="alternate"')
            status, location, _ = await redirected(at.above, "/streams/test?mode=poll&after=earliest")
            assert (status, location) == (200, None)

    run(scene())


def test_a_relay_does_not_wait_for_a_window() -> None:
    async def scene() -> None:
        async with (
            house(change=lambda parts: replace(parts, linger=LingerTimes(10.0))) as at,
            at.listen("/streams/test", Relay_Id="r1") as relay,
            at.listen("/streams/test") as other,
        ):
            await relay.position()
            await other.position()
            at.append(1)
            assert data(await relay.next())["event"] == event(1).id
            (first, *_) = at.edge.events.topic.channels(StreamView("test"))
            assert (first.options.priority, first.options.linger) == (True, 0.0)

    run(scene())


def test_a_token_in_the_address_is_not_sent_on_to_another_edge(tmp_path: Path) -> None:
    """Threat: a repeater, which anybody may run, is shown what lets into the edge above."""

    async def scene() -> None:
        async with tree(tmp_path) as at:
            at.strain()
            status, location, _ = await redirected(at.above, "/streams/test?format=sse&access_token=s3cret")
            assert status == 307
            assert location is not None
            assert location.startswith(at.address)
            assert "s3cret" not in location

    run(scene())
