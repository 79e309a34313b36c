"""The door of an edge, with people that it knows by name."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass, field, replace

import pytest

from tests.http.harness import body, house, run
from triplewire.http.app import EdgeParts
from triplewire.http.openapi import operation_of
from triplewire.model.errors import Unauthenticated
from triplewire.security import Principal
from triplewire.testing.samples import event


@dataclass
class Acquaintances:
    """Knows people by their names alone."""

    people: dict[str, Principal] = field(default_factory=dict)

    async def known(self, credential: str) -> Principal | None:
        if credential == "stolen":
            raise Unauthenticated("this one was stolen", given=True)
        return self.people.get(credential)


def guarded(**grants: str) -> Acquaintances:
    return Acquaintances({name: Principal.granted(name, text.split()) for name, text in grants.items()})


def shut(parts: EdgeParts, **grants: str) -> EdgeParts:
    return replace(parts, authenticators=(guarded(**grants),))


def bearer(name: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {name}"}


def test_an_open_door_asks_for_nothing() -> None:
    async def check() -> None:
        async with house() as home, home.session.get(home.url + "/edges") as response:
            assert response.status == 200

    run(check())


@pytest.mark.parametrize(
    ("shown", "status", "challenge"),
    [
        (None, 401, "Bearer"),
        ("Bearer nobody", 401, 'Bearer error="invalid_token"'),
        ("Bearer stolen", 401, 'Bearer error="invalid_token"'),
        ("Bearer", 401, 'Bearer error="invalid_token"'),
        ("Basic YW5uOmFubg==", 401, 'Bearer error="invalid_token"'),
        ("Bearer ann", 403, 'Bearer error="insufficient_scope", scope="publish:office"'),
    ],
)
def test_who_is_refused_is_told_what_to_show(shown: str | None, status: int, challenge: str) -> None:
    async def check() -> None:
        async with house(change=lambda parts: shut(parts, ann="publish:home")) as home:
            headers = {"Authorization": shown} if shown else {}
            async with home.session.post(home.url + "/streams/office", headers=headers, data=b"") as response:
                assert response.status == status
                assert response.content_type == "application/problem+json"
                assert response.headers["WWW-Authenticate"] == challenge

    run(check())


def test_who_may_is_let_in() -> None:
    async def check() -> None:
        async with house(change=lambda parts: shut(parts, ann="publish:home consume:home")) as home:
            headers = {**bearer("ann"), "Content-Type": "application/n-quads"}
            async with home.session.post(home.url + "/streams/home", headers=headers, data=body(event(1))) as response:
                assert response.status == 201
            async with home.session.get(home.url + "/streams/home?access_token=ann") as response:
                assert response.status == 200

    run(check())


@pytest.mark.parametrize(
    ("method", "shown", "status"),
    [
        ("GET", "x:ann", 200),
        ("GET", ":ann", 200),
        ("GET", "ann", 401),
        ("GET", "ann:", 401),
        ("GET", "x:nobody", 401),
        ("PUT", "x:ann", 401),
    ],
)
def test_who_knows_nothing_but_passwords_shows_a_token_as_one_to_read(method: str, shown: str, status: int) -> None:
    async def check() -> None:
        async with house(change=lambda parts: shut(parts, ann="* consume")) as home:
            headers = {"Authorization": f"Basic {b64encode(shown.encode()).decode()}"}
            path = "/streams" if method == "GET" else "/streams/home/about"
            async with home.session.request(method, home.url + path, headers=headers, data=b"{}") as response:
                assert response.status == status

    run(check())


def test_an_address_is_no_place_for_a_token_that_changes_something() -> None:
    async def check() -> None:
        async with house(change=lambda parts: shut(parts, ann="publish")) as home:
            problem = await home.problem("POST", "/streams/home?access_token=ann", data=b"")
            assert problem["status"] == 401

    run(check())


def test_streams_that_events_say_themselves_are_looked_at() -> None:
    async def check() -> None:
        async with house(change=lambda parts: shut(parts, ann="publish:home")) as home:
            said = b'<urn:e:1> <https://triplewire.dev/ns#stream> "office" .\n<urn:s> <urn:p> <urn:o> <urn:e:1> .\n'
            headers = {**bearer("ann"), "Content-Type": "application/n-quads"}
            problem = await home.problem("POST", "/events", headers=headers, data=said)
            assert (problem["status"], problem["scope"]) == (403, "publish:office")

    run(check())


@pytest.mark.parametrize("shown", [None, "Bearer stolen", "Basic x", "Bearer bob"])
def test_health_is_for_everyone_and_how_much_there_is_for_administrators(shown: str | None) -> None:
    async def check() -> None:
        async with house(change=lambda parts: shut(parts, ann="admin", bob="query consume")) as home:
            headers = {"Authorization": shown} if shown else {}
            async with home.session.get(home.url + "/health", headers=headers) as response:
                found = await response.json()
            assert {"status", "head", "stored", "lag"} <= found.keys()
            assert {"lake", "listeners", "lanes"}.isdisjoint(found)
            async with home.session.get(home.url + "/health", headers=bearer("ann")) as response:
                assert {"lake", "listeners", "lanes"} <= (await response.json()).keys()

    run(check())


def test_where_there_is_nothing_nobody_is_asked_for_a_token() -> None:
    async def check() -> None:
        async with house(change=lambda parts: shut(parts, ann="publish")) as home:
            assert (await home.problem("GET", "/nowhere"))["status"] == 404

    run(check())


def test_every_route_says_which_operation_it_serves() -> None:
    async def check() -> None:
        async with house() as home:
            silent = [str(each) for each in home.runner.app.router.routes() if operation_of(each.handler) is None]
            assert silent == []

    run(check())
