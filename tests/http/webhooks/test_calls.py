"""Calls to addresses that somebody else chose. Threat: whoever makes a hook has this machine call what only it can
reach, by a name that leads there, by a redirect, or by a name that leads elsewhere a moment later.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from aiohttp.abc import ResolveResult

from tests.http.harness import run
from tests.http.webhooks.scenes import LOCAL, receiver, scene
from triplewire.http.webhooks.calls import WEBHOOK_ANSWER_BYTES, CheckedResolver, ConcurrencyLimit, OutboundCaller
from triplewire.model.clock import ManualClock
from triplewire.security.webhooks import AllowedNetworks


@asynccontextmanager
async def calling(
    networks: AllowedNetworks = LOCAL, resolver: type[CheckedResolver] = CheckedResolver
) -> AsyncIterator[OutboundCaller]:
    caller = OutboundCaller(networks, ManualClock(), resolver=resolver)
    try:
        yield caller
    finally:
        await caller.close()


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "2130706433", "0x7f000001", "0177.0.0.1", "127.1", "[::1]"])
def test_whatever_leads_to_this_machine_is_not_called(host: str) -> None:
    async def story() -> None:
        async with receiver() as hearing, calling(AllowedNetworks()) as caller:
            answer = await caller.post(hearing.url.replace("127.0.0.1", host), b"{}", {})
            assert answer.status is None
            assert "not a public address" in answer.reason or "InvalidUrl" in answer.reason
            assert hearing.calls.empty()

    run(story())


def test_a_name_of_which_one_address_is_inside_is_not_called(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, 80)) for each in ("93.184.215.14", "10.0.0.1")]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)

    async def story() -> None:
        resolver = CheckedResolver(AllowedNetworks())
        with pytest.raises(OSError, match=r"example\.org resolves to 10\.0\.0\.1: 10\.0\.0\.1 is not a public"):
            await resolver.resolve("example.org", 80)
        await resolver.close()

    run(story())


class Turncoat(CheckedResolver):
    """Says of a name that it leads where it does not: stands for one that leads elsewhere a moment later."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        return [ResolveResult(hostname=host, host="127.0.0.1", port=port, family=socket.AF_INET, proto=0, flags=0)]


def test_the_address_that_is_connected_to_is_looked_at_however_it_was_found() -> None:
    async def story() -> None:
        async with receiver() as hearing, calling(AllowedNetworks(), Turncoat) as caller:
            answer = await caller.post(hearing.url.replace("127.0.0.1", "example.org"), b"{}", {})
            assert "127.0.0.1 is not a public address" in answer.reason
            assert hearing.calls.empty()

    run(story())


def test_a_redirect_is_not_followed() -> None:
    async def story() -> None:
        async with receiver() as hearing, calling() as caller:

            async def away(request: web.Request) -> web.Response:
                raise web.HTTPTemporaryRedirect("http://169.254.169.254/latest/meta-data")

            hearing.replies += [away]
            answer = await caller.post(hearing.url, b"{}", {})
            assert (answer.status, answer.accepted) == (307, False)

    run(story())


def test_no_more_of_an_answer_is_read_than_some_and_none_of_it_inflated() -> None:
    async def story() -> None:
        async with receiver() as hearing, calling() as caller:

            async def endless(request: web.Request) -> web.StreamResponse:
                response = web.StreamResponse(headers={"Content-Encoding": "gzip"})
                await response.prepare(request)
                while True:
                    await response.write(b"x" * 65_536)

            hearing.replies += [endless]
            answer = await caller.get(hearing.url)
            assert answer.accepted
            assert len(answer.body) < 4 * WEBHOOK_ANSWER_BYTES

    run(story())


@pytest.mark.parametrize("said", [b"", b"SSH-2.0-OpenSSH_9.6\r\n", b"HTTP/1.1 2", b"\x16\x03\x01\x00"])
def test_what_does_not_answer_as_http_has_it_is_no_answer(said: bytes) -> None:
    async def story() -> None:
        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(said)
            writer.close()

        server = await asyncio.start_server(talk, "127.0.0.1", 0)
        async with server, calling() as caller:
            port = server.sockets[0].getsockname()[1]
            answer = await caller.post(f"http://127.0.0.1:{port}/secret-path", b"{}", {})
            assert answer.unanswered
            assert "secret-path" not in answer.reason

    run(story())


def test_an_address_inside_is_refused_when_the_subscription_is_made() -> None:
    async def story() -> None:
        async with scene(networks=AllowedNetworks()) as at:
            wish = {"sparql": "ASK { ?s ?p ?o }", "webhook": {"url": at.receiver.url}}
            problem = await at.at.problem("POST", "/subscriptions", json=wish)
            assert (problem["status"], problem["field"]) == (422, "webhook")
            assert "webhook_networks" in problem["detail"]

    run(story())


@pytest.mark.parametrize(
    "webhook",
    [
        "http://example.org",
        {},
        {"url": 7},
        {"url": "http://example.org", "sekret": "x"},
        {"url": "http://example.org", "secret": "unmistakable"},
        {"url": "http://example.org", "secret": 7},
        {"url": "http://example.org", "attempts": 0},
        {"url": "http://example.org", "attempts": True},
    ],
)
def test_a_webhook_that_does_not_fit_is_refused_and_its_secret_not_repeated(webhook: object) -> None:
    async def story() -> None:
        async with scene() as at:
            problem = await at.at.problem("POST", "/subscriptions", json={"stream": "test", "webhook": webhook})
            assert (problem["status"], problem["field"]) == (422, "webhook")
            assert "unmistakable" not in str(problem)

    run(story())


def test_lines_make_webhooks_whose_secrets_the_client_knows() -> None:
    async def story() -> None:
        async with scene() as at:
            secret = "whsec_" + "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo="
            lines = '{"stream":"a","webhook":{"url":"%s"}}\n{"stream":"b","webhook":{"url":"%s","secret":"%s"}}\n'
            body = lines % (at.receiver.url, at.receiver.url, secret)
            headers = {"Content-Type": "application/x-ndjson"}
            async with at.at.session.post(at.at.url + "/subscriptions", data=body, headers=headers) as response:
                first, second = (await response.text()).splitlines()
            assert '"field":"webhook"' in first
            assert '"id"' in second

    run(story())


def test_who_does_not_answer_is_called_once_at_a_time_and_the_others_do_not_wait() -> None:
    async def story() -> None:
        gates, inside = ConcurrencyLimit(healthy=2, failing=1), list[str]()

        async def call(place: str, end: asyncio.Event, *, ill: bool) -> None:
            async with gates.enter(place) as gate:
                inside.append(place)
                await end.wait()
                gate.failing = ill
            inside.remove(place)

        async with asyncio.TaskGroup() as group:
            ends = [asyncio.Event() for _ in range(3)]
            group.create_task(call("bad", ends[0], ill=True))
            while inside != ["bad"]:
                await asyncio.sleep(0)
            ends[0].set()
            while inside:
                await asyncio.sleep(0)
            for _ in range(5):
                group.create_task(call("bad", ends[1], ill=True))
            for place in ("good", "better"):
                group.create_task(call(place, ends[2], ill=False))
            while len(inside) < 3:
                await asyncio.sleep(0)
            assert sorted(inside) == ["bad", "better", "good"]
            ends[1].set()
            ends[2].set()
        assert len(gates) == 1

    run(story())
