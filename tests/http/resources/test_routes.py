"""The routes of control, over sockets, with the problem documents of the edge around them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from io import BytesIO
from typing import Any

import pytest

from tests.http.harness import House, house, run
from triplewire.http.app import EdgeParts
from triplewire.http.resources import access_control
from triplewire.http.resources.bodies import SUBSCRIPTION_BODY_BYTES
from triplewire.http.resources.explain import SubscriptionExplainer
from triplewire.http.resources.ontologies import OntologyManager
from triplewire.http.resources.routes import registry_routes
from triplewire.http.resources.subscription_requests import BackfillStarts
from triplewire.http.resources.subscriptions import SubscriptionManager
from triplewire.model import format_position
from triplewire.storage.registry.security import PolicyStore
from triplewire.storage.registry.subscriptions import LANE, SHAPE

LARGE = b"x" * (SUBSCRIPTION_BODY_BYTES + 1)
QUERY = "SELECT ?s { ?s <urn:p> 1 }"


@asynccontextmanager
async def controlled() -> AsyncIterator[House]:
    def with_control(parts: EdgeParts) -> EdgeParts:
        starts = BackfillStarts(parts.log, parts.clock)
        subscriptions = SubscriptionManager(parts.registry, parts.clock, starts=starts)
        insights = SubscriptionExplainer(subscriptions, parts.registry, parts.log, parts.clock)
        made = [
            *registry_routes(subscriptions, OntologyManager(parts.registry), insights),
            *access_control.policy_routes(PolicyStore(parts.registry)),
        ]
        return replace(parts, routes=made)

    async with house(change=with_control) as at:
        yield at


async def call(at: House, method: str, path: str, status: int, **options: Any) -> Any:  # noqa: ANN401
    async with at.session.request(method, at.url + path, **options) as response:
        assert response.status == status, await response.text()
        return await response.json() if response.content_length else dict(response.headers)


def test_a_subscription_is_made_seen_and_ended() -> None:
    async def scene() -> None:
        async with controlled() as at:
            wish = {"sparql": QUERY, "kind": "event", "stream": "weather"}
            async with at.session.post(at.url + "/subscriptions", json=wish) as response:
                made = await response.json()
                assert response.status == 201
                assert response.headers["Location"] == f"/subscriptions/{made['id']}"
            assert made == {
                **wish,
                "id": made["id"],
                "created": "2023-11-14T22:13:20Z",
                "since": format_position(2),
                "notifications": f"/subscriptions/{made['id']}/notifications",
            }
            assert await call(at, "GET", f"/subscriptions/{made['id']}", 200) == {**made, "sharing": 1}
            (shape,) = at.twin.registry.list(SHAPE)
            (moved,) = at.twin.registry.put([(LANE, shape.key, {"cost": 0.0125})])
            told = await call(at, "GET", f"/subscriptions/{made['id']}", 200)
            assert told["lane"] == {"name": "slow", "since": format_position(moved), "milliseconds_per_event": 12.5}
            await call(at, "DELETE", f"/subscriptions/{made['id']}", 204)
            for method in ("GET", "DELETE"):
                assert (await at.problem(method, f"/subscriptions/{made['id']}"))["status"] == 404

    run(scene())


def test_many_are_made_at_once_and_listed_by_pages() -> None:
    async def scene() -> None:
        async with controlled() as at:
            made = await call(at, "POST", "/subscriptions", 201, json=[{"sparql": QUERY}] * 5)
            assert len({each["id"] for each in made}) == 5
            first = await call(at, "GET", "/subscriptions?limit=3", 200)
            rest = await call(at, "GET", f"/subscriptions?limit=3&cursor={first['next']}", 200)
            assert first["subscriptions"] + rest["subscriptions"] == made
            assert rest["next"] is None

    run(scene())


@pytest.mark.parametrize(
    ("options", "status", "extras"),
    [
        ({"json": {"sparql": "SELECT ?s WHERE { ?s <urn:p> "}}, 400, {"line"}),
        ({"json": {"sparql": "SELECT * { ?s <urn:p> ?o FILTER <urn:f>(?o) }"}}, 422, {"construct", "line"}),
        ({"json": {"sparql": QUERY, "kind": "x"}}, 422, {"field"}),
        ({"json": []}, 400, set()),
        ({"data": b"{", "headers": {"Content-Type": "application/json"}}, 400, set()),
        ({"data": b"{}", "headers": {"Content-Type": "text/plain"}}, 415, {"known"}),
        ({"data": BytesIO(LARGE), "headers": {"Content-Type": "application/json"}}, 413, {"limit"}),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_made(options: dict[str, Any], status: int, extras: set[str]) -> None:
    async def scene() -> None:
        async with controlled() as at:
            found = await at.problem("POST", "/subscriptions", **options)
            assert found["status"] == status
            assert extras <= set(found)
            assert at.twin.log.head() == 0

    run(scene())


def test_the_construct_that_is_not_supported_is_named_with_its_place() -> None:
    async def scene() -> None:
        async with controlled() as at:
            text = "SELECT * {\n  ?s <urn:p> ?o\n  FILTER <urn:f>(?o)\n}"
            found = await at.problem("POST", "/subscriptions", json={"sparql": text})
            assert (found["status"], found["line"], found["column"]) == (422, 3, 10)
            assert "urn:f" in found["construct"]

    run(scene())


@pytest.mark.parametrize("query", ["limit=0", "limit=x", "limit=99999", "cursor=x"])
def test_a_page_that_cannot_be_is_refused(query: str) -> None:
    async def scene() -> None:
        async with controlled() as at:
            assert (await at.problem("GET", f"/subscriptions?{query}"))["status"] == 400

    run(scene())


def test_a_subscription_holds_for_what_is_published_after_the_answer() -> None:
    async def scene() -> None:
        async with controlled() as at:
            made = await call(at, "POST", "/subscriptions", 201, json={"sparql": QUERY})
            (position,) = at.append(1)
            assert made["since"] < format_position(position)
            at.match([(position, position - 1, None)])
            async with at.listen(made["notifications"]) as ear:
                assert (await ear.next()).id == format_position(position)

    run(scene())
