"""Publishing to streams and listening to them, over sockets."""

from __future__ import annotations

import asyncio

from tests.http.harness import House, body, data, house, run
from triplewire.model import format_position
from triplewire.storage.log.ports import LogRetention
from triplewire.testing.samples import event

NQUADS = {"Content-Type": "application/n-quads"}


async def publish(at: House, *numbers: int, stream: str = "test", **headers: str) -> dict[str, object]:
    given = NQUADS | {name.replace("_", "-"): value for name, value in headers.items()}
    sent = body(*(event(number) for number in numbers))
    async with at.session.post(f"{at.url}/streams/{stream}", data=sent, headers=given) as response:
        assert response.status == 201, await response.text()
        receipt: dict[str, object] = await response.json()
        return receipt


def test_a_publish_is_answered_with_positions_and_heard_by_who_listens() -> None:
    async def scene() -> None:
        async with house() as at, at.listen("/streams/test") as ear:
            await ear.position()
            receipt = await publish(at, 1, 2, Source_Id="s", Application_Id="a", Timestamp="2026-11-15T08:30:00+01:00")
            assert receipt == {
                "stream": "test", "events": 2,
                "first": format_position(1), "last": format_position(2), "position": format_position(2),
            }  # fmt: skip
            first, second = await ear.take(2)
            assert (first.event, first.id, second.id) == ("event", format_position(1), format_position(2))
            assert data(first) == {
                "position": format_position(1),
                "stream": "test",
                "event": "http://example.org/event/1",
                "time": "2026-11-15T07:30:00Z",
                "source": "s",
                "application": "a",
                "format": "application/n-quads",
                "body": body(event(1)).decode(),
            }

    run(scene())


def test_other_streams_are_not_heard() -> None:
    async def scene() -> None:
        async with house() as at, at.listen("/streams/mine") as ear:
            await ear.position()
            await publish(at, 1, stream="other")
            await publish(at, 2, stream="mine")
            assert data(await ear.next())["event"].endswith("/2")

    run(scene())


def test_who_resumes_gets_the_past_then_the_present_each_once() -> None:
    async def scene() -> None:
        async with house() as at:
            at.append(*range(2500))
            async with at.listen("/streams/test", Last_Event_ID=format_position(700)) as ear:
                past = await ear.take(1800)
                await publish(at, 9000)
                (live,) = await ear.take(1)
            assert [message.id for message in [*past, live]] == [format_position(number) for number in range(701, 2502)]

    run(scene())


def test_earliest_is_everything_and_the_default_is_from_now_on() -> None:
    async def scene() -> None:
        async with house() as at:
            at.append(1, 2, 3)
            async with at.listen("/streams/test?after=earliest") as all, at.listen("/streams/test") as new:
                assert await new.position() == format_position(3)
                await publish(at, 4)
                assert [message.id for message in await all.take(4)] == [
                    format_position(number) for number in (1, 2, 3, 4)
                ]
                assert (await new.next()).id == format_position(4)

    run(scene())


def test_what_was_trimmed_is_told_as_a_gap() -> None:
    async def scene() -> None:
        async with house() as at:
            at.append(*range(10))
            at.twin.clock.advance(100)
            at.append(10, 11)
            assert at.twin.log.trim(LogRetention(age=50), before=100) == 10
            async with at.listen(f"/streams/test?after={format_position(4)}") as ear:
                gap, first = await ear.take(2)
            assert (gap.event, data(gap)["asked"], data(gap)["earliest"]) == (
                "gap",
                format_position(4),
                format_position(11),
            )
            assert first.id == format_position(11)

    run(scene())


def test_registry_changes_between_events_are_no_gap() -> None:
    async def scene() -> None:
        async with house() as at:
            at.twin.registry.put([("a", "b", {})] * 3)
            at.append(1)
            async with at.listen(f"/streams/test?after={format_position(1)}") as ear:
                assert (await ear.next()).event == "event"

    run(scene())


def test_a_slow_reader_is_told_and_cut_off_and_can_come_back() -> None:
    async def scene() -> None:
        async with house(buffer=64 * 1024) as at:
            async with at.listen("/streams/test", Accept_Encoding="identity") as ear:
                await ear.position()
                number = 0
                while not at.edge.parts.metrics.registry.get_sample_value("triplewire_listeners_cut_off_total"):
                    await publish(at, *range(number, number + 1000))
                    number += 1000
                heard = await ear.rest()
            assert heard[-1].event == "slow"
            ids = [message.id for message in heard[:-1]]
            assert ids == [format_position(each) for each in range(1, len(ids) + 1)]
            assert len(ids) < number
            async with at.listen("/streams/test", Last_Event_ID=str(ids[-1])) as again:
                rest = await again.take(number - len(ids))
            assert rest[-1].id == format_position(number)

    run(scene())


def test_when_the_edge_closes_listeners_are_told_and_let_go() -> None:
    async def scene() -> None:
        async with house() as at, at.listen("/streams/test") as ear:
            await ear.position()
            await at.runner.cleanup()
            (last,) = await ear.rest()
            assert (last.event, data(last)["position"], data(last)["retry"]) == ("closing", format_position(0), 500)

    run(scene())


def test_http_1_0_is_served_without_chunks() -> None:
    async def scene() -> None:
        async with house() as at:
            at.append(1)
            host, port = at.url.removeprefix("http://").split(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(b"GET /streams/test?after=earliest HTTP/1.0\r\nHost: here\r\n\r\n")
            head = await reader.readuntil(b"\r\n\r\n")
            assert b"chunked" not in head
            first = b"id: 0000000000000000\nevent: position\ndata: {"
            assert (await reader.readuntil(b"\n\n")).startswith(first)
            assert (await reader.readuntil(b"\n\n")).startswith(b"id: 0000000000000001\nevent: event\ndata: {")
            at.append(2)
            assert (await reader.readuntil(b"\n\n")).startswith(b"id: 0000000000000002\nevent: event\ndata: {")
            writer.close()
            await writer.wait_closed()

    run(scene())
