"""RDF Messages over real sockets, in and out."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import orjson
import pyoxigraph as ox
import pytest

from tests.http.harness import House, body, house, run
from triplewire.model import Kind
from triplewire.rdf import N_QUADS, N_TRIPLES, TRIG, TURTLE, Syntax, to_nquads
from triplewire.rdf.messages import HEAD, message_media_type
from triplewire.testing.samples import event

ALL = pytest.mark.parametrize("syntax", [TURTLE, TRIG, N_TRIPLES, N_QUADS], ids=lambda each: each.name)
N3 = os.environ.get("TRIPLEWIRE_N3", "")
"""A folder in which `npm install n3` was called."""
HAS_N3 = shutil.which("node") is not None and (Path(N3) / "node_modules" / "n3").is_dir()


async def polled(at: House, path: str, syntax: Syntax) -> bytes:
    accept = message_media_type(syntax)
    async with at.session.get(at.url + path, headers={"Accept": accept}) as response:
        assert (response.status, response.headers["Content-Type"]) == (200, accept), await response.text()
        return await response.read()


async def post(at: House, stream: str, data: bytes, media_type: str) -> tuple[int, dict[str, Any]]:
    async with at.session.post(
        f"{at.url}/streams/{stream}", data=data, headers={"Content-Type": media_type}
    ) as response:
        return response.status, orjson.loads(await response.read())


def statements(log: bytes, syntax: Syntax) -> list[set[str]]:
    """The quads of each message, but for headers, as another parser reads them."""
    parts = log.removeprefix(HEAD).split(b"\nMESSAGE\n")[:-1]
    return [
        {str(each) for each in ox.parse(part, format=syntax.format) if "triplewire" not in each.predicate.value}
        for part in parts
    ]


@ALL
def test_what_is_heard_can_be_published_again(syntax: Syntax) -> None:
    async def scene() -> None:
        async with house() as at:
            at.append(1, 2)
            log = await polled(at, "/streams/test?after=earliest&mode=poll", syntax)
            assert log.startswith(HEAD)
            wanted = [event(1), event(2)]
            given = ox.RdfFormat.N_QUADS
            expected = [{str(quad) for quad in ox.parse(body(each), format=given)} for each in wanted]
            if not syntax.graphs:
                expected = [{str(each.triple) for each in ox.parse(body(one), format=given)} for one in wanted]
            assert statements(log, syntax) == expected
            status, answer = await post(at, "again", log, message_media_type(syntax))
            assert (status, answer["events"]) == (201, 2)
            again = await polled(at, "/streams/again?after=earliest&mode=poll", N_QUADS)
            if syntax.graphs:
                assert statements(again, N_QUADS) == expected

    run(scene())


def test_a_document_that_announces_itself_is_taken_by_messages() -> None:
    async def scene() -> None:
        async with house() as at:
            log = HEAD + b"<urn:s> <urn:p> 1 .\nMESSAGE\n<urn:s> <urn:p>\nMESSAGE\nMESSAGE\n<urn:s> <urn:p> 3 .\n"
            status, answer = await post(at, "test", log, "text/turtle")
            assert (status, answer["events"], answer["refusals"]) == (201, 2, 1)
            assert (answer["refused"][0]["item"], answer["refused"][0]["line"]) == (2, 4)
            told = await at.problem(
                "POST", "/streams/test", data=b"<urn:s> <urn:p> 1 .\nMESSAGE\n", headers={"Content-Type": "text/turtle"}
            )
            assert told["status"] == 400

    run(scene())


def test_messages_may_come_for_as_long_as_one_likes() -> None:
    async def scene() -> None:
        async with house() as at:
            headers = {"Content-Type": message_media_type(TRIG)}
            data = HEAD + b"PREFIX ex: <urn:>\n" + b"ex:g { ex:s ex:p 1 }\nMESSAGE\n" + b"ex:h { ex:s ex:p 2 }\n"
            url = f"{at.url}/streams/test?ack=each"
            async with at.session.post(url, data=data, headers=headers) as response:
                told = [orjson.loads(line) for line in (await response.read()).splitlines()]
            assert [each["events"] for each in told[1:-1]] == [1, 1]

    run(scene())


def test_a_stream_begins_with_its_version() -> None:
    async def scene() -> None:
        async with house() as at:
            async with at.session.get(at.url + "/streams/test?format=messages-nquads") as response:
                assert await response.content.readline() == HEAD
                assert (await response.content.readline()).startswith(b"# position {")
                at.append(1)
                found = b""
                while b"\nMESSAGE\n" not in found:
                    found += await response.content.readany()
            assert to_nquads(event(1).id, event(1).text).encode() in found

    run(scene())


@pytest.mark.parametrize("kind", list(Kind))
def test_notifications_are_messages(kind: Kind) -> None:
    async def scene() -> None:
        async with house() as at:
            since = at.subscribe(kind).since
            (position,) = at.append(1)
            at.match([(position, since, [0, 1] if kind is Kind.BINDINGS else None)])
            log = await polled(at, "/subscriptions/s1/notifications?mode=poll", TRIG)
            assert log.count(b"\nMESSAGE\n") == 1

    run(scene())


def test_other_versions_are_not_given() -> None:
    async def scene() -> None:
        async with house() as at:
            accept = {"Accept": "application/trig; version=1.1-messages"}
            assert (await at.problem("GET", "/streams/test", headers=accept))["status"] == 406

    run(scene())


@pytest.mark.skipif(
    not ((Path(N3) / "node_modules" / "n3").is_dir() and shutil.which("node")),
    reason="TRIPLEWIRE_N3 names no folder with N3.js",
)
@ALL
def test_n3_reads_what_is_told(syntax: Syntax) -> None:
    async def scene() -> bytes:
        async with house() as at:
            at.append(1, 2, 3)
            return await polled(at, "/streams/test?after=earliest&mode=poll", syntax)

    script = Path(__file__).with_name("messages.mjs")
    given = ["node", str(script), N3, syntax.media_type]
    told = subprocess.run(given, input=run(scene()), stdout=subprocess.PIPE, check=True, timeout=60).stdout
    found = [[each for each in orjson.loads(line) if "triplewire" not in each] for line in told.splitlines()]
    wanted = [to_nquads(event(n).id, event(n).text).splitlines() for n in (1, 2, 3)]
    if not syntax.graphs:
        wanted = [[line.replace(f" <{event(n).id}> .", " .") for line in each] for n, each in enumerate(wanted, 1)]
    assert found == wanted
