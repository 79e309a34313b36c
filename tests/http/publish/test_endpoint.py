"""Publishing events that say their streams and headers themselves, and publishing again."""

from __future__ import annotations

import pytest

from tests.http.harness import body, house, run
from triplewire.client import AsyncClient
from triplewire.model import END, Event, EventHeaders, StreamEvent, format_position
from triplewire.model.errors import BadRequest, DuplicateId
from triplewire.testing.samples import event

TRIG = {"Content-Type": "application/trig"}


def addressed(number: int, stream: str) -> StreamEvent:
    made = event(number)
    return StreamEvent(stream, Event(made.id, made.text, EventHeaders(f"source {number}", None, number)))


def test_events_of_several_streams_keep_their_order_and_headers() -> None:
    async def scene() -> None:
        async with house() as at, AsyncClient(at.url) as client:
            sent = [addressed(1, "b"), addressed(2, "a"), addressed(3, "b")]
            receipt = await client.publish_addressed(sent)
            assert receipt == {
                "events": 3,
                "first": format_position(1),
                "last": format_position(3),
                "position": format_position(3),
            }
            rows = at.twin.log.read(0, END, 10).to_pylist()
            assert [(row["stream"], row["source"], row["time"]) for row in rows] == [
                ("b", "source 1", 1), ("a", "source 2", 2), ("b", "source 3", 3)
            ]  # fmt: skip
            assert [row["text"] for row in rows] == [each.event.text for each in sent]

    run(scene())


def test_a_key_that_comes_again_is_answered_as_the_first_time() -> None:
    async def scene() -> None:
        async with house() as at, AsyncClient(at.url) as client:
            first = await client.publish_addressed([addressed(1, "a")], "import 7")
            await client.publish_addressed([addressed(2, "a")])
            assert await client.publish_addressed([addressed(1, "a")], "import 7") == first
            single = await client.publish("a", body(event(3)), key="once")
            assert await client.publish("a", body(event(3)), key="once") == single
            assert at.twin.log.head() == 3

    run(scene())


def test_without_a_key_ids_make_a_repeat_one_event_and_with_one_a_history_is_taken_as_it_is() -> None:
    async def scene() -> None:
        async with house() as at, AsyncClient(at.url) as client:
            first = await client.publish_addressed([addressed(1, "a"), addressed(2, "b")])
            again = await client.publish_addressed([addressed(2, "b"), addressed(1, "a")])
            assert (first["position"], again["first"], again["repeated"]) == (format_position(2), format_position(2), 2)
            other = StreamEvent("a", Event(event(1).id, event(2).text))
            with pytest.raises(DuplicateId, match=format_position(1)):
                await client.publish_addressed([addressed(3, "a"), other])
            assert at.twin.log.head() == 2
            assert (await client.publish_addressed([addressed(3, "a"), other], "import 7"))[
                "position"
            ] == format_position(4)

    run(scene())


@pytest.mark.parametrize(
    ("headers", "text", "status", "words"),
    [
        ({"Source-Id": "roof"}, "<urn:e> { <urn:s> <urn:p> 1 }", 400, "each event states Source-Id"),
        ({}, "<urn:e> { <urn:s> <urn:p> 1 }", 400, "the event urn:e has no stream"),
        (
            {},
            "<urn:e> <https://triplewire.dev/ns#stream> '/' . <urn:e> { <urn:s> <urn:p> 1 }",
            400,
            "not a valid name",
        ),
        ({"Content-Type": "text/turtle"}, "<urn:s> <urn:p> 1 .", 400, "use TriG"),
        ({"Content-Type": "text/plain"}, "", 415, "text/plain"),
        ({"Idempotency-Key": 'a"b'}, "<urn:e> { <urn:s> <urn:p> 1 }", 400, "Idempotency-Key must hold"),
        ({}, "<urn:e> { <urn:s> <urn:p> ", 400, "this is not TriG"),
    ],
)
def test_what_is_wrong_is_told_and_nothing_is_stored(
    headers: dict[str, str], text: str, status: int, words: str
) -> None:
    async def scene() -> None:
        async with house() as at:
            told = await at.problem("POST", "/events", data=text, headers=TRIG | headers)
            assert told["status"] == status
            assert words in told["detail"]
            assert at.twin.log.head() == 0

    run(scene())


def test_the_client_is_told_too() -> None:
    async def scene() -> None:
        async with house() as at, AsyncClient(at.url) as client:
            with pytest.raises(BadRequest, match="not a valid name"):
                await client.publish_addressed([addressed(1, "not a name")])

    run(scene())
