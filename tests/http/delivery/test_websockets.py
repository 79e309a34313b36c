"""WebSockets: one message in one frame, with and without acknowledgements."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import aiohttp
import orjson
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from tests.http.harness import House, body, house, run
from triplewire.model import format_position
from triplewire.storage.log.ports import LogRetention
from triplewire.testing.samples import event

Json = dict[str, Any]


class Phone:
    """A client of the `websockets` package."""

    def __init__(self, wire: Any) -> None:  # noqa: ANN401
        self._wire = wire

    async def next(self) -> Json:
        found: Json = orjson.loads(await self._wire.recv())
        return found

    async def take(self, count: int) -> list[Json]:
        return [await self.next() for _ in range(count)]

    async def say(self, **said: object) -> None:
        await self._wire.send(orjson.dumps(said).decode())

    async def say_text(self, text: str | bytes) -> None:
        await self._wire.send(text)

    async def quiet(self) -> None:
        """Nothing was on its way: what is asked is answered next."""
        await self.say(nothing="to do")
        assert (await self.next())["type"] == "problem"

    async def rest(self) -> list[Json]:
        found = []
        try:
            while True:
                found.append(await self.next())
        except ConnectionClosed:
            return found


@asynccontextmanager
async def called(at: House, path: str) -> AsyncIterator[Phone]:
    """A conversation whose first message tells the position."""
    async with connect(at.url.replace("http", "ws", 1) + path, max_size=None) as wire:
        phone = Phone(wire)
        first = await phone.next()
        assert (first["type"], "missed" in first) == ("position", True)
        yield phone


def positions(told: list[Json]) -> list[str]:
    return [each["position"] for each in told]


def test_a_stream_is_told_as_json_the_past_and_then_the_present() -> None:
    async def scene() -> None:
        async with house() as at:
            at.append(1, 2)
            async with called(at, "/streams/test?after=earliest") as phone:
                first, second = await phone.take(2)
                assert (first["type"], first["position"], second["position"]) == (
                    "event",
                    format_position(1),
                    format_position(2),
                )
                assert first["body"] == body(event(1)).decode()
                at.append(3)
                assert (await phone.next())["position"] == format_position(3)

    run(scene())


def test_many_get_the_same_and_who_comes_later_too() -> None:
    async def scene() -> None:
        async with house() as at, called(at, "/streams/test") as one, called(at, "/streams/test") as other:
            at.append(1)
            assert await one.next() == await other.next()
            async with called(at, f"/streams/test?after={format_position(0)}") as late:
                at.append(2)
                assert positions(await late.take(2)) == [format_position(1), format_position(2)]
            assert (await one.next())["position"] == format_position(2)

    run(scene())


def test_large_messages_are_framed_too() -> None:
    async def scene() -> None:
        async with house() as at, called(at, "/streams/test?linger=0") as phone:
            for size in (10, 200, 70_000):
                text = f'<urn:s> <urn:p> "{"x" * size}" .'
                headers = {"Content-Type": "text/turtle"}
                async with at.session.post(f"{at.url}/streams/test", data=text, headers=headers) as response:
                    assert response.status == 201
                assert "x" * size in (await phone.next())["body"]

    run(scene())


def test_a_subscription_is_told_until_its_end() -> None:
    async def scene() -> None:
        async with house() as at:
            made = at.subscribe()
            async with called(at, "/subscriptions/s1/notifications") as phone:
                (position,) = at.append(1)
                at.match([(position, made.since, None)])
                told = await phone.next()
                assert (told["type"], told["subscription"], told["position"]) == (
                    "notification",
                    "s1",
                    format_position(position),
                )
                at.end("s1")
                at.match([])
                assert [each["type"] for each in await phone.rest()] == ["end"]

    run(scene())


@pytest.mark.parametrize("path", ["/streams/test?ack=1&window=2", "/subscriptions/s1/notifications?ack=1&window=2"])
def test_who_acknowledges_is_sent_no_more_than_the_window(path: str) -> None:
    async def scene() -> None:
        async with house() as at:
            made = at.subscribe()
            found = list(at.append(*range(5)))
            at.match([(each, made.since, None) for each in found])
            async with called(at, f"{path}&after={format_position(made.since)}") as phone:
                assert positions(await phone.take(2)) == [format_position(each) for each in found[:2]]
                await phone.quiet()
                await phone.say(ack=format_position(found[0]))
                assert (await phone.next())["position"] == format_position(found[2])
                await phone.quiet()
                await phone.say(ack=format_position(found[2]))
                assert positions(await phone.take(2)) == [format_position(each) for each in found[3:]]
                at.match([])
                at.append(9)

    run(scene())


def test_what_waits_for_an_acknowledgement_does_not_grow_however_much_is_published() -> None:
    async def scene() -> None:
        async with (
            house() as at,
            called(at, "/streams/test?ack=1&window=1") as phone,
            called(at, "/streams/test") as other,
        ):
            for start in range(0, 1_600, 400):
                at.append(*range(start, start + 400))
                await other.take(400)
            assert len(at.edge.events.topic) == 1, "it has left, to come back when it is done with what it was sent"
            for position in range(1, 1_601):
                assert (await phone.next())["position"] == format_position(position)
                await phone.say(ack=format_position(position))

    run(scene())


def test_who_does_not_acknowledge_in_time_is_told_where_it_was_and_cut_off() -> None:
    async def scene() -> None:
        hasty = house(change=lambda parts: replace(parts, ack_timeout=0.0))
        async with hasty as at, called(at, "/streams/test?ack=1&window=1") as phone:
            at.append(1, 2)
            told = await phone.rest()
            assert [each["type"] for each in told] == ["event", "slow"]
            assert told[-1]["position"] == format_position(0)
            assert b"triplewire_listeners_cut_off_total 1.0" in at.edge.parts.metrics.exposition()

    run(scene())


def test_a_gap_is_told() -> None:
    async def scene() -> None:
        async with house() as at:
            at.append(1, 2, 3)
            at.twin.clock.advance(9)
            at.append(4)
            at.twin.log.trim(LogRetention(age=5), before=9)
            for ack in ("0", "1"):
                async with called(at, f"/streams/test?after={format_position(1)}&ack={ack}") as phone:
                    gap, following = await phone.take(2)
                    assert (gap["type"], gap["earliest"], following["position"]) == (
                        "gap",
                        format_position(4),
                        format_position(4),
                    )

    run(scene())


@pytest.mark.parametrize("path", ["/streams/test", "/streams/test?ack=1", "/notifications"])
def test_an_edge_that_closes_says_from_where_to_go_on(path: str) -> None:
    async def scene() -> None:
        async with house() as at, called(at, path) as phone:
            (position,) = at.append(1)
            if path == "/notifications":
                await phone.say(stream="test", after="earliest")
                assert (await phone.next())["stream"] == "test"
            assert (await phone.next())["position"] == format_position(position)
            closing = asyncio.create_task(at.runner.shutdown())
            (last,) = await phone.rest()
            assert (last["type"], last["position"], last["retry"] > 0) == ("closing", format_position(position), True)
            await closing

    run(scene())


@pytest.mark.parametrize(
    ("said", "detail"),
    [
        ("{", "not JSON"),
        ("[]", "must be a JSON object"),
        (b"{}", "must be text"),
        ("{}", "not understood"),
        ('{"ack": "x"}', "no acknowledgement"),
        ('{"ack": 5}', "ack must be a text"),
        ('{"subscribe": "s1"}', "GET /notifications"),
    ],
)
def test_what_is_not_understood_is_a_problem_and_the_conversation_goes_on(said: str | bytes, detail: str) -> None:
    async def scene() -> None:
        async with house() as at, called(at, "/streams/test?ack=1") as phone:
            await phone.say_text(said)
            told = await phone.next()
            assert (told["type"], told["problem"]["status"]) == ("problem", 400)
            assert detail in told["problem"]["detail"]
            at.append(1)
            assert (await phone.next())["type"] == "event"

    run(scene())


@pytest.mark.parametrize(("origin", "allowed"), [("https://example.org", True), ("https://else", False), ("", True)])
@pytest.mark.parametrize("path", ["/streams/test", "/streams/test/publish", "/notifications"])
def test_pages_of_other_origins_may_not_open_one(path: str, origin: str, allowed: bool) -> None:
    async def scene() -> None:
        async with house(change=lambda parts: replace(parts, origins=("https://example.org",))) as at:
            try:
                async with at.session.ws_connect(at.url + path, origin=origin or at.url):
                    status = 101
            except aiohttp.WSServerHandshakeError as error:
                status = error.status
            assert (status == 101, status) == (allowed, 101 if allowed else 403)

    run(scene())


def test_bad_wishes_are_refused_before_hands_are_shaken() -> None:
    async def scene() -> None:
        async with house() as at:
            for path, status in (
                ("/streams/test?ack=yes", 400),
                ("/streams/test?ack=1&window=0", 400),
                ("/streams/test?after=x", 400),
                ("/subscriptions/none/notifications", 404),
            ):
                with pytest.raises(aiohttp.WSServerHandshakeError) as found:
                    await at.session.ws_connect(at.url + path)
                assert found.value.status == status, path

    run(scene())
