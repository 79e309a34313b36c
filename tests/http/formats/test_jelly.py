"""Jelly over real sockets, read and written by pyjelly on the other side."""

from __future__ import annotations

from contextlib import aclosing
from contextvars import ContextVar
from io import BytesIO
from typing import Any

import orjson
import pytest
from pyjelly.integrations.rdflib.parse import parse_jelly_grouped
from rdflib import Graph, URIRef

from tests.http.harness import House, house, run
from triplewire.client import AsyncClient
from triplewire.model import Event, Kind, format_position
from triplewire.rdf import to_ntriples
from triplewire.rdf.jelly import encode_frame
from triplewire.testing.samples import event

JELLY = "application/x-jelly-rdf"
METADATA: ContextVar[Any] = ContextVar("metadata")


async def polled(at: House, path: str) -> bytes:
    async with at.session.get(at.url + path, headers={"Accept": JELLY}) as response:
        assert (response.status, response.content_type) == (200, JELLY), await response.text()
        return await response.read()


def plain(given: Event) -> set[Any]:
    """The triples of an event as rdflib reads them."""
    return set(Graph().parse(data=to_ntriples(given.text), format="nt"))


def test_events_are_datasets_with_positions_in_their_metadata() -> None:
    async def scene() -> None:
        async with house() as at:
            positions = at.append(1, 2)
            data = await polled(at, "/streams/test?after=earliest&mode=poll")
            found = []
            for each in parse_jelly_grouped(BytesIO(data), frame_metadata=METADATA):
                told = METADATA.get()
                found.append((told["type"], orjson.loads(told["data"])["position"]))
                given = event(len(found))
                assert set(each.graph(URIRef(given.id))) == plain(given)
            assert found == [(b"event", format_position(each)) for each in positions]
            url, headers = f"{at.url}/streams/again", {"Content-Type": JELLY}
            async with at.session.post(url, data=data, headers=headers) as response:
                assert (response.status, (await response.json())["events"]) == (201, 2)
            assert at.twin.log.read(0, 100, 100)["text"].to_pylist()[2:] == [event(1).text, event(2).text]

    run(scene())


def test_what_rdflib_writes_as_jelly_is_taken() -> None:
    async def scene() -> None:
        graph = Graph().parse(data="<urn:s> <urn:p> 1, 'x'@en, [ <urn:q> 2 ] .")
        body = graph.serialize(format="jelly", encoding="utf-8")
        async with house() as at:
            url, headers = f"{at.url}/streams/test", {"Content-Type": JELLY}
            async with at.session.post(url, data=body, headers=headers) as response:
                assert (response.status, (await response.json())["events"]) == (201, 1)
            assert at.twin.log.read(0, 100, 100)["text"].to_pylist()[0].count("\n") == 3

    run(scene())


def test_a_frame_that_is_broken_off_loses_only_itself() -> None:
    async def scene() -> None:
        async with house() as at:
            frame = encode_frame("<urn:s> <urn:p> <urn:o> .\n")
            url, headers = f"{at.url}/streams/test", {"Content-Type": JELLY}
            async with at.session.post(url, data=frame + frame[:-3], headers=headers) as response:
                told = await response.json()
            assert (response.status, told["events"], told["refusals"]) == (201, 1, 1)
            async with at.session.post(f"{url}?ack=each", data=frame * 2, headers=headers) as response:
                lines = [orjson.loads(line) for line in (await response.read()).splitlines()]
            assert lines[-1]["end"]["events"] == 2

    run(scene())


@pytest.mark.parametrize("kind", list(Kind))
def test_notifications_are_frames(kind: Kind) -> None:
    async def scene() -> None:
        async with house() as at:
            since = at.subscribe(kind).since
            (position,) = at.append(1)
            at.match([(position, since, [0, 1] if kind is Kind.BINDINGS else None)])
            data = await polled(at, "/subscriptions/s1/notifications?mode=poll")
            (found,) = parse_jelly_grouped(BytesIO(data), frame_metadata=METADATA)
            assert orjson.loads(METADATA.get()["data"])["kind"] == kind.value
            assert len(found) > 0

    run(scene())


def test_the_client_hands_out_what_comes_as_it_is() -> None:
    async def scene() -> None:
        async with house() as at, AsyncClient(at.url) as client:
            at.append(1)
            data = b""
            async with aclosing(client.consume_raw("test", "jelly", "earliest")) as pieces:
                async for piece in pieces:
                    data += piece
                    if event(1).id.encode().rpartition(b"/")[0] in data:
                        break
            greeting, told = parse_jelly_grouped(BytesIO(data))
            assert (len(greeting), set(told.graph(URIRef(event(1).id)))) == (0, plain(event(1)))

    run(scene())
