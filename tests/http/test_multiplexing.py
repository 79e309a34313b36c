"""Many subscriptions and streams over one connection."""

from __future__ import annotations

import pytest

from tests.http.delivery.test_websockets import called
from tests.http.harness import Ear, House, house, run
from triplewire.http.openapi import stream_operations
from triplewire.model import Subscription, format_position

PATH = "/notifications?subscription=s2&subscription=s1&stream=test"


def found(at: House, numbers: tuple[int, ...], *made: Subscription) -> list[int]:
    """Events that all of the subscriptions match."""
    positions = list(at.append(*numbers))
    at.match([(position, each.since, None) for position in positions for each in made])
    return positions


async def ids(ear: Ear, count: int) -> list[str]:
    return [message.id or "" for message in await ear.take(count)]


def test_what_matches_one_event_is_told_in_order_of_the_subscriptions_after_the_event() -> None:
    async def scene() -> None:
        async with house() as at:
            one, other = at.subscribe(id="s1"), at.subscribe(id="s2")
            first, second = found(at, (1, 2), other, one)
            wanted = [
                f"{format_position(p)}~{format_position(m)}"
                for p in (first, second)
                for m in (0, one.since, other.since)
            ]
            async with at.listen(PATH + "&after=earliest") as ear:
                assert await ids(ear, 6) == wanted
                (third,) = found(at, (3,), one, other)
                assert await ids(ear, 3) == [
                    f"{format_position(third)}~{format_position(m)}" for m in (0, one.since, other.since)
                ]

    run(scene())


def test_who_comes_back_in_the_middle_of_an_event_is_told_the_rest_of_it() -> None:
    async def scene() -> None:
        async with house() as at:
            one, other = at.subscribe(id="s1"), at.subscribe(id="s2")
            first, second = found(at, (1, 2), one, other)
            all_ids = [
                f"{format_position(p)}~{format_position(m)}"
                for p in (first, second)
                for m in (0, one.since, other.since)
            ]
            for number, id in enumerate(all_ids):
                async with at.listen(PATH, Last_Event_ID=id) as ear:
                    assert await ear.position() == id
                    assert await ids(ear, 5 - number) == all_ids[number + 1 :]
            async with at.listen(PATH, Last_Event_ID=format_position(first)) as ear:
                assert await ids(ear, 3) == all_ids[3:]

    run(scene())


def test_who_does_not_say_from_where_gets_each_from_its_beginning() -> None:
    async def scene() -> None:
        async with house() as at:
            one = at.subscribe(id="s1")
            first = found(at, (1,), one)
            other = at.subscribe(id="s2")
            second = found(at, (2,), one, other)
            wanted = [(p, m.since) for p in first for m in (one,)] + [
                (p, m.since) for p in second for m in (one, other)
            ]
            async with at.listen("/notifications?subscription=s1&subscription=s2") as ear:
                assert await ids(ear, 3) == [f"{format_position(p)}~{format_position(m)}" for p, m in wanted]

    run(scene())


def test_one_that_ends_is_told_and_the_others_go_on() -> None:
    async def scene() -> None:
        async with house() as at:
            one, other = at.subscribe(id="s1"), at.subscribe(id="s2")
            async with at.listen("/notifications?subscription=s1&subscription=s2") as ear:
                found(at, (1,), one, other)
                await ear.take(2)
                at.end("s1")
                at.match([])
                assert (await ear.next()).event == "end"
                (second,) = found(at, (2,), other)
                assert await ids(ear, 1) == [f"{format_position(second)}~{format_position(other.since)}"]
                at.end("s2")
                at.match([])
                assert [each.event for each in await ear.rest()] == ["end"]

    run(scene())


def test_over_a_websocket_subscriptions_come_and_go() -> None:
    async def scene() -> None:
        async with house() as at:
            one, other = at.subscribe(id="s1"), at.subscribe(id="s2")
            (first,) = found(at, (1,), one, other)
            async with called(at, "/notifications") as phone:
                await phone.say(subscribe="s1")
                begun, told = await phone.take(2)
                assert (begun["type"], begun["subscription"]) == ("position", "s1")
                assert told["id"] == f"{format_position(first)}~{format_position(one.since)}"
                await phone.say(subscribe="s2", after=format_position(first))
                assert (await phone.next())["position"] == format_position(first)
                found(at, (2,), one, other)
                assert [each["subscription"] for each in await phone.take(2)] == ["s1", "s2"]
                await phone.say(unsubscribe="s1")
                assert await phone.next() == {"type": "left", "subscription": "s1"}
                await phone.say(stream="test", after="earliest")
                assert [each.get("event") for each in await phone.take(3)][1:] == [
                    "http://example.org/event/1", "http://example.org/event/2"
                ]  # fmt: skip
                found(at, (3,), one, other)
                assert [each["type"] for each in await phone.take(2)] == ["event", "notification"]
                await phone.say(unstream="test")
                assert await phone.next() == {"type": "left", "stream": "test"}

    run(scene())


def test_over_a_websocket_with_acknowledgements_the_ids_are_acknowledged() -> None:
    async def scene() -> None:
        async with house() as at:
            one, other = at.subscribe(id="s1"), at.subscribe(id="s2")
            (first,) = found(at, (1,), one, other)
            path = "/notifications?subscription=s1&subscription=s2&ack=1&window=1"
            async with called(at, path) as phone:
                for made in (one, other):
                    told = await phone.next()
                    assert told["id"] == f"{format_position(first)}~{format_position(made.since)}"
                    await phone.quiet()
                    await phone.say(ack=told["id"])

    run(scene())


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/notifications", 400),
        ("/notifications?subscription=none", 404),
        ("/notifications?stream=-", 400),
        ("/notifications?stream=test&after=x~y", 400),
        (
            "/notifications?"
            + "&".join(f"stream=s{number}" for number in range(stream_operations.CONNECTION_SOURCES + 1)),
            400,
        ),
    ],
)
def test_what_cannot_be_is_refused(path: str, status: int) -> None:
    async def scene() -> None:
        async with house() as at:
            assert (await at.problem("GET", path))["status"] == status

    run(scene())


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ({"subscribe": "none"}, 404),
        ({"stream": "-"}, 400),
        ({"stream": "test", "after": "x"}, 400),
        ({"stream": "test", "after": 1}, 400),
        ({"stream": "here"}, 400),
        ({"unsubscribe": "s1"}, 400),
        ({"ack": format_position(1)}, 400),
    ],
)
def test_over_a_websocket_what_cannot_be_is_a_problem(said: dict[str, object], status: int) -> None:
    async def scene() -> None:
        async with house() as at, called(at, "/notifications?stream=here") as phone:
            await phone.say(**said)
            told = await phone.next()
            assert (told["type"], told["problem"]["status"]) == ("problem", status)

    run(scene())
