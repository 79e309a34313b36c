"""The policy over sockets: put, read, its versions, and removed."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import pytest

from tests.http.harness import run
from tests.http.resources.test_routes import call, controlled
from triplewire.model import format_position
from triplewire.security.policy import POLICY_BYTES

OPEN = '[default]\nsee = "allow"\npublish = "allow"\n'
RULED = OPEN + '[[see]]\nname = "r"\nwho = ["*"]\ndeny.streams = ["a"]\n'
TOML = {"Content-Type": "application/toml"}


def test_it_is_put_read_and_removed() -> None:
    async def scene() -> None:
        async with controlled() as at:
            assert (await at.problem("GET", "/policy"))["status"] == 404
            first = await call(at, "PUT", "/policy", 200, data=OPEN, headers=TOML)
            assert first == {"version": format_position(1), "rules": {"see": 0, "publish": 0}}
            tried = await call(at, "PUT", "/policy?dry_run=1", 200, data=RULED, headers=TOML)
            assert tried == {"version": None, "rules": {"see": 1, "publish": 0}}
            second = await call(at, "PUT", "/policy", 200, data=RULED, headers={"Content-Type": "text/plain"})
            async with at.session.get(at.url + "/policy") as response:
                assert (await response.text(), response.content_type) == (RULED, "application/toml")
                assert response.headers["ETag"] == f'"{second["version"]}"'
            async with at.session.get(at.url + "/policy", params={"version": first["version"]}) as response:
                assert await response.text() == OPEN
            await call(at, "DELETE", "/policy", 204)
            told = await call(at, "GET", "/policy/versions", 200)
            assert told == {"versions": [{"version": format_position(3), "rules": None}, second, first]}
            for method, path in (
                ("GET", "/policy"),
                ("DELETE", "/policy"),
                ("GET", f"/policy?version={format_position(3)}"),
            ):
                assert (await at.problem(method, path))["status"] == 404

    run(scene())


@pytest.mark.parametrize(
    ("options", "status", "detail"),
    [
        ({"data": RULED + "x = 1", "headers": TOML}, 400, "rule 1 of [[see]] 'r', x: this key is not known"),
        ({"data": b"\xff", "headers": TOML}, 400, "not UTF-8"),
        ({"data": OPEN, "headers": {"Content-Type": "application/json"}}, 415, "application/toml"),
        ({"data": BytesIO(b"#" * (POLICY_BYTES + 1)), "headers": TOML}, 413, "larger"),
    ],
)
def test_what_is_no_policy_is_refused(options: dict[str, Any], status: int, detail: str) -> None:
    async def scene() -> None:
        async with controlled() as at:
            problem = await at.problem("PUT", "/policy", **options)
            assert problem["status"] == status
            assert detail in problem["detail"]

    run(scene())
