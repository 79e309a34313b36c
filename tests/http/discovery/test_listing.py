"""What streams there are, over sockets."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pyoxigraph as ox
import pyshacl
import pytest
import rdflib

from tests.http.harness import House, house, run
from triplewire.history.dataset_statistics import DatasetStatistics, StatisticsRecord, dataset_statistics
from triplewire.http.app import EdgeLimits, EdgeParts
from triplewire.model import Event
from triplewire.model.terms import RDF_TYPE
from triplewire.security import Principal
from triplewire.storage.log.ports import Publication
from triplewire.storage.registry.security import PolicyStore
from triplewire.storage.registry.streams import ShapesCache, ValidationMode

RATE = "https://triplewire.dev/ns#rate"
SHAPES = Path(__file__).parent / "shapes.ttl"
TEXT = f'<urn:s>\t{RDF_TYPE}\t<http://example.org/Sensor>\n<urn:s>\t<http://example.org/value>\t"1"'


class Desk:
    """Knows everybody by a name, who may do what comes after it: `ann consume:city-* query`."""

    async def known(self, credential: str) -> Principal | None:
        name, *grants = credential.split()
        return Principal.granted(name, grants)


def guarded(parts: EdgeParts) -> EdgeParts:
    return replace(parts, authenticators=(Desk(),))


def validated(data: rdflib.Graph) -> tuple[bool, str]:
    """Whether the shapes hold, and what the report says."""
    with warnings.catch_warnings():
        # The library uses names of another that are to go.
        warnings.simplefilter("ignore", DeprecationWarning)
        conforms, _, report = pyshacl.validate(data, shacl_graph=str(SHAPES), shacl_graph_format="turtle")
    return bool(conforms), str(report)


def publish(at: House, *streams: str) -> None:
    for number, stream in enumerate(streams):
        at.twin.clock.advance(1)
        at.twin.log.append([Publication(stream, [Event(f"urn:event:{stream}:{number}", TEXT)])])


async def got(
    at: House, path: str, accept: str = "*/*", who: str | None = None
) -> tuple[aiohttp.ClientResponse, bytes]:
    headers = {"Accept": accept} | ({} if who is None else {"Authorization": f"Bearer {who}"})
    async with at.session.get(at.url + path, headers=headers) as response:
        return response, await response.read()


async def listed(at: House, path: str = "/streams", who: str | None = None) -> Any:  # noqa: ANN401
    response, body = await got(at, path, "application/json", who)
    assert response.status == 200, body
    return orjson.loads(body)


def test_streams_are_told_with_what_is_known_of_them() -> None:
    def kept(parts: EdgeParts) -> EdgeParts:
        return replace(parts, retention={"hall": 86_400.0}.get)

    async def scene() -> None:
        async with house(change=kept) as at:
            publish(at, "home", "home", "hall")
            said = {
                "title": "The house",
                "licence": "https://creativecommons.org/publicdomain/zero/1.0/",
                "keywords": ["rooms"],
            }
            async with at.session.put(f"{at.url}/streams/home/about", json=said) as response:
                assert (response.status, await response.json()) == (200, {"stream": "home", **said})
            found = await listed(at)
            assert [each["stream"] for each in found["streams"]] == ["hall", "home"]
            hall, home = found["streams"]
            assert {name: home[name] for name in said} == said
            assert (home["events"], home["rate"], home["kept"], home["clients"]) == (2, 1.0, None, 0)
            _, turtle = await got(at, "/streams/home/about", "text/turtle")
            rates = [
                each.object for each in ox.parse(turtle, format=ox.RdfFormat.TURTLE) if each.predicate.value == RATE
            ]
            assert [each.value for each in rates] == ["1.000"]
            assert (hall["title"], hall["kept"], hall["until"]) == ("hall", "P1D", "2023-11-14T22:13:23Z")
            assert "http://example.org/" in home["vocabularies"]
            assert home["sample"]["classes"] == {"http://example.org/Sensor": 2}
            assert home["listen"]["sse"] == {"type": "text/event-stream", "url": f"{at.url}/streams/home?format=sse"}
            assert home["history"] == f"{at.url}/streams/home/ldes"
            about = await listed(at, "/streams/home/about")
            assert {name: home[name] for name in about} == about
            assert (await at.problem("GET", "/streams/none/about"))["status"] == 404

    run(scene())


@pytest.mark.parametrize("mode", [None, "refuse", "mark"])
def test_shapes_are_led_to_and_promised_where_they_hold(mode: str | None) -> None:
    async def scene() -> None:
        async with house() as at:
            publish(at, "home")
            address = f"{at.url}/streams/home"
            if mode is not None:
                shape = f"<urn:shape>\t{RDF_TYPE}\t<http://www.w3.org/ns/shacl#NodeShape>"
                ShapesCache(at.twin.registry).put("home", ValidationMode(mode), shape)
            (home,) = (await listed(at))["streams"]
            assert home.get("shapes") == (None if mode is None else {"url": f"{address}/shapes", "mode": mode})
            _, catalogue = await got(at, "/streams", "application/n-triples")
            assert (f"conformsTo> <{address}/shapes>".encode() in catalogue) is (mode is not None)
            _, view = await got(at, "/streams/home/ldes", "application/n-quads")
            assert (f"tree#shape> <{address}/shapes>".encode() in view) is (mode == "refuse")

    run(scene())


@pytest.mark.parametrize("accept", ["text/turtle", "application/ld+json", "application/rdf+xml", "application/trig"])
def test_the_catalogue_is_dcat_and_conforms(accept: str) -> None:
    async def scene() -> bytes:
        async with house() as at:
            publish(at, "home", "hall")
            at.twin.registry.put([("about", "home", {"title": 'A "house"', "licence": "urn:free", "keywords": ["a"]})])
            response, body = await got(at, "/streams", accept)
            assert (response.status, response.content_type) == (200, accept)
            _, one = await got(at, "/streams/home/about", accept)
            assert len(list(ox.parse(one, format=ox.RdfFormat.from_media_type(accept)))) > 20
            return body

    body = run(scene())
    quads = list(ox.parse(body, format=ox.RdfFormat.from_media_type(accept)))
    plain = ox.serialize((quad.triple for quad in quads), format=ox.RdfFormat.N_TRIPLES)
    assert plain
    data = rdflib.Graph().parse(data=plain, format="nt")
    conforms, report = validated(data)
    assert conforms, report
    dcat = rdflib.Namespace("http://www.w3.org/ns/dcat#")
    assert len(set(data.subjects(rdflib.RDF.type, dcat.Dataset))) == 2
    less = rdflib.Graph()
    less += (each for each in data if each[1] != dcat.accessURL)
    assert not validated(less)[0]


def test_there_are_pages_of_streams() -> None:
    async def scene() -> None:
        async with house(change=guarded, limits=EdgeLimits(streams=2)) as at:
            publish(at, "a", "b", "c", "d", "e")
            found, path = [], "/streams"
            for _ in range(3):
                response, body = await got(at, path, "application/json", "ann consume")
                found.append([each["stream"] for each in orjson.loads(body)["streams"]])
                path = str(response.links["next"]["url"]).removeprefix(at.url) if "next" in response.links else ""
            assert (found, path) == ([["a", "b"], ["c", "d"], ["e"]], "")
            some = await listed(at, who="bob consume:b consume:e")
            assert [each["stream"] for each in some["streams"]] == ["b", "e"]

    run(scene())


def test_whoever_sees_some_streams_is_told_of_those() -> None:
    async def scene() -> None:
        async with house(change=guarded) as at:
            publish(at, "city-1", "home")
            found = await listed(at, who="ann consume:city-*")
            assert [each["stream"] for each in found["streams"]] == ["city-1"]
            _, body = await got(at, "/streams", "text/turtle", "ann consume:city-*")
            assert b"/home" not in body
            response, _ = await got(at, "/streams/home/about", who="ann consume:city-*")
            assert response.status == 403
            response, _ = await got(at, "/streams")
            assert response.status == 401
            async with at.session.put(
                f"{at.url}/streams/home/about", json={}, headers={"Authorization": "Bearer ann consume"}
            ) as response:
                assert response.status == 403

    run(scene())


def test_what_a_policy_hides_is_in_no_count_and_on_no_page() -> None:
    policy = """
    [default]
    see = "allow"
    publish = "allow"
    [[see]]
    name = "no values"
    who = ["name:ann"]
    deny.predicates = ["<http://example.org/value>"]
    """

    async def scene() -> None:
        async with house(change=guarded) as at:
            publish(at, "home")
            PolicyStore(at.twin.registry).load(policy)
            (ann,) = (await listed(at, who="ann consume"))["streams"]
            assert {"events", "rate", "bytes"}.isdisjoint(ann)
            assert list(ann["sample"]["predicates"]) == [RDF_TYPE[1:-1]]
            (bob,) = (await listed(at, who="bob consume"))["streams"]
            assert (bob["events"], len(bob["sample"]["predicates"])) == (1, 2)
            for who, shown in (("ann consume", False), ("bob consume", True)):
                response, body = await got(at, "/streams/home/ldes/0/0", "application/n-quads", who)
                assert (b"example.org/value" in body) == shown
                assert response.headers["Cache-Control"].startswith("private")

    run(scene())


def test_what_flows_out_is_told_to_those_who_see_all_of_a_stream() -> None:
    """What others hear would say how much there is that somebody does not see."""
    policy = """
    [default]
    see = "allow"
    publish = "allow"
    [[see]]
    name = "no values"
    who = ["name:ann"]
    deny.predicates = ["<http://example.org/value>"]
    """

    async def scene() -> None:
        async with house(change=guarded) as at:
            PolicyStore(at.twin.registry).load(policy)
            async with at.session.get(f"{at.url}/streams/home", headers={"Authorization": "Bearer bob consume"}) as ear:
                await ear.content.readline()
                publish(at, "home")
                bob, cy, ann = [
                    await listed(at, who=f"{who}") for who in ("bob consume", "cy consume:home", "ann consume")
                ]
            assert [each["streams"][0].get("clients") for each in (bob, cy, ann)] == [1, 1, None]
            assert {"messages", "plain_bytes", "sent_bytes", "waiting"}.isdisjoint(ann["streams"][0])
            assert ["notifications" in each for each in (bob, cy, ann)] == [True, False, False]

    run(scene())


def test_all_of_it_is_told_as_void_to_those_who_see_all() -> None:
    counted = DatasetStatistics(12, 1, 3, (("<urn:p>", 12),))

    async def scene() -> None:
        async with house(change=lambda parts: replace(guarded(parts), statistics=lambda: counted)) as at:
            _, body = await got(at, "/.well-known/void", "text/turtle", "ann query consume")
            found = list(ox.parse(body, format=ox.RdfFormat.TURTLE))
            assert {quad.object.value for quad in found if quad.predicate.value.endswith("#triples")} == {"12"}
            _, less = await got(at, "/.well-known/void", "text/turtle", "ann consume:home")
            assert b"sparqlEndpoint" in less
            assert b"triples" not in less

    run(scene())


def test_a_census_is_of_what_was_written_down() -> None:
    registers = [bytes([2] * 256).hex()] * 3
    facts: list[list[Any]] = [["<urn:p>", "iri", None, 5], ["<urn:q>", "iri", None, 1], ["<urn:p>", "literal", "x", 2]]
    found = dataset_statistics(9, StatisticsRecord(4, 0, 8, facts, {"<urn:p>": registers, "<urn:q>": registers}))
    assert (found.triples, found.properties, found.predicates) == (9, 2, (("<urn:p>", 7), ("<urn:q>", 1)))
    assert 0 < found.subjects <= 8
    assert dataset_statistics(9, None) == DatasetStatistics(9)


def test_answers_lead_on() -> None:
    async def scene() -> None:
        async with house() as at:
            publish(at, "home")
            response, _ = await got(at, "/")
            assert str(response.links["api-catalog"]["url"]) == f"{at.url}/.well-known/api-catalog"
            assert str(response.links["service-desc"]["url"]) == f"{at.url}/openapi.json"
            async with at.listen("/streams/home") as ear:
                assert str(ear.response.links["describedby"]["url"]) == f"{at.url}/streams/home/about"
            response, body = await got(at, "/.well-known/api-catalog")
            assert response.content_type == "application/linkset+json"
            (known,) = orjson.loads(body)["linkset"]
            hrefs = [link["href"] for links in known.values() if isinstance(links, list) for link in links]
            statuses = {href: (await got(at, href.removeprefix(at.url)))[0].status for href in hrefs}
            assert {status for href, status in statuses.items() if not href.endswith("/health")} == {200}

    run(scene())


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b'{"title": 3}', "title"),
        (b'{"licence": "free"}', "licence"),
        (b'{"keywords": "a"}', "keywords"),
        (b'{"titel": "a"}', "titel"),
        (b"[]", None),
        (b"{", None),
    ],
)
def test_what_does_not_fit_is_not_said(body: bytes, field: str | None) -> None:
    async def scene() -> None:
        async with house() as at:
            problem = await at.problem("PUT", "/streams/home/about", data=body)
            assert problem["status"] == (400 if field is None else 422)
            assert problem.get("field") == field
            assert at.twin.registry.get("about", "home") is None

    run(scene())
