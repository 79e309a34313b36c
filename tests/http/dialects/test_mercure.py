"""Mercure over streams, over sockets."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from tests.http.dialects.nodes import needs_node, program
from tests.http.discovery.test_listing import guarded
from tests.http.harness import House, house, run
from triplewire.http.app import EdgeLimits
from triplewire.http.formats.messages import closing_message
from triplewire.rdf import N_QUADS, decode
from triplewire.security.jwt import _grants_of_topics
from triplewire.security.principals import stream_pattern_of
from triplewire.storage.log.ports import Publication

HUB = "/.well-known/mercure"


async def post(at: House, status: int = 200, who: str | None = None, **form: str) -> str:
    headers = {} if who is None else {"Authorization": f"Bearer {who}"}
    async with at.session.post(at.url + HUB, data=form, headers=headers) as response:
        text = await response.text()
        assert response.status == status, text
        return text


@pytest.mark.parametrize(
    ("topic", "pattern"),
    [
        ("*", "*"),
        ("https://example.org/streams/home", "home"),
        ("/streams/home", "home"),
        ("http://localhost:8080/streams/city-{id}", "city-*"),
        ("/streams/{stream}", "*"),
        ("https://example.org/books/1", None),
        ("/streams/", None),
        ("/streams/{a}/{b}", None),
        ("/streams/a{b}c", None),
        ("home", None),
    ],
)
def test_a_topic_is_the_address_of_streams(topic: str, pattern: str | None) -> None:
    assert stream_pattern_of(topic) == pattern


def test_updates_are_told_as_they_came_or_as_json_ld() -> None:
    async def scene() -> None:
        async with house() as at, at.listen(f"{HUB}?topic=/streams/home&topic=/streams/hall") as ear:
            await ear.position()
            one = await post(at, topic=f"{at.url}/streams/home", data='{"status": "two\\nlines"}')
            two = await post(at, topic="/streams/hall", data="plain\ntext", type="alarm")
            linked = {"@id": "urn:s", "urn:p": "3"}
            await post(at, topic="/streams/home", data=orjson.dumps(linked).decode(), id="urn:e:3")
            (event,) = decode(b'<urn:s> <urn:p> "4" <urn:e:4> .', N_QUADS)
            at.twin.log.append([Publication("elsewhere", [event]), Publication("home", [event])])
            first, second, third, fourth = await ear.take(4)
            assert (first.event, first.data, first.id) == ("message", b'{"status": "two\\nlines"}', one)
            assert (second.event, second.data, second.id) == ("alarm", b"plain\ntext", two)
            for message, id, value in ((third, "urn:e:3", "3"), (fourth, "urn:e:4", "4")):
                (graph,) = orjson.loads(message.data)
                assert graph["@id"] == id
                assert graph["@graph"] == [{"@id": "urn:s", "urn:p": [{"@value": value}]}]

    run(scene())


def test_who_comes_back_is_told_the_rest() -> None:
    async def scene() -> None:
        async with house() as at:
            ids = [await post(at, topic="/streams/home", data=str(number)) for number in range(3)]
            for asked in ({"query": "&lastEventID=earliest"}, {"header": "earliest"}):
                headers = {"Last_Event_ID": asked["header"]} if "header" in asked else {}
                async with at.listen(f"{HUB}?topic=*{asked.get('query', '')}", **headers) as ear:
                    assert [each.data for each in await ear.take(3)] == [b"0", b"1", b"2"]
            async with at.listen(f"{HUB}?topic=/streams/%7Bname%7D&lastEventID={ids[0]}") as ear:
                assert [each.id for each in await ear.take(2)] == ids[1:]

    run(scene())


def test_grants_say_who_may_listen_and_publish() -> None:
    async def scene() -> None:
        async with house(change=guarded) as at:
            await post(at, 401, topic="/streams/home", data="1")
            await post(at, 403, "ann publish:hall", topic="/streams/home", data="1")
            await post(at, 200, "ann publish:home", topic="/streams/home", data="1", private="on")
            await post(at, 200, "ann publish:hall", topic="/streams/hall", data="2")
            url = at.url + HUB
            async with at.session.get(f"{url}?topic=/streams/home") as response:
                assert response.status == 401
            cookie = {"Cookie": "mercureAuthorization=bob"}
            async with at.session.get(f"{url}?topic=/streams/home", headers=cookie) as response:
                assert response.status == 403
            query = f"{HUB}?topic=*&lastEventID=earliest&authorization=bob%20consume:home"
            async with at.listen(query) as ear:
                assert [each.data for each in await ear.take(1)] == [b"1"]
                await post(at, 200, "ann publish", topic="/streams/hall", data="3")
                await post(at, 200, "ann publish", topic="/streams/home", data="4")
                assert (await ear.next()).data == b"4"
            # A cookie comes along with what pages of others send: it lets nobody publish.
            async with at.session.post(url, data={"topic": "/streams/home", "data": "x"}, headers=cookie) as response:
                assert response.status == 401

    run(scene())


def test_the_claim_of_a_token_becomes_grants() -> None:
    claim: dict[str, Any] = {
        "publish": ["https://example.org/streams/home", 3],
        "subscribe": ["/streams/city-{id}", "urn:else"],
        "payload": {},
    }
    assert {str(each) for each in _grants_of_topics(claim)} == {"publish:home", "consume:city-*"}
    assert _grants_of_topics(None) == _grants_of_topics({"publish": "x"}) == frozenset()


@pytest.mark.parametrize(
    "form",
    [
        {"topic": "/streams/home"},
        {"data": "1"},
        {"topic": "https://example.org/other", "data": "1"},
        {"topic": "*", "data": "1"},
        {"topic": "/streams/home", "data": "1", "private": "on"},
        {"topic": "/streams/home", "data": "1", "id": "no id"},
        {"topic": "/streams/home", "data": "1", "type": "a\nb"},
    ],
)
def test_what_is_no_update_is_refused(form: dict[str, str]) -> None:
    async def scene() -> None:
        async with house() as at:
            assert (await at.problem("POST", HUB, data=form))["status"] == 400
            assert at.twin.log.head() == 0

    run(scene())


def test_a_topic_that_names_no_stream_is_refused() -> None:
    async def scene() -> None:
        async with house() as at:
            for query in ("", "?topic=https://example.org/books"):
                assert (await at.problem("GET", HUB + query))["status"] == 400
            first = await post(at, topic="/streams/home", id="urn:e", data="1")
            assert await post(at, topic="/streams/home", id="urn:e", data="1") == first
            await post(at, 409, topic="/streams/home", id="urn:e", data="2")

    run(scene())


@pytest.mark.parametrize(
    ("type", "body", "status"),
    [
        ("multipart/form-data", b"--x--", 415),
        ("application/json", b"{}", 415),
        ("application/x-www-form-urlencoded; charset=nonsense", b"topic=%ff&data=1", 400),
        ("application/x-www-form-urlencoded", b"\xff", 400),
    ],
)
def test_what_is_no_form_is_refused(type: str, body: bytes, status: int) -> None:
    async def scene() -> None:
        async with house() as at:
            assert (await at.problem("POST", HUB, data=body, headers={"Content-Type": type}))["status"] == status

    run(scene())


def test_too_many_streams_for_one_connection_are_refused() -> None:
    few = EdgeLimits(sources=2, entries=2)

    async def scene() -> None:
        async with house(limits=few) as at:
            for name in "abc":
                at.append(ord(name), stream=name)
            assert "too many" in (await at.problem("GET", f"{HUB}?topic=*"))["detail"]
            async with at.listen(f"{HUB}?topic=/streams/b&topic=/streams/c%7Bx%7D") as ear:
                await ear.position()

    run(scene())


@needs_node
def test_an_event_source_from_npm_listens_and_comes_back() -> None:
    async def scene() -> None:
        async with house() as at:
            topics = (f"{at.url}/streams/home", f"{at.url}/streams/city-{{id}}")
            await post(at, topic="/streams/city-1", data="old")
            async with program("mercure.mjs", at.url + HUB, "", *topics) as client:
                assert await client.next() == {"kind": "open"}
                await post(at, topic="/streams/home", data="1")
                await post(at, topic="/streams/city-1", data="2", type="alarm")
                heard = await client.take(2)
                # What the edge closes, the client opens again, from where it was.
                for room in at.edge.acceptor.topics:
                    room.close(closing_message("the test closes", retry=10))
                await post(at, topic="/streams/home", data="3")
                assert [each.get("data") for each in await client.take(2)] == [None, "3"]
            assert [(each["kind"], each["data"]) for each in heard] == [("message", "1"), ("alarm", "2")]
            async with program("mercure.mjs", at.url + HUB, "earliest", *topics) as client:
                found = [each for each in await client.take(5) if each["kind"] != "open"]
            assert [each["data"] for each in found] == ["old", "1", "2", "3"]

    run(scene())
