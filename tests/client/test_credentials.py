"""Credentials: shown to one edge alone, and in nothing that is said."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trustme
from aiohttp import web

from tests.http.auth.harness import closed
from tests.http.harness import run
from triplewire.client import AsyncClient, Client
from triplewire.client.requests import Credentials
from triplewire.config.settings import CACERT, TOKEN, TOKEN_FILE
from triplewire.model.errors import BadRequest, Forbidden, Unauthenticated, Unavailable

TEXT = "tw_k3m9x2pq00_" + "s3cret" * 7 + "x"
TURTLE = "<urn:s> <urn:p> 1 ."


@asynccontextmanager
async def listening(*routes: web.RouteDef, tls: Any = None) -> AsyncIterator[str]:  # noqa: ANN401 - a context
    app = web.Application()
    app.add_routes(routes)
    runner = web.AppRunner(app, shutdown_timeout=1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
    try:
        yield f"http{'s' if tls else ''}://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def test_what_is_given_goes_before_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("of-a-file\n")
    environment = {TOKEN_FILE: str(file), CACERT: "ca.pem"}
    assert Credentials.resolve(environment=environment) == Credentials("of-a-file", "ca.pem")
    assert Credentials.resolve(environment={**environment, TOKEN: "said"}).token == "said"
    assert Credentials.resolve("given", "mine.pem", {**environment, TOKEN: "said"}) == Credentials("given", "mine.pem")
    assert Credentials.resolve("", environment={TOKEN: "said"}).token is None
    assert Credentials.resolve(environment={}) == Credentials()


@pytest.mark.parametrize("text", ["a b", "a\r\nX-Evil: 1", "é", "\x00"])
def test_what_is_no_token_is_not_put_into_a_header(text: str) -> None:
    with pytest.raises(BadRequest) as caught:
        Credentials.resolve(text, environment={})
    assert text not in str(caught.value)


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match="missing"):
        Credentials.resolve(environment={TOKEN_FILE: str(tmp_path / "missing")})

    async def connect() -> None:
        Credentials(cacert=str(tmp_path / "missing")).connector()

    with pytest.raises(BadRequest, match="missing"):
        run(connect())


def test_it_is_in_no_representation() -> None:
    async def scene() -> None:
        async with AsyncClient("http://localhost:1", token=TEXT) as client:
            said = [repr(client), repr(client._credentials), str(client._credentials)]
            with pytest.raises(Unavailable) as caught:
                await client.health()
            said += [str(caught.value), repr(caught.value), repr(caught.value.__cause__)]
            assert not [each for each in said if "s3cret" in each]

    run(scene())


def test_every_call_shows_it() -> None:
    async def scene() -> None:
        async with closed() as home:
            id, text = home.token("publish", "consume", "subscribe", "query", "admin")
            async with AsyncClient(home.at.url, token=text) as client:
                await client.publish("home", TURTLE, "text/turtle")
                assert [each async for each in client.publish_each("home", [b'{"event":"urn:e:1"}\n'])]
                async with client.open_publisher("home") as publishing:
                    assert publishing
                assert (await anext(client.consume("home", "earliest")))["stream"] == "home"
                assert await client.query("ASK {}") is not None
                assert [each["id"] for each in await client.tokens()] == [id]
                made = await client.create_token("roof", ["publish:home"], roles=["x"], expires="1d")
                await client.revoke_token(made["id"])
            async with AsyncClient(home.at.url, token=text, transport="websocket") as client:
                assert (await anext(client.consume("home", "earliest")))["stream"] == "home"

    run(scene())


def test_who_is_refused_is_told_why() -> None:
    async def scene() -> None:
        async with closed() as home:
            _, text = home.token("publish:home")
            async with AsyncClient(home.at.url, token="") as client:
                with pytest.raises(Unauthenticated, match="TRIPLEWIRE_TOKEN"):
                    await client.publish("home", TURTLE, "text/turtle")
                with pytest.raises(Unauthenticated):
                    await anext(client.consume("home"))
            async with AsyncClient(home.at.url, token=text) as client:
                with pytest.raises(Forbidden) as caught:
                    await client.publish("office", TURTLE, "text/turtle")
            assert caught.value.scope == "publish:office"

    run(scene())


@pytest.mark.parametrize("transport", ["sse", "websocket"])
def test_a_feed_whose_token_is_revoked_ends_with_that(transport: Any) -> None:  # noqa: ANN401 - one of two
    async def scene() -> None:
        async with closed() as home:
            id, text = home.token("consume", "publish")
            async with AsyncClient(home.at.url, token=text, transport=transport) as client:
                await client.publish("home", TURTLE, "text/turtle")
                feed = client.consume("home", "earliest")
                assert await anext(feed)
                home.tokens.revoke(id)
                with pytest.raises(Unauthenticated):
                    await anext(feed)

    run(scene())


@pytest.mark.parametrize("status", [302, 307])
def test_it_is_not_shown_to_another_edge_that_one_is_sent_to(status: int) -> None:
    """Threat: an edge, or whoever speaks for it, sends a client to a place that collects tokens."""

    async def scene() -> None:
        shown: list[str | None] = []
        came = asyncio.Event()

        async def collect(request: web.Request) -> web.Response:
            shown.append(request.headers.get("Authorization"))
            came.set()
            return web.Response(status=404)

        async with listening(web.get("/streams/home", collect)) as evil:

            async def send(request: web.Request) -> web.Response:
                shown.append(request.headers.get("Authorization"))
                if "stay" in request.query:
                    return web.Response(status=404)
                return web.Response(status=status, headers={"Location": f"{evil}/streams/home"})

            async with listening(web.get("/streams/home", send)) as url, AsyncClient(url, token=TEXT) as client:
                with pytest.raises(Exception, match="404"):
                    await anext(client.consume("home"))
            assert came.is_set()
            assert shown == [f"Bearer {TEXT}", None, f"Bearer {TEXT}"]

    run(scene())


def test_it_goes_by_the_certificates_that_it_is_given(tmp_path: Path) -> None:
    async def scene() -> None:
        authority = trustme.CA()
        authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        authority.issue_cert("127.0.0.1").configure_cert(context)

        async def health(request: web.Request) -> web.Response:
            return web.json_response({"status": "ok"})

        async with listening(web.get("/health", health), tls=context) as url:
            async with AsyncClient(url) as client:
                with pytest.raises(Unavailable, match="certificate"):
                    await client.health()
            async with AsyncClient(url, cacert=str(tmp_path / "ca.pem")) as client:
                assert await client.health() == {"status": "ok"}

    run(scene())


def test_the_blocking_client_takes_the_same() -> None:
    async def scene() -> None:
        async with closed() as home:
            _, text = home.token("admin")

            def calls() -> list[str]:
                with Client(home.at.url, token=text) as client:
                    made = client.create_token("roof", ["query"])
                    client.revoke_token(made["id"])
                    return [each["state"] for each in client.tokens()]

            assert await asyncio.to_thread(calls) == ["good", "revoked"]

    run(scene())
