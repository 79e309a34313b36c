"""Streams with shapes, over real sockets, and the process that judges."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import orjson
import pyoxigraph as ox

from tests.http.harness import House, house, run
from triplewire.http.app import EdgeParts
from triplewire.http.publish import validation as routes
from triplewire.http.publish.validation import ShaclValidator, ShapeGate
from triplewire.storage.registry.streams import ShapesCache, ValidationMode

TURTLE = {"Content-Type": "text/turtle"}
SHAPES = b"""@prefix sh: <http://www.w3.org/ns/shacl#> . @prefix ex: <http://example.org/> .
ex:S a sh:NodeShape ; sh:targetSubjectsOf ex:v ;
  sh:property [ sh:path ex:v ; sh:maxInclusive 10 ; sh:pattern "^[0-9]+$" ] ."""
GOOD, BAD = b"<urn:s> <http://example.org/v> 7 .", b"<urn:s> <http://example.org/v> 17 ."
SLOW = b"""@prefix sh: <http://www.w3.org/ns/shacl#> .
<urn:S> a sh:NodeShape ; sh:targetSubjectsOf <http://example.org/v> ;
  sh:property [ sh:path <http://example.org/v> ; sh:pattern "^(([a-z])+.)+[A-Z]([a-z])+$" ] ."""
ENDLESS = b'<urn:s> <http://example.org/v> "%b" .' % (b"a" * 60)


@asynccontextmanager
async def shaped_house() -> AsyncIterator[tuple[House, ShapeGate]]:
    held: list[ShapeGate] = []

    def change(parts: EdgeParts) -> EdgeParts:
        gate = ShapeGate(ShapesCache(parts.registry), ShaclValidator(30.0))
        held.append(gate)
        return replace(parts, gate=gate, routes=routes.shape_routes(gate.shapes, gate.validator.check))

    async with house(change=change) as at:
        yield at, held[0]


async def put(at: House, body: bytes = SHAPES, query: str = "", stream: str = "test") -> dict[str, Any]:
    async with at.session.put(f"{at.url}/streams/{stream}/shapes{query}", data=body, headers=TURTLE) as response:
        assert response.status == 200, await response.text()
        found: dict[str, Any] = await response.json()
    return found


async def publish(at: House, body: bytes, **headers: str) -> tuple[int, dict[str, Any]]:
    async with at.session.post(f"{at.url}/streams/test", data=body, headers={**TURTLE, **headers}) as response:
        return response.status, orjson.loads(await response.read())


async def refused(at: House, gate: ShapeGate) -> None:
    assert (await publish(at, BAD))[0] == 201
    assert not gate.validator.running  # nobody needs it yet
    told = await put(at)
    assert (told["mode"], told["triples"]) == ("refuse", 6)
    assert (await publish(at, GOOD))[0] == 201
    status, problem = await publish(at, BAD)
    assert (status, problem["violations"], problem["type"].rpartition("/")[2]) == (422, 1, "ShapeViolation")
    assert problem["results"][0]["focus"] == "urn:s"
    report = list(ox.parse(problem["report"].encode(), format=ox.RdfFormat.N_TRIPLES))
    assert any(str(each.object).endswith("#ValidationReport>") for each in report)
    url = f"{at.url}/streams/test"
    async with at.session.post(url, data=BAD, headers={**TURTLE, "Accept": "text/turtle"}) as response:
        assert (response.status, response.content_type) == (422, "text/turtle")
        assert b"ValidationReport" in await response.read()
    # Others are not judged.
    async with at.session.post(f"{at.url}/streams/other", data=BAD, headers=TURTLE) as response:
        assert response.status == 201


async def each_by_itself(at: House, gate: ShapeGate) -> None:
    await put(at)
    lines = b"".join(
        orjson.dumps({"event": f"urn:e:{n}", "format": "text/turtle", "body": each.decode()}) + b"\n"
        for n, each in enumerate([GOOD, BAD, GOOD])
    )
    status, told = await publish(at, lines, **{"Content-Type": "application/x-ndjson"})
    assert (status, told["events"], told["refusals"], told["refused"][0]["item"]) == (201, 2, 1, 2)
    trig = b'<urn:e:9> <https://triplewire.dev/ns#stream> "test" . <urn:e:9> { %b }' % BAD
    found = await at.problem("POST", "/events", data=trig, headers={"Content-Type": "application/trig"})
    assert found["status"] == 422


async def marked(at: House, gate: ShapeGate) -> None:
    await put(at, query="?mode=mark")
    (_, first), (status, _) = await publish(at, GOOD), await publish(at, BAD)
    assert status == 201
    item = orjson.dumps({"format": "text/turtle", "body": GOOD.decode(), "headers": {"shapes": "violated 9", "a": "b"}})
    assert (await publish(at, item, **{"Content-Type": "application/x-ndjson"}))[0] == 201
    async with at.listen(f"/streams/test?after={first['position']}") as ear:
        told = [orjson.loads(each.data).get("headers") for each in await ear.take(2)]
    assert told == [{"Shapes": "violated 1"}, {"a": "b"}]


async def replaced(at: House, gate: ShapeGate) -> None:
    first = await put(at)
    path = f"{at.url}/streams/test/shapes"
    async with at.session.get(path, headers={"Accept": "application/n-triples"}) as response:
        assert (response.status, response.headers["Shapes-Mode"]) == (200, "refuse")
        assert len((await response.read()).splitlines()) == 6
    second = await put(at, SHAPES.replace(b"10", b"20"), "?mode=refuse")
    assert second["version"] > first["version"]
    assert (await publish(at, BAD))[0] == 201
    async with at.session.delete(path) as response:
        assert response.status == 204
    assert (await at.problem("GET", "/streams/test/shapes"))["status"] == 404
    assert (await at.problem("DELETE", "/streams/test/shapes"))["status"] == 404
    assert (await publish(at, b"<urn:s> <http://example.org/v> 99 ."))[0] == 201


async def impossible(at: House, gate: ShapeGate) -> None:
    prefix = b"@prefix sh: <http://www.w3.org/ns/shacl#> . <urn:S> a sh:NodeShape ; "
    for body, status in (
        (b"<", 400), (prefix + b"sh:property [ sh:minCount 1 ] .", 400), (prefix + b"sh:node <urn:S> .", 422),
        (prefix + b'sh:sparql [ sh:select "SELECT" ] .', 422),
    ):  # fmt: skip
        found = await at.problem("PUT", "/streams/test/shapes", data=body, headers=TURTLE)
        assert found["status"] == status, found
    found = await at.problem("PUT", "/streams/test/shapes?mode=x", data=SHAPES, headers=TURTLE)
    assert (found["status"], bool(gate.shapes)) == (400, False)


def test_a_stream_has_shapes() -> None:
    """One after the other over one edge, since the process that judges takes long to begin."""

    async def scene() -> None:
        async with shaped_house() as (at, gate):
            for part in (refused, each_by_itself, replaced, impossible, marked):
                await part(at, gate)

    run(scene())


def test_a_pattern_that_does_not_end_is_given_up() -> None:
    """The threat: a shape whose pattern backtracks for years."""

    async def scene() -> None:
        async with shaped_house() as (at, gate):
            await put(at, SLOW)
            gate.validator.seconds = 0.5
            assert (await publish(at, ENDLESS))[0] == 503
            assert not gate.validator.running
            gate.validator.seconds = 30.0
            assert (await publish(at, b'<urn:s> <http://example.org/v> "a Bc" .'))[0] == 201
            await put(at, SLOW, "?mode=mark")
            gate.validator.seconds = 0.5
            assert (await publish(at, ENDLESS))[0] == 201
            async with at.listen("/streams/test?after=earliest") as ear:
                assert orjson.loads((await ear.take(2))[1].data)["headers"] == {"Shapes": "undecided"}

    run(scene())


def test_what_another_edge_put_holds_here_too() -> None:
    async def scene() -> None:
        async with shaped_house() as (at, gate):
            ShapesCache(at.twin.registry).put("test", ValidationMode.REFUSE, "<urn:S>\t<urn:p>\t<urn:o>")
            async with asyncio.timeout(10):
                while gate.shapes.of("test") is None:
                    await asyncio.sleep(0.01)

    run(scene())
