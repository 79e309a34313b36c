"""Secrets: a whole edge is driven with tokens, and everything that it has said and written is searched for them.

Threat: whoever reads logs, metrics, errors, or files of a backup, comes in with what they find there.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.http.auth.harness import NQUADS, bearer
from tests.http.auth.scenes import Scene, scene
from tests.http.harness import body, run
from tests.security.test_jwt import claims, signed
from triplewire.model.clock import ManualClock
from triplewire.security.tokens import parse_access_token
from triplewire.testing.samples import event

PASSWORD = "Basic czNjcmV0OnBhc3N3b3Jk"


async def told(at: Scene, method: str, path: str, headers: dict[str, str], **options: Any) -> str:  # noqa: ANN401
    """Everything that is answered, and how; of what has no end the beginning."""
    async with at.session.request(method, at.url + path, headers=headers, **options) as response:
        endless = response.content_type == "text/event-stream" and response.status == 200
        said = await (response.content.readany() if endless else response.read())
        return f"{response.status} {dict(response.headers)} {said.decode(errors='replace')}"


async def everything(at: Scene, text: str) -> list[str]:
    """A request of each kind with a token, good or not."""
    headers, nquads = bearer(text), {**bearer(text), **NQUADS}
    said = [
        await told(at, "POST", "/streams/home", nquads, data=body(event(1))),
        await told(at, "POST", "/streams/home", nquads, data=b"no quads"),
        await told(at, "POST", "/streams/home?ack=each", nquads, data=body(event(2))),
        await told(at, "GET", "/streams/home?after=earliest", headers),
        await told(at, "GET", f"/streams/home?after=earliest&access_token={text}", {}),
        await told(at, "GET", f"/streams/home?after=nonsense&access_token={text}", {}),
        await told(at, "GET", f"/streams/home?after=earliest&mode=poll&access_token={text}", {}),
        await told(at, "GET", f"/sparql?query=ASK&access_token={text}", headers),
        await told(at, "GET", f"/tokens?access_token={text}", {}),
        await told(at, "POST", f"/tokens?access_token={text}", headers, json={"name": "x"}),
        await told(at, "DELETE", "/tokens/nothing000", headers),
        await told(at, "GET", "/nowhere", headers),
        await told(at, "PATCH", "/tokens", headers),
    ]
    try:
        async with at.session.ws_connect(f"{at.url}/streams/home?access_token={text}") as socket:
            said.append(str(await socket.receive()))
    except aiohttp.WSServerHandshakeError as error:
        said.append(f"{error.status} {error.message} {error.headers}")
    return said


def found_in(folder: Path, secret: str) -> list[str]:
    return [str(path) for path in folder.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]


def test_no_token_is_said_or_written_anywhere(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def check() -> None:
        caplog.set_level(logging.DEBUG)
        async with scene(tmp_path) as at:
            good = [at.token("*"), at.token("consume:office")]
            shown = [*good, at.bad.revoked, at.bad.expired, at.bad.unknown, signed(claims(ManualClock()))]
            said = [each for text in shown for each in await everything(at, text)]
            said.append(await told(at, "GET", "/tokens", {"Authorization": PASSWORD}))
            boss = bearer(good[0])
            said += [await told(at, "GET", path, boss) for path in ("/tokens", "/metrics", "/edges", "/streams")]
            secrets = [(parse_access_token(text) or ("", text.rpartition(".")[2]))[1] for text in shown]
        # The edge has closed: what it had yet to write is written.
        for secret in (*secrets, PASSWORD.partition(" ")[2]):
            assert len(secret) >= 20
            assert not [each for each in said if secret in each]
            assert secret not in caplog.text
            assert found_in(tmp_path, secret) == []
        assert found_in(tmp_path, "refused")
        assert found_in(tmp_path, "token:")

    run(check())


def test_a_search_like_that_finds_something(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("Bearer s3cret")
    assert found_in(tmp_path, "s3cret") == [str(tmp_path / "log")]
