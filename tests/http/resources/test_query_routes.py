"""The routes of continuous queries, over sockets, with the problem documents of the edge around them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from io import BytesIO
from typing import Any

import orjson
import pytest

from tests.http.harness import House, house, run
from tests.http.resources.test_continuous_queries import MADE, PLAIN, WINDOWED
from tests.http.resources.test_routes import call
from triplewire.http.app import EdgeParts
from triplewire.http.resources import continuous_queries
from triplewire.http.resources.bulk import NDJSON
from triplewire.http.resources.continuous_queries import ContinuousQueryManager
from triplewire.http.resources.subscription_requests import BackfillStarts
from triplewire.model import format_position
from triplewire.sparql.syntax.queries import QUERY_BYTES

SPARQL = {"Content-Type": "application/sparql-query"}
LINES = {"Content-Type": NDJSON}
TEXT = PLAIN.format("a", 1)


@asynccontextmanager
async def controlled(figures: Callable[[str], Mapping[str, Any] | None] = lambda id: None) -> AsyncIterator[House]:
    def with_queries(parts: EdgeParts) -> EdgeParts:
        starts = BackfillStarts(parts.log, parts.clock)
        known = lambda stream: parts.log.volume(stream) is not None  # noqa: E731
        queries = ContinuousQueryManager(parts.registry, parts.clock, known, starts=starts, figures=figures)
        return replace(parts, routes=continuous_queries.query_routes(queries))

    async with house(change=with_queries) as at:
        at.append(1, stream="home")
        yield at


def test_a_query_is_registered_seen_and_ended() -> None:
    async def scene() -> None:
        async with controlled(lambda id: {"rows": 7}) as at:
            asked = {"query": TEXT, "name": "x", "streams": ["home"], "within": "PT1M", "span": 9, "semantics": "set"}
            async with at.session.post(at.url + "/queries", json={**asked, "from": "earliest"}) as response:
                made = await response.json()
                assert response.status == 201
                assert response.headers["Location"] == f"/queries/{made['id']}"
            assert made == {
                **asked,
                "id": made["id"],
                "state": "on",
                "within": 60.0,
                "from": "earliest",
                "created": "2023-11-14T22:13:20Z",
                "since": format_position(3),
                "answers": f"/queries/{made['id']}/answers",
            }
            assert await call(at, "GET", f"/queries/{made['id']}", 200) == {**made, "figures": {"rows": 7}}
            async with at.session.get(f"{at.url}{made['answers']}?mode=poll&wait=0") as response:
                assert response.status == 204
            await call(at, "DELETE", f"/queries/{made['id']}", 204)
            for method in ("GET", "DELETE"):
                assert (await at.problem(method, f"/queries/{made['id']}"))["status"] == 404

    run(scene())


def test_windows_tell_their_clock_and_their_stream() -> None:
    async def scene() -> None:
        async with controlled() as at:
            made = await call(at, "POST", "/queries", 201, json={"query": WINDOWED, "time": "event", "lateness": 5})
            assert {name: made[name] for name in ("name", "into", "stream", "time", "lateness", "late")} == {
                "name": "hot",
                "into": "hot",
                "stream": "/streams/hot",
                "time": "event",
                "lateness": 5.0,
                "late": "drop",
            }
            assert "semantics" not in made

    run(scene())


@pytest.mark.parametrize("media_type", ["application/sparql-query", "text/plain", "text/plain; charset=utf-8"])
def test_a_text_is_a_query_and_the_address_says_the_rest(media_type: str) -> None:
    async def scene() -> None:
        async with controlled() as at:
            path, sent = "/queries?within=PT1M&streams=home&name=met", {"Content-Type": media_type}
            made = await call(at, "POST", path, 201, data=MADE.encode(), headers=sent)
            assert (made["query"], made["within"], made["streams"], made["into"]) == (MADE, 60.0, ["home"], "met")

    run(scene())


def test_many_are_registered_at_once_and_listed_by_pages() -> None:
    async def scene() -> None:
        async with controlled() as at:
            made = await call(at, "POST", "/queries", 201, json=[{"query": TEXT}] * 5)
            assert len({each["id"] for each in made}) == 5
            first = await call(at, "GET", "/queries?limit=3", 200)
            second = await call(at, "GET", f"/queries?limit=3&cursor={first['next']}", 200)
            assert [*first["queries"], *second["queries"]] == made
            assert second["next"] is None

    run(scene())


def test_of_lines_each_is_registered_or_says_why_not() -> None:
    async def scene() -> None:
        async with controlled() as at:
            lines = [{"query": TEXT}, {"query": "SELECT"}, {"query": TEXT, "span": 0}, 5, {"query": WINDOWED}]
            body = b"".join(orjson.dumps(each) + b"\n" for each in lines)
            async with at.session.post(at.url + "/queries", data=body, headers=LINES) as response:
                assert (response.status, response.content_type) == (200, NDJSON)
                told = [orjson.loads(each) for each in (await response.read()).splitlines()]
            assert [each["line"] for each in told] == [1, 2, 3, 4, 5]
            assert [each.get("error", {}).get("status") for each in told] == [None, 400, 422, 400, None]
            assert {"id", "position"} <= told[0].keys()
            assert {"line", "column"} <= told[1]["error"].keys()
            assert len((await call(at, "GET", "/queries", 200))["queries"]) == 2

    run(scene())


@pytest.mark.parametrize(
    ("options", "status", "told"),
    [
        ({"json": {"query": "SELECT"}}, 400, {"line", "column"}),
        ({"json": {"query": TEXT, "kind": "signal"}}, 422, {"field"}),
        ({"json": {"query": f"{TEXT} LIMIT 5"}}, 422, {"construct", "line", "column", "excerpt"}),
        ({"json": {"query": WINDOWED.replace("<home>", "<nowhere>")}}, 422, {"field", "line", "column", "excerpt"}),
        ({"json": {"query": WINDOWED, "into": "home"}}, 422, {"field"}),
        ({"json": {"query": MADE}}, 422, {"field"}),
        ({"json": []}, 400, set()),
        ({"json": 5}, 400, set()),
        ({"data": b"{", "headers": {"Content-Type": "application/json"}}, 400, set()),
        ({"data": TEXT.encode(), "headers": {"Content-Type": "text/turtle"}}, 415, {"known"}),
        ({"data": b"\xff", "headers": SPARQL}, 400, set()),
        ({"data": b"", "headers": SPARQL}, 422, {"field"}),
        ({"data": TEXT.encode(), "headers": SPARQL, "params": {"ttl": "5"}}, 422, {"field"}),
        ({"data": BytesIO(b"#" * (QUERY_BYTES + 1)), "headers": SPARQL}, 413, {"limit"}),
    ],
)
def test_what_cannot_be_is_refused_with_what_is_wrong(options: dict[str, Any], status: int, told: set[str]) -> None:
    async def scene() -> None:
        async with controlled() as at:
            problem = await at.problem("POST", "/queries", **options)
            assert problem["status"] == status, problem
            assert told <= problem.keys()

    run(scene())
