"""Every route of a whole edge, as it is composed for production, with everything that somebody can show.

The routes come from the router, so that a new one is in here by itself.
"""

from __future__ import annotations

import pytest

from tests.http.auth.harness import bearer
from tests.http.auth.scenes import Route, Scene, scene
from tests.http.harness import run

REFUSED = (401, 403)


@pytest.fixture(scope="module")
def statuses(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, list[int]]]:
    """Of each route what is answered, by what was shown."""

    async def found() -> dict[str, dict[str, list[int]]]:
        async with scene(tmp_path_factory.mktemp("edge")) as at:
            return {f"{each.method} {each.path} {each.operation.id}": await asked(at, each) for each in at.routes}

    return run(found())


async def asked(at: Scene, route: Route) -> dict[str, list[int]]:
    shown: dict[str, list[dict[str, str] | None]] = {
        "nothing": [None],
        "garbage": [{"Authorization": "Bearer x"}, {"Authorization": "Basic eDp5"}, {"Authorization": ""}],
        "unknown": [bearer(at.bad.unknown)],
        "revoked": [bearer(at.bad.revoked)],
        "expired": [bearer(at.bad.expired)],
        "wrong": [bearer(at.token(*route.others()))] if route.others() else [],
        "right": [bearer(at.token(each)) for each in route.scopes],
    }
    return {name: [await at.status(route, each) for each in headers] for name, headers in shown.items()}


def closed(statuses: dict[str, dict[str, list[int]]]) -> dict[str, dict[str, list[int]]]:
    """Those that need a grant: all have a right one."""
    return {route: found for route, found in statuses.items() if found["right"]}


def test_there_are_routes_of_every_kind(statuses: dict[str, dict[str, list[int]]]) -> None:
    assert len(closed(statuses)) > 30
    assert {route.split()[0] for route in closed(statuses)} >= {"GET", "POST", "PUT", "DELETE"}


@pytest.mark.parametrize("shown", ["nothing", "garbage", "unknown", "revoked", "expired"])
def test_nobody_comes_in_without_a_good_token(statuses: dict[str, dict[str, list[int]]], shown: str) -> None:
    found = {route: each[shown] for route, each in closed(statuses).items() if set(each[shown]) != {401}}
    assert found == {}


def test_nobody_comes_in_by_other_grants(statuses: dict[str, dict[str, list[int]]]) -> None:
    found = {route: each["wrong"] for route, each in closed(statuses).items() if each["wrong"] != [403]}
    assert found == {}


def test_each_of_the_right_grants_lets_in(statuses: dict[str, dict[str, list[int]]]) -> None:
    """What becomes of a request that says nothing else is another matter: it is no fault of the edge."""
    found = {route: each["right"] for route, each in closed(statuses).items()}
    assert {route: each for route, each in found.items() if any(one in REFUSED or one == 500 for one in each)} == {}


def test_open_ones_ask_for_nothing_and_are_few(statuses: dict[str, dict[str, list[int]]]) -> None:
    """An operation without a verb is for everyone: whoever adds one says so here."""
    open_ones = {route.split()[-1] for route, found in statuses.items() if not found["right"]}
    assert open_ones <= {"index", "health", "openapi", "asyncapi", "docs", "apiCatalog"}
    for found in statuses.values():
        if not found["right"]:
            assert not {one for each in found.values() for one in each} & {*REFUSED, 500}
