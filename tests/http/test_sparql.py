"""The SPARQL protocol at the door of history."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from io import BytesIO
from typing import Any

import aiohttp
import orjson
import pyoxigraph as ox
import pytest
from yarl import URL

from tests.history import scripted
from tests.http.harness import House, Said, house, run
from triplewire.history.pool import HistoryService, QueryWorkerPool
from triplewire.history.requests import HistoryRequest, QueryLimits
from triplewire.http.app import EdgeParts
from triplewire.model import errors
from triplewire.model.errors import TextPosition
from triplewire.sparql.syntax.queries import QUERY_BYTES

QUERY = "SELECT * { ?s ?p 'é+&' }"
DIRECT = {"Content-Type": "application/sparql-query"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
SD = "http://www.w3.org/ns/sparql-service-description#"


async def asked(at: House, method: str, **options: Any) -> dict[str, Any]:  # noqa: ANN401
    """What the door made of a request."""
    async with at.session.request(method, at.url + "/sparql", **options) as response:
        assert response.status == 200, await response.text()
        found: dict[str, Any] = orjson.loads(await response.read())
        return found


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("GET", {"params": {"query": QUERY}}),
        ("POST", {"data": {"query": QUERY}}),
        ("POST", {"data": QUERY.encode(), "headers": DIRECT}),
        ("POST", {"data": QUERY.encode(), "headers": {"Content-Type": "application/sparql-query; charset=utf-8"}}),
    ],
)
def test_a_query_is_taken_each_way_of_the_protocol(method: str, options: dict[str, Any]) -> None:
    async def scene() -> None:
        async with house() as at:
            assert (await asked(at, method, **options))["text"] == QUERY

    run(scene())


GRAPHS = [("default-graph-uri", "urn:a"), ("default-graph-uri", "urn:b"), ("named-graph-uri", "urn:c")]
OTHERS = [("format", "csv"), ("engine", "duckdb"), ("timeout", "2.5"), ("entailment", "rdfs"), ("version", "7")]


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("GET", {"params": [("query", QUERY), *GRAPHS, *OTHERS]}),
        ("POST", {"data": aiohttp.FormData([("query", QUERY), *GRAPHS, *OTHERS])}),
        ("POST", {"data": QUERY.encode(), "headers": DIRECT, "params": [*GRAPHS, *OTHERS]}),
    ],
)
def test_parameters_are_taken_each_way(method: str, options: dict[str, Any]) -> None:
    async def scene() -> None:
        async with house() as at:
            found = await asked(at, method, **options)
            assert found["default_graphs"] == ["urn:a", "urn:b"]
            assert found["named_graphs"] == ["urn:c"]
            assert (found["format"], found["engine"], found["seconds"]) == ("csv", "duckdb", 2.5)
            assert (found["entailment"], found["version"]) == ("rdfs", 7)

    run(scene())


def test_every_accept_header_counts() -> None:
    async def scene() -> None:
        async with house() as at:
            headers = [("Accept", "text/csv;q=0.5"), ("Accept", "text/turtle")]
            found = await asked(at, "GET", params={"query": QUERY}, headers=headers)
            assert found["accept"] == "text/csv;q=0.5,text/turtle"

    run(scene())


@pytest.mark.parametrize(
    ("options", "status", "word"),
    [
        ({"params": {"query": ""}}, 400, "empty"),
        ({"params": {"query": " \n"}}, 400, "empty"),
        ({"params": [("query", QUERY), ("query", QUERY)]}, 400, "2 times"),
        ({"params": {"query": QUERY, "timeout": "soon"}}, 400, "number of seconds"),
        ({"params": {"query": QUERY, "timeout": "-1"}}, 400, "above 0"),
        ({"params": {"query": QUERY, "timeout": "nan"}}, 400, "above 0"),
        ({"params": {"query": QUERY, "engine": "sqlite"}}, 400, "duckdb"),
        ({"params": {"query": QUERY, "version": "first"}}, 400, "number of a version"),
        ({"params": {"query": QUERY, "version": "-1"}}, 400, "number of a version"),
        ({"params": {"query": QUERY, "version": "9" * 30}}, 400, "number of a version"),
        ({"params": {"query": QUERY, "as_of": "yesterday"}}, 400, "with a zone"),
        ({"params": {"query": QUERY, "as_of": "2026-11-16T10:00:00"}}, 400, "with a zone"),
        ({"params": {"query": QUERY, "as_of": "2026-11-16T10:00:00Z", "version": "1"}}, 400, "not both"),
        ({"params": {"query": QUERY, "default-graph-uri": "no iri"}}, 400, "absolute IRI"),
        ({"params": [("query", QUERY), *[("named-graph-uri", "urn:a")] * 300]}, 400, "at most 256"),
        ({"params": {"update": "CLEAR ALL"}}, 422, "SPARQL Update"),
    ],
)
def test_what_cannot_be_is_refused(options: dict[str, Any], status: int, word: str) -> None:
    async def scene() -> None:
        async with house() as at:
            found = await at.problem("GET", "/sparql", **options)
            assert found["status"] == status
            assert word in found["detail"]

    run(scene())


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"x", {"Content-Type": "text/plain"}, 415),
        (b"CLEAR ALL", {"Content-Type": "application/sparql-update"}, 422),
        (b"update=CLEAR+ALL", FORM, 422),
        (b"other=1", FORM, 400),
        (b"\xff\xfe", DIRECT, 400),
        (b"query=%FF%FE", FORM, 400),
        (b"query=\xff", FORM, 400),
        (b"&".join([b"a=b"] * 10_000), FORM, 400),
        (b"", DIRECT, 400),
    ],
)
def test_bodies_that_are_no_query_are_refused(body: bytes, headers: dict[str, str], status: int) -> None:
    async def scene() -> None:
        async with house() as at:
            assert (await at.problem("POST", "/sparql", data=body, headers=headers))["status"] == status

    run(scene())


def test_a_query_in_the_address_and_one_in_the_body_are_two() -> None:
    async def scene() -> None:
        async with house() as at:
            found = await at.problem("POST", "/sparql", data=b"ASK {}", headers=DIRECT, params={"query": QUERY})
            assert (found["status"], "2 times" in found["detail"]) == (400, True)

    run(scene())


def test_large_queries_are_refused() -> None:
    async def scene() -> None:
        async with house() as at:
            large = BytesIO(b"query=" + b"a" * (QUERY_BYTES + 1))
            assert (await at.problem("POST", "/sparql", data=large, headers=FORM))["limit"] == QUERY_BYTES
            larger = b"#" * (4 * QUERY_BYTES + 1)
            assert (await at.problem("POST", "/sparql", data=BytesIO(larger), headers=DIRECT))["status"] == 413

    run(scene())


def test_an_address_that_is_not_utf_8_does_no_harm() -> None:
    async def scene() -> None:
        async with house() as at:
            address = URL(at.url + "/sparql?query=ASK%7B%7D%FF%ED%A0%80", encoded=True)
            async with at.session.get(address) as response:
                assert response.status in (200, 400)

    run(scene())


class Fixed:
    """Says the same to everybody, or refuses."""

    def __init__(self, said: Said | errors.TriplewireError) -> None:
        self.said = said

    async def ask(self, request: HistoryRequest) -> Said:
        if isinstance(self.said, errors.TriplewireError):
            raise self.said
        return self.said


def saying(said: Said | errors.TriplewireError) -> Callable[[EdgeParts], EdgeParts]:
    return lambda parts: replace(parts, answers=Fixed(said))


def test_what_history_refuses_is_told_with_its_place_and_the_line() -> None:
    async def scene() -> None:
        error = errors.Unsupported("SERVICE", place=TextPosition(2, 3), excerpt="  SERVICE\n  ^")
        async with house(change=saying(error)) as at:
            found = await at.problem("GET", "/sparql", params={"query": QUERY})
            assert (found["status"], found["construct"], found["line"], found["column"]) == (422, "SERVICE", 2, 3)
            assert found["excerpt"] == "  SERVICE\n  ^"

    run(scene())


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (errors.QueryLimit("30 s"), 503),
        (errors.AnswerTooLarge("rows"), 413),
        (errors.Unavailable("queue"), 503),
        (errors.NotAcceptable("text/html", ("text/csv",)), 406),
    ],
)
@pytest.mark.parametrize("late", [False, True])
def test_limits_are_told_until_the_first_piece_is_there(error: errors.TriplewireError, status: int, late: bool) -> None:
    async def scene() -> None:
        async with house(change=saying(Said([error]) if late else error)) as at:
            found = await at.problem("GET", "/sparql", params={"query": QUERY})
            assert found["status"] == status
            assert str(error) in found["detail"]

    run(scene())


def test_an_answer_that_ends_before_it_is_whole_is_cut_off() -> None:
    async def scene() -> None:
        said = Said([b"first", errors.QueryLimit("time")])
        async with house(change=saying(said)) as at:
            async with at.session.get(at.url + "/sparql", params={"query": QUERY}) as response:
                assert response.status == 200
                with pytest.raises(aiohttp.ClientError):
                    await response.read()
            assert said.closed

    run(scene())


def test_an_answer_without_a_piece_is_an_empty_body() -> None:
    async def scene() -> None:
        async with (
            house(change=saying(Said([], "application/n-triples"))) as at,
            at.session.get(at.url + "/sparql", params={"query": QUERY}) as response,
        ):
            assert (response.status, await response.read()) == (200, b"")
            assert (response.content_type, response.headers["Vary"]) == ("application/n-triples", "Accept")

    run(scene())


SYNTAXES = {
    "text/turtle": ox.RdfFormat.TURTLE,
    "application/ld+json": ox.RdfFormat.JSON_LD,
    "application/rdf+xml": ox.RdfFormat.RDF_XML,
}


@pytest.mark.parametrize("accept", SYNTAXES)
@pytest.mark.parametrize("services", [(), ("http://example.org/sparql",)])
def test_without_a_query_the_service_describes_itself(accept: str, services: tuple[str, ...]) -> None:
    async def scene() -> None:
        async with (
            house(change=lambda parts: replace(parts, services=services)) as at,
            at.session.get(at.url + "/sparql", headers={"Accept": accept}) as response,
        ):
            assert response.content_type == accept
            store = ox.Store()
            store.extend(ox.parse(await response.read(), format=SYNTAXES[accept]))
        text = f"ASK {{ <{at.url}/sparql> a <{SD}Service> ; <{SD}endpoint> <{at.url}/sparql> }}"
        assert store.query(text)
        federated = store.query(f"ASK {{ ?s <{SD}feature> <{SD}BasicFederatedQuery> }}")
        assert bool(federated) is bool(services)

    run(scene())


def test_a_description_in_no_known_syntax_is_refused() -> None:
    async def scene() -> None:
        async with house() as at:
            found = await at.problem("GET", "/sparql", headers={"Accept": "text/html"})
            assert (found["status"], "text/turtle" in found["known"]) == (406, True)

    run(scene())


@asynccontextmanager
async def whole(grace: float = 5) -> AsyncIterator[tuple[House, QueryWorkerPool]]:
    """A door with real processes behind it."""
    pool = QueryWorkerPool(scripted.launch(), QueryLimits(seconds=60, memory=scripted.MEMORY), processes=1, grace=grace)
    try:
        async with house(change=lambda parts: replace(parts, answers=HistoryService(pool))) as at:
            yield at, pool
    finally:
        pool.close()


def params(marker: str) -> dict[str, str]:
    return {"query": scripted.query(marker)}


def test_a_client_that_goes_away_cancels_its_query() -> None:
    async def scene() -> None:
        async with whole(grace=30) as (at, pool):
            await asked(at, "GET", params=params(""))
            first = pool.pids
            async with at.session.get(at.url + "/sparql", params=params("FLOOD")) as response:
                await response.content.readany()
            await asked(at, "GET", params=params(""))
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2):
                    await asked(at, "GET", params=params("WAIT"))
            await asked(at, "GET", params=params(""))
            assert pool.pids == first

    run(scene())


def test_a_process_that_dies_is_503_or_a_cut_and_the_next_is_answered() -> None:
    async def scene() -> None:
        async with whole() as (at, _):
            assert (await at.problem("GET", "/sparql", params=params("DIE")))["status"] == 503
            await asked(at, "GET", params=params(""))
            async with at.session.get(at.url + "/sparql", params=params("DIE LATER")) as response:
                assert response.status == 200
                with pytest.raises(aiohttp.ClientError):
                    await response.read()
            await asked(at, "GET", params=params(""))

    run(scene())


def test_a_reader_that_is_too_slow_is_cut_off_when_the_time_is_over() -> None:
    async def scene() -> None:
        async with whole(grace=0.5) as (at, pool):
            await asked(at, "GET", params=params(""))
            slow = {**params("FLOOD"), "timeout": "1"}
            async with at.session.get(at.url + "/sparql", params=slow) as response:
                assert response.status == 200
                # There is one process alone: this is answered when it is free again.
                await asked(at, "GET", params=params(""))
                with pytest.raises(aiohttp.ClientError):
                    await response.read()
            assert len(pool.pids) == 1

    run(scene())
