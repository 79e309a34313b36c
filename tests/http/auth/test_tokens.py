"""Tokens at the door: who shows one, and what becomes of those who came in by one that is good no more."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import orjson
import pytest

from tests.http.auth.harness import NQUADS, Closed, bearer, closed
from tests.http.harness import Ear, body, data, run
from triplewire.security.tokens import format_token, new_secret
from triplewire.testing.samples import event


async def status(home: Closed, text: str, path: str = "/streams/home") -> int:
    headers = {**bearer(text), **NQUADS}
    async with home.at.session.post(home.at.url + path, headers=headers, data=body(event(1))) as response:
        return response.status


def test_a_token_lets_do_what_it_says_and_nothing_else() -> None:
    async def scene() -> None:
        async with closed() as home:
            _, text = home.token("publish:home")
            assert await status(home, text) == 201
            assert await status(home, text, "/streams/office") == 403

    run(scene())


def test_another_secret_or_another_id_is_nobody() -> None:
    async def scene() -> None:
        async with closed() as home:
            id, text = home.token("*")
            for wrong in (format_token(id, new_secret()), format_token("a" * 10, text[-43:]), text[:-1], text + "a"):
                problem = await home.at.problem("POST", "/streams/home", headers=bearer(wrong))
                assert problem["status"] == 401
                assert wrong not in str(problem)

    run(scene())


def test_it_is_good_for_nothing_from_the_moment_it_is_revoked() -> None:
    async def scene() -> None:
        async with closed() as home:
            id, text = home.token("publish")
            assert await status(home, text) == 201
            home.tokens.revoke(id)
            assert await status(home, text) == 401
            problem = await home.at.problem("POST", "/streams/home", headers=bearer(text))
            assert problem["detail"] == f"the token {id} is revoked; ask for another"

    run(scene())


def test_it_is_good_until_it_expires() -> None:
    async def scene() -> None:
        async with closed() as home:
            _, text = home.token("publish", expires="1h")
            home.clock.advance(3_599)
            assert await status(home, text) == 201
            home.clock.advance(1)
            assert await status(home, text) == 401

    run(scene())


def test_the_door_is_open_until_there_is_a_first_token_and_never_again() -> None:
    async def scene() -> None:
        async with closed(waits=True) as home:
            assert await status(home, "nothing") == 201
            id, text = home.token("publish")
            assert await status(home, "nothing") == 401
            assert await status(home, text) == 201
            home.tokens.revoke(id)
            assert await status(home, "nothing") == 401

    run(scene())


def test_tokens_are_made_and_revoked_over_http() -> None:
    async def scene() -> None:
        async with closed() as home:
            _, boss = home.token("admin")
            url, headers = home.at.url + "/tokens", bearer(boss)
            order = {"name": "roof", "allow": ["publish:home"], "expires": "1d"}
            async with home.at.session.post(url, headers=headers, json=order) as response:
                made = await response.json()
                assert response.status == 201
                assert response.headers["Location"] == f"/tokens/{made['id']}"
                assert response.headers["Cache-Control"] == "no-store"
            assert await status(home, made["token"]) == 201
            async with home.at.session.get(url, headers=headers) as response:
                told = (await response.json())["tokens"]
            assert [each["name"] for each in told] == ["test", "roof"]
            assert all("token" not in each for each in told)
            async with home.at.session.delete(f"{url}/{made['id']}", headers=headers) as response:
                assert response.status == 204
            assert await status(home, made["token"]) == 401
            async with home.at.session.get(f"{url}/{made['id']}", headers=headers) as response:
                assert (await response.json())["state"] == "revoked"
            assert (await home.at.problem("GET", "/tokens/nothing", headers=headers))["status"] == 404

    run(scene())


@pytest.mark.parametrize(
    ("options", "status"),
    [
        ({"json": {"name": "x"}}, 422),
        ({"json": {"name": "x", "allow": ["fly"]}}, 400),
        ({"data": b"{", "headers": {"Content-Type": "application/json"}}, 400),
        ({"data": b"a=b", "headers": {"Content-Type": "application/x-www-form-urlencoded"}}, 415),
        ({"json": {"name": "x" * 70_000, "allow": ["query"]}}, 413),
    ],
)
def test_an_order_that_makes_no_sense_makes_no_token(options: dict[str, Any], status: int) -> None:
    async def scene() -> None:
        async with closed(waits=True) as home:
            assert (await home.at.problem("POST", "/tokens", **options))["status"] == status
            assert home.tokens.all() == []

    run(scene())


Until = Callable[[], Awaitable[object]]
"""Waits until the other side has ended it."""


@asynccontextmanager
async def as_events(home: Closed, headers: dict[str, str]) -> AsyncIterator[Until]:
    async with home.at.session.get(home.at.url + "/streams/home", headers=headers) as response:
        ear = Ear(response)
        await ear.position()

        async def ended() -> None:
            with pytest.raises((aiohttp.ClientError, ConnectionError, EOFError)):
                await ear.next()

        yield ended


@asynccontextmanager
async def as_many(home: Closed, headers: dict[str, str]) -> AsyncIterator[Until]:
    async with home.at.session.get(home.at.url + "/notifications?stream=home", headers=headers) as response:
        assert response.status == 200
        await response.content.readany()

        async def ended() -> None:
            with pytest.raises((aiohttp.ClientError, ConnectionError)):
                await response.read()

        yield ended


@asynccontextmanager
async def over_a_socket(home: Closed, headers: dict[str, str]) -> AsyncIterator[Until]:
    async with home.at.session.ws_connect(home.at.url + "/streams/home", headers=headers) as socket:
        await socket.receive_str()

        async def ended() -> None:
            assert (await socket.receive()).type in (aiohttp.WSMsgType.CLOSED, aiohttp.WSMsgType.CLOSE)

        yield ended


@asynccontextmanager
async def publishing(home: Closed, headers: dict[str, str]) -> AsyncIterator[Until]:
    async with home.at.session.ws_connect(home.at.url + "/streams/home/publish", headers=headers) as socket:
        await socket.send_json({"event": "urn:e:1", "format": "text/turtle", "body": "<urn:s> <urn:p> 1 ."})
        assert "position" in orjson.loads(await socket.receive_str())

        async def ended() -> None:
            assert (await socket.receive()).type in (aiohttp.WSMsgType.CLOSED, aiohttp.WSMsgType.CLOSE)

        yield ended


@pytest.mark.parametrize("way", [as_events, as_many, over_a_socket, publishing])
def test_who_is_connected_by_a_token_that_is_revoked_is_sent_away(way: Any) -> None:  # noqa: ANN401 - one of the above
    async def scene() -> None:
        async with closed() as home:
            id, text = home.token("publish", "consume", "subscribe")
            async with way(home, bearer(text)) as ended:
                home.tokens.revoke(id)
                await ended()

    run(scene())


def test_who_is_connected_by_a_token_that_expires_is_sent_away() -> None:
    async def scene() -> None:
        async with closed() as home:
            _, text = home.token("consume", expires="1h")
            async with as_events(home, bearer(text)) as ended:
                home.clock.advance(3_600)
                await ended()

    run(scene())


def test_others_stay() -> None:
    async def scene() -> None:
        async with closed() as home:
            id, _ = gone = home.token("consume")
            _, text = home.token("consume", "publish")
            headers = bearer(text)
            async with home.at.session.get(home.at.url + "/streams/home", headers=headers) as response:
                ear = Ear(response)
                await ear.position()
                async with as_events(home, bearer(gone[1])) as ended:
                    home.tokens.revoke(id)
                    await ended()
                assert await status(home, text) == 201
                assert data(await ear.next())["event"] == event(1).id

    run(scene())


def test_a_browser_shows_it_in_the_address_of_what_it_listens_to() -> None:
    async def scene() -> None:
        async with closed() as home:
            id, text = home.token("consume")
            url = f"{home.at.url}/streams/home?access_token={text}"
            async with home.at.session.get(url) as response:
                assert response.status == 200
                home.tokens.revoke(id)
                with pytest.raises(aiohttp.ClientError):
                    await response.read()

    run(scene())
