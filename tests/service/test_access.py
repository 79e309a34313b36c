"""Before an edge is opened to others: what must be so, and what is said where it is not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from triplewire.config import Settings
from triplewire.http.resources.access_control import TokenManager, TokenRequest
from triplewire.model.clock import SystemClock
from triplewire.model.errors import BadRequest
from triplewire.service.access import check_auth, has_tokens, is_private, open_token_registry
from triplewire.service.edge import make_auth, run_edge
from triplewire.service.supervisor import Supervisor

JWT = {"jwt_keys": "keys.json", "jwt_issuer": "https://id.example", "jwt_audience": "triplewire"}


def make_token(settings: Settings, *, revoked: bool = False) -> None:
    access = open_token_registry(settings, SystemClock())
    tokens = TokenManager(access, SystemClock())
    made, _ = tokens.create(TokenRequest("me", ("*",)))
    if revoked:
        tokens.revoke(made.id)
    access.close()


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "::1", "localhost"])
def test_on_this_machine_nothing_is_needed(tmp_path: Path, host: str) -> None:
    check_auth(Settings(data=tmp_path, host=host))


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.7", "edge.example", ""])
def test_on_any_other_address_it_does_not_start_and_says_what_to_type(tmp_path: Path, host: str) -> None:
    with pytest.raises(BadRequest) as caught:
        check_auth(Settings(data=tmp_path, host=host))
    assert f"triplewire token create --data {tmp_path} --name me --allow '*' --save me.token" in str(caught.value)
    assert "--open" in str(caught.value)


def test_behind_a_proxy_it_is_not_on_this_machine_alone(tmp_path: Path) -> None:
    settings = Settings(data=tmp_path, proxies=("127.0.0.1",))
    assert not is_private(settings)
    with pytest.raises(BadRequest, match="the proxy"):
        check_auth(settings)


@pytest.mark.parametrize("given", [{"auth": "open"}, {"auth": "closed"}, JWT])
def test_it_starts_where_somebody_said_who_may(tmp_path: Path, given: dict[str, Any]) -> None:
    check_auth(Settings(data=tmp_path, host="0.0.0.0", **given))


@pytest.mark.parametrize("revoked", [True, False])
def test_it_starts_where_there_are_tokens(tmp_path: Path, revoked: bool) -> None:
    """Those that are revoked count: nobody comes in, but the rest of the broker runs."""
    settings = Settings(data=tmp_path, host="0.0.0.0")
    make_token(settings, revoked=revoked)
    assert has_tokens(settings)
    check_auth(settings)


def test_looking_makes_nothing(tmp_path: Path) -> None:
    settings = Settings(data=tmp_path / "data")
    assert not has_tokens(settings)
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("given", [{"auth": "ajar"}, {**JWT, "jwt_audience": ""}, {**JWT, "jwt_issuer": ""}])
def test_settings_that_make_no_sense_are_refused(tmp_path: Path, given: dict[str, Any]) -> None:
    with pytest.raises(BadRequest):
        check_auth(Settings(data=tmp_path, **given))


def test_nobody_else_reads_the_file_of_the_tokens(tmp_path: Path) -> None:
    settings = Settings(data=tmp_path)
    make_token(settings)
    access = open_token_registry(settings, SystemClock())
    modes = {path.name: path.stat().st_mode & 0o077 for path in tmp_path.glob("access.db*")}
    access.close()
    assert set(modes.values()) == {0}


@pytest.mark.parametrize(
    ("given", "authenticators", "opens"),
    [
        ({}, 1, True),
        ({"auth": "closed"}, 1, False),
        ({"auth": "open"}, 0, False),
        ({"host": "0.0.0.0"}, 1, False),
        (JWT, 2, False),
    ],
)
def test_authenticators_of_an_edge(tmp_path: Path, given: dict[str, Any], authenticators: int, opens: bool) -> None:
    settings = Settings(data=tmp_path, **given)
    access = open_token_registry(settings, SystemClock())
    entrance = make_auth(settings, access, SystemClock())
    assert (len(entrance.authenticators), entrance.is_open()) == (authenticators, opens)
    make_token(settings)
    assert not entrance.is_open()
    access.close()


@pytest.mark.parametrize("start", [run_edge, lambda settings: Supervisor(settings).start()], ids=["edge", "up"])
def test_nothing_starts_where_it_must_not(tmp_path: Path, start: Callable[[Settings], None]) -> None:
    with pytest.raises(BadRequest, match="triplewire token create"):
        start(Settings(data=tmp_path / "data", host="0.0.0.0", port=0))
    assert not (tmp_path / "data").exists()
