"""Histories of streams as linked pages, over sockets."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import aiohttp
import pyoxigraph as ox
import pytest

from tests.http.archives import MemoryArchive
from tests.http.brokers import broker
from tests.http.harness import House, house, run
from triplewire.http.app import EdgeLimits, EdgeParts
from triplewire.http.dialects.ldes import LDES_OPEN_PAGE_SECONDS, LDES_PAGE_SECONDS
from triplewire.model import END, Erasure, ErasureScope, Event, EventHeaders
from triplewire.storage.log.ports import LogRetention, Publication, SegmentLimits

TREE, LDES, TW = "https://w3id.org/tree#", "https://w3id.org/ldes#", "https://triplewire.dev/ns#"
XSD = "http://www.w3.org/2001/XMLSchema#"


SMALL = SegmentLimits(events=3)
"""Three events are a page."""
FEW = EdgeLimits(fanout=3)
"""Three pages are a node."""
small_house = partial(house, segments=SMALL, limits=FEW)


def some(*numbers: int) -> list[Event]:
    return [
        Event(f"urn:event:{each}", f'<urn:s{each}>\t<urn:p>\t"{each}"', EventHeaders(source="roof", time=each))
        for each in numbers
    ]


def publish(at: House, *numbers: int, stream: str = "home") -> None:
    for number in numbers:
        at.twin.clock.advance(1)
        at.twin.log.append([Publication(stream, some(number))])


async def got(
    at: House, path: str, accept: str = "application/n-quads", status: int = 200, **headers: str
) -> tuple[aiohttp.ClientResponse, bytes]:
    asked = {"Accept": accept} | {name.replace("_", "-"): value for name, value in headers.items()}
    async with at.session.get(at.url + path, headers=asked) as response:
        body = await response.read()
        assert response.status == status, body
        return response, body


async def page(at: House, path: str) -> ox.Store:
    response, body = await got(at, path)
    store = ox.Store()
    store.extend(ox.parse(body, format=ox.RdfFormat.from_media_type(response.content_type)))
    return store


def value(term: object) -> str:
    assert isinstance(term, ox.NamedNode | ox.Literal)
    return term.value


def members(store: ox.Store) -> list[str]:
    found = store.quads_for_pattern(None, ox.NamedNode(TREE + "member"), None)
    return sorted((value(quad.object) for quad in found), key=lambda each: int(each.rpartition(":")[2]))


def nodes(at: House, store: ox.Store) -> list[str]:
    found = store.quads_for_pattern(None, ox.NamedNode(TREE + "node"), None)
    return sorted({value(quad.object).removeprefix(at.url) for quad in found})


async def walked(at: House, path: str = "/streams/home/ldes") -> list[str]:
    """All members that are found from a node on, in the order of pages."""
    store = await page(at, path)
    below = [each for node in nodes(at, store) for each in await walked(at, node)]
    return members(store) + below


def test_all_events_are_found_once_by_following_relations() -> None:
    async def scene() -> None:
        async with small_house() as at:
            publish(at, *range(1, 15))
            publish(at, 99, stream="other")
            assert await walked(at) == [f"urn:event:{number}" for number in range(1, 15)]
            assert nodes(at, await page(at, "/streams/home/ldes")) == [f"/streams/home/ldes/1/{n}" for n in (0, 1)]

    run(scene())


def test_the_view_says_what_the_stream_promises() -> None:
    def kept(parts: EdgeParts) -> EdgeParts:
        return replace(parts, retention={"home": 43_200.0, "hall": 30 * 86_400.0}.get)

    async def scene() -> None:
        async with small_house(change=kept) as at:
            publish(at, 1)
            at.twin.registry.put([("about", "home", {"version_of": "urn:of"})])
            store = await page(at, "/streams/home/ldes")
            asked = f"""PREFIX tree: <{TREE}> PREFIX ldes: <{LDES}> PREFIX tw: <{TW}>
            ASK {{ ?stream a ldes:EventStream ; tree:view ?view ; ldes:timestampPath tw:received ;
                    ldes:sequencePath tw:position ; ldes:versionOfPath <urn:of> .
                  ?view a tree:Node ; ldes:retentionPolicy/ldes:fullLogDuration "PT43200S"^^<{XSD}duration> ;
                    tree:relation [ a tree:GreaterThanOrEqualToRelation ; tree:path tw:received ;
                      tree:value "2023-11-14T22:13:21Z"^^<{XSD}dateTime> ; tree:node ?node ]
                  FILTER(?stream = <{at.url}/streams/home> && ?view = <{at.url}/streams/home/ldes>) }}"""
            assert store.query(asked)
            publish(at, 2, stream="hall")
            _, body = await got(at, "/streams/hall/ldes")
            assert b'"P30D"' in body
            assert b"versionOfPath" not in body

    run(scene())


def test_members_are_graphs_with_what_is_said_of_them_outside() -> None:
    async def scene() -> None:
        async with small_house() as at:
            publish(at, 1)
            store = await page(at, "/streams/home/ldes/0/0")
            graph = ox.NamedNode("urn:event:1")
            (quad,) = store.quads_for_pattern(None, None, None, graph)
            assert (value(quad.subject), value(quad.object)) == ("urn:s1", "1")
            said = {
                each.predicate.value.removeprefix(TW): value(each.object)
                for each in store.quads_for_pattern(graph, None, None, ox.DefaultGraph())
            }
            assert said == {
                "stream": "home",
                "source": "roof",
                "time": "1970-01-01T00:00:00.000001Z",
                "received": "2023-11-14T22:13:21Z",
                "position": "0000000000000001",
            }

    run(scene())


@pytest.mark.parametrize(
    "accept", ["application/n-quads", "application/trig", "application/ld+json", "text/turtle", "application/rdf+xml"]
)
def test_pages_come_in_any_syntax(accept: str) -> None:
    async def scene() -> None:
        async with small_house() as at:
            publish(at, 1, 2)
            response, body = await got(at, "/streams/home/ldes/0/0", accept)
            assert response.content_type == accept
            assert {"Accept", "Authorization"} <= {each.strip() for each in response.headers["Vary"].split(",")}
            store = ox.Store()
            store.extend(ox.parse(body, format=ox.RdfFormat.from_media_type(accept)))
            assert members(store) == ["urn:event:1", "urn:event:2"]
            assert len(list(store.quads_for_pattern(ox.NamedNode("urn:s1"), None, None))) == 1
            problem = await at.problem("GET", "/streams/home/ldes", headers={"Accept": "image/png"})
            assert problem["status"] == 406

    run(scene())


def test_a_full_page_is_fixed_and_the_newest_is_not() -> None:
    async def scene() -> None:
        async with small_house() as at:
            publish(at, 1, 2, 3, 4)
            full, body = await got(at, "/streams/home/ldes/0/0")
            assert full.headers["Cache-Control"] == f"public, max-age={LDES_PAGE_SECONDS}, immutable"
            assert f'<{LDES}immutable> "true"'.encode() in body
            open, before = await got(at, "/streams/home/ldes/0/1")
            assert open.headers["Cache-Control"] == f"public, max-age={LDES_OPEN_PAGE_SECONDS}"
            assert b"immutable" not in before
            unchanged, nothing = await got(at, "/streams/home/ldes/0/1", status=304, If_None_Match=open.headers["ETag"])
            assert (nothing, unchanged.headers["ETag"]) == (b"", open.headers["ETag"])
            publish(at, 5)
            _, after = await got(at, "/streams/home/ldes/0/1", If_None_Match=open.headers["ETag"])
            assert b"urn:event:5" in after
            assert (await got(at, "/streams/home/ldes/0/0"))[1] == body

    run(scene())


def test_a_page_is_the_same_bytes_from_the_log_and_from_the_lake() -> None:
    archive = MemoryArchive(most=2)

    async def scene() -> None:
        async with small_house(change=lambda parts: replace(parts, archive=archive)) as at:
            publish(at, 1, 2)
            publish(at, 90, 91, stream="other")
            publish(at, 3, 4)
            before = [await got(at, f"/streams/home/ldes{path}", "application/trig") for path in ("", "/0/0", "/0/1")]
            archive.store(at.twin.log.read(0, END, 99), at.twin.log.head())
            at.twin.log.trim(LogRetention(size=0), before=at.twin.log.head() + 1)
            assert at.twin.log.read(0, END, 9).num_rows == 0
            after = [await got(at, f"/streams/home/ldes{path}", "application/trig") for path in ("", "/0/0", "/0/1")]
            assert [body for _, body in after] == [body for _, body in before]
            assert [each.headers["ETag"] for each, _ in after] == [each.headers["ETag"] for each, _ in before]

    run(scene())


def test_a_page_of_a_real_lake_is_the_same_bytes(tmp_path: Path) -> None:
    async def scene() -> None:
        async with broker(tmp_path, segments=SMALL) as made:
            made.publish(9)
            made.match()
            paths = ("", "/0/0", "/0/1")
            before = [await got(made.at, f"/streams/even/ldes{path}", "application/trig") for path in paths]
            made.store()
            made.trim()
            assert made.begin() > 5
            after = [await got(made.at, f"/streams/even/ldes{path}", "application/trig") for path in paths]
            assert [body for _, body in after] == [body for _, body in before]
            assert b"tab\\tnumber 4" in after[1][1]

    run(scene())


def test_what_is_erased_is_on_no_page() -> None:
    async def scene() -> None:
        async with small_house() as at:
            publish(at, *range(1, 5))
            full, _ = await got(at, "/streams/home/ldes/0/0")
            at.twin.log.erase(Erasure("e", ErasureScope.EVENT, "urn:event:2", END))
            assert await walked(at) == [f"urn:event:{number}" for number in (1, 3, 4)]
            again, _ = await got(at, "/streams/home/ldes/0/0", If_None_Match=full.headers["ETag"])
            assert again.headers["ETag"] != full.headers["ETag"]

    run(scene())


def test_pages_that_are_kept_no_more_are_gone_and_lead_to_those_that_are() -> None:
    async def scene() -> None:
        async with small_house() as at:
            publish(at, *range(1, 15))
            at.twin.log.trim(LogRetention(age=3.5), before=END)
            assert await walked(at) == [f"urn:event:{number}" for number in range(11, 15)]
            for path in ("0/0", "1/0"):
                gone = await at.problem("GET", f"/streams/home/ldes/{path}")
                assert gone["status"] == 410
                assert "/streams/home/ldes" in gone["detail"]
            missing = await at.problem("GET", "/streams/home/ldes/0/9")
            assert missing["status"] == 404

    run(scene())


def test_a_stream_of_few_events_is_read_without_all_others() -> None:
    async def scene() -> None:
        async with house(segments=SegmentLimits(events=3, gap=4), limits=FEW) as at:
            for number in (1, 2, 3):
                publish(at, number)
                at.twin.log.append([Publication("other", some(*range(100 * number, 100 * number + 50)))])
            assert members(await page(at, "/streams/home/ldes/0/0")) == [f"urn:event:{number}" for number in (1, 2, 3)]
            assert await walked(at) == [f"urn:event:{number}" for number in (1, 2, 3)]

    run(scene())


def test_a_stream_that_nobody_published_to_has_no_history() -> None:
    async def scene() -> None:
        async with small_house() as at:
            assert (await at.problem("GET", "/streams/none/ldes"))["status"] == 404
            assert (await at.problem("GET", "/streams/home/ldes/0/x"))["status"] == 404

    run(scene())
