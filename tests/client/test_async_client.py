"""The client against a real edge."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from threading import Thread
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from tests.http.harness import House, body, run
from tests.http.resources.test_routes import controlled
from triplewire.client import AsyncClient, Client
from triplewire.http.formats.sse import SSE
from triplewire.http.problems import respond_to_error
from triplewire.model import format_position
from triplewire.model.errors import (
    BadRequest,
    BodyTooLarge,
    Conflict,
    InvalidField,
    MalformedRdf,
    NotFound,
    QueryLimit,
    SparqlSyntax,
    StorageFull,
    TextPosition,
    TriplewireError,
    Unavailable,
    UnknownMediaType,
    Unsupported,
)
from triplewire.model.problems import parse_problem
from triplewire.storage.log.ports import LogRetention
from triplewire.testing.samples import event

QUERY = "SELECT ?s { ?s <urn:p> 1 }"


@asynccontextmanager
async def connected() -> AsyncIterator[tuple[House, AsyncClient]]:
    async with controlled() as at, AsyncClient(at.url, attempts=3) as client:
        yield at, client


def test_what_is_published_is_consumed() -> None:
    async def scene() -> None:
        async with connected() as (_, client):
            receipt = await client.publish("test", [event(1), event(2)])
            assert (receipt["events"], receipt["first"]) == (2, format_position(1))
            await client.publish("test", "<urn:s> <urn:p> 1 .", "text/turtle", id="urn:x", source="me")
            async with aclosing(client.consume("test", after="earliest")) as events:
                found = [await anext(events) for _ in range(3)]
            assert [each["position"] for each in found] == [format_position(1), format_position(2), format_position(3)]
            assert found[0]["body"] == body(event(1)).decode()
            assert (found[2]["event"], found[2]["source"]) == ("urn:x", "me")

    run(scene())


def test_large_bodies_are_sent_too() -> None:
    async def scene() -> None:
        async with connected() as (_, client):
            assert (await client.publish("test", body(*map(event, range(8000)))))["events"] == 8000

    run(scene())


def test_subscriptions_are_made_listed_heard_and_ended() -> None:
    async def scene() -> None:
        async with connected() as (at, client):
            made = await client.subscribe(QUERY, kind="signal")
            assert await client.subscriptions() == [made]
            (position,) = at.append(1)
            at.match([(position, int(made["since"], 16), None)])
            async with aclosing(client.notifications(made["id"])) as notifications:
                assert (await anext(notifications))["position"] == format_position(position)
                await client.unsubscribe(made["id"])
                assert [each async for each in notifications] == []
            with pytest.raises(NotFound):
                await anext(client.notifications(made["id"]))

    run(scene())


def test_the_past_is_asked_for_by_another_word() -> None:
    async def scene() -> None:
        async with connected() as (at, client):
            first, *_ = at.append(1, 2)
            made = await client.subscribe(stream="test", start="earliest")
            assert made["from"] == "earliest"
            async with aclosing(client.notifications(made["id"])) as notifications:
                assert [(await anext(notifications))["position"] for _ in range(2)] == [
                    format_position(first),
                    format_position(first + 1),
                ]
            with pytest.raises(InvalidField, match="from must be"):
                await client.subscribe(stream="test", start="yesterday")

    run(scene())


def test_a_bulk_is_told_of_line_by_line() -> None:
    async def scene() -> None:
        async with connected() as (_, client):
            wishes: list[dict[str, Any] | bytes] = [{"sparql": QUERY}, b'{"sparql": 5}\n', {"source": ["a", "b"]}]
            told = [each async for each in client.subscribe_bulk(wishes)]
            assert [each["line"] for each in told] == [1, 2, 3]
            assert [each["id"] for each in await client.subscriptions()] == [told[0]["id"], told[2]["id"]]
            assert told[1]["error"]["field"] == "sparql"

    run(scene())


def test_a_gap_is_told() -> None:
    async def scene() -> None:
        async with connected() as (at, client):
            at.append(1, 2, 3)
            at.twin.clock.advance(9)
            at.append(4)
            at.twin.log.trim(LogRetention(age=5), before=9)
            gaps: list[dict[str, Any]] = []
            async with aclosing(client.consume("test", after=format_position(1), on_gap=gaps.append)) as events:
                assert (await anext(events))["position"] == format_position(4)
            assert gaps[0]["earliest"] == format_position(4)

    run(scene())


class Breaking:
    """A relay in front of an edge that breaks each connection after a number of bytes, then lets all through."""

    def __init__(self, target: str, *breaks: int) -> None:
        self._target = target
        self._breaks = list(breaks)
        self.requests: list[str | None] = []
        self.broken = asyncio.Event()

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        self.requests.append(request.headers.get("Last-Event-ID"))
        budget = self._breaks.pop(0) if self._breaks else 10**9
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        headers = {name: value for name, value in request.headers.items() if name == "Last-Event-ID"}
        async with (
            aiohttp.ClientSession() as session,
            session.get(self._target + request.path_qs, headers=headers) as upstream,
        ):
            await response.prepare(request)
            async for piece in upstream.content.iter_any():
                await response.write(piece[:budget])
                budget -= len(piece[:budget])
                if not budget:
                    assert request.transport is not None
                    request.transport.close()
                    self.broken.set()
                    break
        return response


@asynccontextmanager
async def relayed(at: House, *breaks: int) -> AsyncIterator[tuple[str, Breaking]]:
    relay = Breaking(at.url, *breaks)
    runner = web.ServerRunner(web.Server(relay, handler_cancellation=True), shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}", relay
    finally:
        await runner.shutdown()
        await runner.cleanup()


def test_broken_connections_are_taken_up_again_where_they_were() -> None:
    async def scene() -> None:
        async with controlled() as at, relayed(at, 100, 5000, 7777) as (url, relay), AsyncClient(url) as client:
            at.append(*range(50))
            async with aclosing(client.consume("test", after="earliest")) as events:
                found = [(await anext(events))["position"] for _ in range(50)]
            assert found == [format_position(number) for number in range(1, 51)]
            assert len(relay.requests) == 4

    run(scene())


def test_who_listens_from_now_on_loses_nothing_when_the_connection_breaks_before_the_first_message() -> None:
    async def scene() -> None:
        async with (
            controlled() as at,
            relayed(at, len(SSE.notice("position", position=format_position(0), missed=False))) as (url, relay),
            AsyncClient(url) as client,
            aclosing(client.consume("test")) as events,
        ):
            first = asyncio.ensure_future(anext(events))
            await relay.broken.wait()
            at.append(1)
            assert (await first)["position"] == format_position(1)
            assert relay.requests == [None, format_position(0)]

    run(scene())


def test_a_server_that_is_away_is_unavailable_after_so_many_attempts() -> None:
    async def scene() -> None:
        async with AsyncClient("http://127.0.0.1:9", attempts=1) as client:
            with pytest.raises(Unavailable):
                await anext(client.consume("test"))
            with pytest.raises(Unavailable):
                await client.health()

    run(scene())


def test_health_is_told_when_it_is_bad_and_queries_are_answered() -> None:
    async def scene() -> None:
        async with connected() as (_, client):
            assert (await client.health())["status"] == "down"
            assert (await client.query(QUERY))["text"] == QUERY
            with pytest.raises(SparqlSyntax):
                await client.subscribe("SELECT")

    run(scene())


@pytest.mark.parametrize(
    "error",
    [
        MalformedRdf("a", place=TextPosition(1, 2)),
        SparqlSyntax("b", place=TextPosition(3, 4)),
        BadRequest("c"),
        Unsupported("MINUS", place=TextPosition(5, 6), hint="yet"),
        InvalidField("kind", "no such kind"),
        Conflict("older"),
        UnknownMediaType("text/x", ("text/turtle",)),
        BodyTooLarge("the body", 5),
        NotFound("d"),
        StorageFull("e"),
        QueryLimit("f"),
        Unavailable("g"),
    ],
)
def test_an_error_comes_out_as_it_went_in(error: TriplewireError) -> None:
    response = respond_to_error(error)
    assert isinstance(response.body, bytes)
    found = parse_problem(response.status, response.body)
    assert type(found) is type(error)
    for name in ("place", "field", "construct", "known", "limit"):
        assert getattr(found, name, None) == getattr(error, name, None)
    assert str(error) in str(found)


def test_an_answer_that_explains_nothing_goes_by_its_status() -> None:
    assert isinstance(parse_problem(404, b"<html>"), NotFound)
    assert isinstance(parse_problem(418, b"[]"), BadRequest)
    assert isinstance(parse_problem(502, b""), Unavailable)


def test_the_blocking_client_does_the_same() -> None:
    async def scene() -> None:
        async with controlled() as at:
            found: list[Any] = []

            def program() -> None:
                with Client(at.url) as client:
                    made = client.subscribe(QUERY)
                    client.publish("test", [event(1)])
                    found.append(next(client.consume("test", "earliest"))["position"])
                    client.unsubscribe(made["id"])
                    found.append(client.health()["status"])
                    found.append(client.query(QUERY)["text"])

            thread = Thread(target=program)
            thread.start()
            await asyncio.to_thread(thread.join)
            assert found == [format_position(3), "down", QUERY]

    run(scene())
