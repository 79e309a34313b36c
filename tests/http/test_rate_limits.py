"""Allowances over real sockets: a client that has too much is told when to come back, and others do not notice."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request
from multidict import CIMultiDict

from tests.http.harness import House, body, house, run
from triplewire.client import AsyncClient
from triplewire.config import Settings
from triplewire.http.app import EdgeParts
from triplewire.http.rate_limits import FORWARDED_FOR, RateLimits, pace_upload
from triplewire.model.clock import ManualClock
from triplewire.model.errors import TooManyRequests
from triplewire.testing.samples import event

NQUADS = {"Content-Type": "application/n-quads"}
ONE, OTHER = {FORWARDED_FOR: "192.0.2.1"}, {FORWARDED_FOR: "192.0.2.2"}


def limited(**given: Any) -> Callable[[EdgeParts], EdgeParts]:  # noqa: ANN401
    """Tests come by a proxy on this machine that is trusted."""
    free: dict[str, Any] = {"client_connections": 0, "client_requests": 0.0, "client_bytes": 0.0}
    settings = replace(Settings(proxies=("127.0.0.0/8",)), **{**free, **given})
    return lambda parts: replace(parts, rate_limits=RateLimits.from_settings(settings, parts.clock))


async def status(at: House, who: dict[str, str], **options: Any) -> int:  # noqa: ANN401
    async with at.session.get(at.url + "/", headers=who, **options) as response:
        return response.status


def test_requests_over_the_rate_are_refused_until_time_has_passed() -> None:
    async def scene() -> None:
        async with house(change=limited(client_requests=2.0)) as at:
            assert [await status(at, ONE) for _ in range(4)] == [200] * 4
            found = await at.problem("GET", "/", headers=ONE)
            assert (found["status"], found["title"]) == (429, "Too many requests")
            assert "192.0.2.1" in found["detail"]
            assert await status(at, OTHER) == 200
            assert [await status(at, {}) for _ in range(10)] == [200] * 10
            at.twin.clock.advance(0.5)
            assert [await status(at, ONE) for _ in range(2)] == [200, 429]

    run(scene())


def test_bytes_over_the_rate_are_refused_with_the_time_to_wait() -> None:
    async def scene() -> None:
        async with house(change=limited(client_bytes=10.0)) as at:
            sent = body(event(1))

            async def publish(who: dict[str, str]) -> aiohttp.ClientResponse:
                async with at.session.post(at.url + "/streams/test", data=sent, headers={**NQUADS, **who}) as answer:
                    return answer

            assert (await publish(ONE)).status == 201
            refused = await publish(ONE)
            assert refused.status == 429
            wait = (len(sent) - 20) / 10
            assert wait <= int(refused.headers["Retry-After"]) <= wait + 1
            assert (await publish(OTHER)).status == 201
            at.twin.clock.advance(wait + 0.1)
            assert (await publish(ONE)).status == 201

    run(scene())


def test_listeners_hold_connections_for_as_long_as_they_stay() -> None:
    async def scene() -> None:
        async with house(change=limited(client_connections=2)) as at:
            async with at.session.get(at.url + "/streams/a", headers=ONE) as first:
                async with at.session.get(at.url + "/streams/a", headers=ONE) as second:
                    assert (first.status, second.status) == (200, 200)
                    found = await at.problem("GET", "/", headers=ONE)
                    assert (found["status"], found["retry_after"]) == (429, 1.0)
                    assert await status(at, OTHER) == 200
                while await status(at, ONE) == 429:
                    await asyncio.sleep(0)
            assert [await status(at, ONE) for _ in range(5)] == [200] * 5

    run(scene())


def test_the_client_raises_what_it_is_told() -> None:
    async def scene() -> None:
        async with house(change=limited(client_bytes=1.0)) as at, AsyncClient(at.url) as client:
            client._open().headers.update(ONE)
            await client.publish("test", [event(1)])
            with pytest.raises(TooManyRequests) as refused:
                await client.publish("test", [event(2)])
            assert refused.value.retry_after > 1

    run(scene())


def test_who_keeps_sending_is_kept_waiting() -> None:
    clock, waited = ManualClock(), list[float]()

    async def sleep(seconds: float) -> None:
        waited.append(seconds)
        clock.advance(seconds + 0.001)

    async def handler(request: web.Request) -> web.Response:
        for _ in range(10):
            await pace_upload(request, 100, sleep)
        return web.Response()

    async def scene() -> None:
        settings = Settings(proxies=("127.0.0.0/8",), client_bytes=100.0)
        allow = RateLimits.from_settings(settings, clock).middleware()
        await allow(request_of(ONE), handler)
        assert 7 < clock.ticks() < 8
        assert sum(waited) == pytest.approx(clock.ticks(), abs=0.1)
        await allow(request_of({}), handler)
        await allow(request_of({**OTHER, "Content-Length": "1000"}), handler)
        assert clock.ticks() < 8

    asyncio.run(scene())


class Local:
    """A connection from this machine."""

    def get_extra_info(self, name: str, default: object = None) -> object:
        return ("127.0.0.1", 1) if name == "peername" else default


def request_of(headers: dict[str, str]) -> web.Request:
    return make_mocked_request("POST", "/", headers=CIMultiDict(headers), transport=Local())
