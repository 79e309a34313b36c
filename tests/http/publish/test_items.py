"""Bodies of many items: what is taken, what is refused, what was there already."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from tests.http.harness import House, body, house, run
from triplewire.client import AsyncClient
from triplewire.http.publish.endpoint import REPORTED_REFUSALS
from triplewire.model import END, EventHeaders, format_position
from triplewire.model.errors import DuplicateId
from triplewire.rdf import to_nquads
from triplewire.rdf.ztreamy import encode_item
from triplewire.testing.samples import event

ITEMS = {"Content-Type": "application/ztreamy-stream"}
LINES = {"Content-Type": "application/x-ndjson"}
QUADS = {"Content-Type": "application/n-quads"}
TURTLE = {"Content-Type": "text/turtle"}


def item(number: int, text: str | None = None, **extensions: str) -> bytes:
    content = f"<urn:s> <urn:p> {number} ." if text is None else text
    headers = EventHeaders(
        "roof", None, 5, "text/turtle", {name.replace("_", "-"): each for name, each in extensions.items()}
    )
    return encode_item(f"urn:e:{number}", headers, content.encode())


async def publish(at: House, data: bytes, headers: dict[str, str], path: str = "/streams/test") -> dict[str, Any]:
    async with at.session.post(at.url + path, data=data, headers=headers) as response:
        found: dict[str, Any] = orjson.loads(await response.read())
        assert response.status == 201, found
    return found


def rows(at: House) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = at.twin.log.read(0, END, 1_000).to_pylist()
    return found


def test_items_are_published_with_their_headers() -> None:
    async def scene() -> None:
        async with house() as at:
            told = await publish(at, item(1, X_One="a: b") + b"\r\n" + item(2), ITEMS | {"Application-Id": "app"})
            assert told == {
                "stream": "test", "events": 2,
                "first": format_position(1), "last": format_position(2), "position": format_position(2),
            }  # fmt: skip
            first, second = rows(at)
            assert orjson.loads(first["extensions"]) == {"X-One": "a: b"}
            assert [(each["event"], each["source"], each["application"], each["time"]) for each in (first, second)] == [
                ("urn:e:1", "roof", "app", 5), ("urn:e:2", "roof", "app", 5)
            ]  # fmt: skip

    run(scene())


def test_a_body_that_is_no_rdf_is_carried_as_it_is() -> None:
    async def scene() -> None:
        async with house() as at:
            png = b"\x89PNG\r\n\r\n\0"
            sent = encode_item("urn:picture", EventHeaders("cam", None, 7, "image/png", {"X-One": "1"}), png)
            await publish(at, sent, ITEMS)
            async with at.session.get(at.url + "/streams/test?after=earliest&format=ztreamy") as response:
                heard = b""
                while png not in heard:
                    heard += await response.content.readany()
            assert b"Event-Id: urn:picture\r\n" in heard
            assert b"Syntax: image/png\r\n" in heard
            assert b"X-One: 1\r\n" in heard
            assert rows(at)[0]["syntax"] == "image/png"

    run(scene())


def test_a_refused_item_does_not_keep_the_others_out() -> None:
    async def scene() -> None:
        async with house() as at:
            told = await publish(at, item(1) + item(2, "broken") + item(3), ITEMS)
            assert (told["events"], told["refusals"]) == (2, 1)
            (refused,) = told["refused"]
            assert (refused["item"], refused["line"], refused["problem"]["status"]) == (2, 7, 400)
            assert "this is not Turtle" in refused["problem"]["detail"]
            assert [each["event"] for each in rows(at)] == ["urn:e:1", "urn:e:3"]

    run(scene())


def test_where_the_end_of_an_item_is_unknown_what_came_before_is_taken() -> None:
    async def scene() -> None:
        async with house() as at:
            told = await publish(at, item(1) + b"Syntax: text/turtle\nBody-Length: -5\n\n" + item(2), ITEMS)
            assert (told["events"], told["refusals"]) == (1, 1)
            assert told["refused"][0]["item"] == 2
            torn = await publish(at, item(3) + item(4)[:-1], ITEMS)
            assert "ends in the middle" in torn["refused"][0]["problem"]["detail"]
            assert [each["event"] for each in rows(at)] == ["urn:e:1", "urn:e:3"]

    run(scene())


def test_only_where_nothing_is_taken_the_answer_is_an_error() -> None:
    async def scene() -> None:
        async with house() as at:
            many = b"{\n" * (REPORTED_REFUSALS + 5)
            told = await at.problem("POST", "/streams/test", data=many, headers=LINES)
            assert (told["status"], told["refusals"]) == (400, REPORTED_REFUSALS + 5)
            assert len(told["refused"]) == REPORTED_REFUSALS
            empty = await at.problem("POST", "/streams/test", data=b"\n", headers=LINES)
            assert "no items" in empty["detail"]
            named = await at.problem("POST", "/streams/test", data=item(1), headers=ITEMS | {"Event-Id": "urn:e"})
            assert "Event-Id" in named["detail"]
            keyed = LINES | {"Idempotency-Key": "all"}
            whole = await at.problem("POST", "/streams/test", data=b'{"@id": "urn:s", "urn:p": 1}\n{', headers=keyed)
            assert whole["status"] == 400
            assert rows(at) == []

    run(scene())


def test_lines_that_were_told_are_published_again() -> None:
    async def scene() -> None:
        async with house() as at:
            await publish(at, item(1, X_One="a") + item(2), ITEMS)
            async with at.session.get(at.url + "/streams/test?after=earliest&format=ndjson") as response:
                heard = b""
                while heard.count(b'"type":"event"') < 2:
                    heard += await response.content.readany()
            told = await publish(at, heard, LINES, "/streams/copy")
            assert told["events"] == 2
            first, again = rows(at)[0], rows(at)[2]
            assert again["stream"] == "copy"
            names = ("event", "text", "source", "application", "time", "extensions")
            assert [first[name] for name in names] == [again[name] for name in names]

    run(scene())


def test_events_of_a_broken_document_that_can_be_told_apart_are_taken() -> None:
    async def scene() -> None:
        async with house() as at:
            broken = body(event(1)) + b"<urn:s> <urn:p> oops <urn:bad> .\n" + body(event(2))
            told = await publish(at, broken, QUADS)
            assert (told["events"], told["refused"][0]["item"], told["refused"][0]["line"]) == (2, 2, 3)
            one = await at.problem("POST", "/streams/test", data=broken.split(b"\n")[2], headers=QUADS)
            assert one["line"] == 1
            assert len(rows(at)) == 2

    run(scene())


def test_an_event_whose_id_was_given_is_stored_once() -> None:
    async def scene() -> None:
        async with house() as at:
            await publish(at, item(1), ITEMS)
            told = await publish(at, item(1) + item(2), ITEMS)
            assert (told["events"], told["repeated"], told["first"], told["last"]) == (
                2,
                1,
                format_position(1),
                format_position(2),
            )
            quads = to_nquads("urn:e:1", '<urn:s>\t<urn:p>\t"1"^^<http://www.w3.org/2001/XMLSchema#integer>')
            assert (await publish(at, quads.encode(), QUADS))["position"] == format_position(1)
            plain = TURTLE | {"Event-Id": "urn:e:1"}
            assert (await publish(at, b"<urn:s> <urn:p> 1 .", plain))["repeated"] == 1
            anonymous = await publish(at, b"<urn:s> <urn:p> 1 .", TURTLE)
            assert anonymous["position"] == format_position(3)
            assert len(rows(at)) == 3

    run(scene())


def test_the_same_id_with_other_content_is_409_with_the_position() -> None:
    async def scene() -> None:
        async with house() as at, AsyncClient(at.url) as client:
            await publish(at, item(1), ITEMS)
            with pytest.raises(DuplicateId, match="urn:e:1 is there already") as raised:
                await client.publish("test", "<urn:s> <urn:p> 2 .", "text/turtle", id="urn:e:1")
            assert raised.value.position == format_position(1)
            told = await publish(at, item(1, "<urn:s> <urn:p> 7 .") + item(2), ITEMS)
            assert (told["events"], told["refused"][0]["item"]) == (1, 1)
            assert (told["refused"][0]["problem"]["status"], told["refused"][0]["problem"]["position"]) == (
                409,
                format_position(1),
            )
            assert (await publish(at, item(1), ITEMS, "/streams/other"))["position"] == format_position(3)

    run(scene())


def test_blank_nodes_of_an_event_that_comes_again_are_the_same() -> None:
    async def scene() -> None:
        async with house() as at:
            headers = TURTLE | {"Event-Id": "1100254f-f4ba-49aa-8c47-605e3110169e"}
            text = b"<urn:s> <urn:p> [ <urn:q> _:x, [] ] ."
            await publish(at, text, headers)
            assert (await publish(at, text.replace(b"_:x", b"_:y"), headers))["repeated"] == 1
            assert rows(at)[0]["event"] == "urn:uuid:1100254f-f4ba-49aa-8c47-605e3110169e"

    run(scene())
