"""The hub of WebSub, by what the W3C's Recommendation says that hubs must do. The subscriber here is written from
it,
and takes nothing that it does not allow.
"""

from __future__ import annotations

import hmac
from dataclasses import replace as changed
from typing import Any

import aiohttp
import pyoxigraph
import pytest
from aiohttp import web

from tests.http.harness import run
from tests.http.webhooks.scenes import Call, Scene, scene
from triplewire.http.dialects.websub import (
    WEBSUB_BODY_BYTES,
    WEBSUB_LEASE_SECONDS,
    WEBSUB_LEASE_SECONDS_LEAST,
    WEBSUB_LEASE_SECONDS_MOST,
)
from triplewire.http.webhooks.deliverer import Scheduler
from triplewire.security import Principal
from triplewire.security.principals import Authenticator
from triplewire.storage.webhooks import WEBHOOK

SECRET = "between the two of us"


def form(at: Scene, mode: str = "subscribe", **more: str) -> dict[str, str]:
    topic = {"hub.mode": mode, "hub.topic": f"{at.at.url}/streams/test", "hub.callback": at.receiver.url + "?id=7"}
    return topic | {f"hub.{name}": value for name, value in more.items()}


async def echo(request: web.Request) -> web.Response:
    return web.Response(text=request.query["hub.challenge"])


async def asked(at: Scene, mode: str = "subscribe", **more: str) -> Call:
    """Somebody asks, and says that it is so; what it was asked."""
    at.receiver.replies.append(echo)
    await at.call("POST", "/websub", 202, data=form(at, mode, **more))
    question = await at.receiver.next()
    assert question.method == "GET"
    assert (question.query["id"], question.query["hub.mode"]) == ("7", mode)
    assert question.query["hub.topic"] == f"{at.at.url}/streams/test"
    return question


async def told_and_renewed(at: Scene, **more: str) -> None:
    """A lease of 100 seconds under which the first event was told, and which is renewed after 90."""
    await asked(at, lease_seconds="100")
    await at.until(lambda: hooks(at))
    at.at.append(1)
    await at.receiver.next()
    at.clock.advance(90)
    await asked(at, lease_seconds="100", **more)
    await at.until(lambda: at.at.twin.registry.list(WEBHOOK)[0].position > 2)


def hooks(at: Scene) -> int:
    return len(at.at.twin.registry.list(WEBHOOK))


def test_a_stream_says_where_it_can_be_subscribed_to() -> None:
    async def story() -> None:
        async with scene() as at:
            url = f"{at.at.url}/streams/test"
            for method, path in (("HEAD", ""), ("GET", "?mode=poll&wait=0")):
                async with at.at.session.request(method, url + path) as response:
                    assert response.links["hub"]["url"] == response.url.with_path("/websub").with_query(None)
                    assert str(response.links["self"]["url"]) == url

    run(story())


def test_who_says_that_it_meant_it_is_told_events_signed_with_its_secret() -> None:
    async def story() -> None:
        async with scene() as at:
            at.at.append(1)
            question = await asked(at, secret=SECRET, lease_seconds="3600")
            assert question.query["hub.lease_seconds"] == "3600"
            await at.until(lambda: hooks(at))
            at.at.append(2)
            call = await at.receiver.next()
            assert (call.method, call.query["id"]) == ("POST", "7")
            assert call.headers["content-type"] == "application/n-quads"
            wanted = hmac.new(SECRET.encode(), call.body, "sha256").hexdigest()
            assert call.headers["x-hub-signature"] == f"sha256={wanted}"
            links = dict(each.split("; rel=")[::-1] for each in call.headers["link"].split(", "))
            assert links == {'"hub"': f"<{at.at.url}/websub>", '"self"': f"<{at.at.url}/streams/test>"}
            read = list(pyoxigraph.parse(call.body, format=pyoxigraph.RdfFormat.N_QUADS))
            # Of what was published before somebody subscribed nothing is told.
            assert {str(each.graph_name) for each in read if "event/2" in str(each.graph_name)}
            assert not [each for each in read if "event/1" in str(each)]

    run(story())


@pytest.mark.parametrize("format", ["trig", "ndjson"])
def test_the_topic_says_in_which_format(format: str) -> None:
    types = {"trig": "application/trig", "ndjson": "application/x-ndjson"}

    async def story() -> None:
        async with scene() as at:
            at.receiver.replies.append(echo)
            topic = {"hub.topic": f"{at.at.url}/streams/test?format={format}"}
            await at.call("POST", "/websub", 202, data=form(at) | topic)
            await at.receiver.next()
            await at.until(lambda: hooks(at))
            at.at.append(1)
            call = await at.receiver.next()
            assert call.headers["content-type"] == types[format]
            assert "x-hub-signature" not in call.headers
            assert f'<{topic["hub.topic"]}>; rel="self"' in call.headers["link"]

    run(story())


@pytest.mark.parametrize("answer", [404, 200, 302])
def test_who_does_not_say_that_it_meant_it_is_told_nothing(answer: int) -> None:
    async def story() -> None:
        async with scene() as at:
            at.receiver.replies.append(answer)
            await at.call("POST", "/websub", 202, data=form(at))
            await at.receiver.next()
            await at.until(lambda: not at.at.edge.websub.verifying)
            assert hooks(at) == 0

    run(story())


def test_a_lease_that_was_renewed_unheard_is_not_over(monkeypatch: pytest.MonkeyPatch) -> None:
    step = Scheduler.step

    async def deaf(self: Scheduler) -> None:
        """Once there is a courier, hears of nothing new."""
        if not len(self):
            await step(self)

    monkeypatch.setattr(Scheduler, "step", deaf)

    async def story() -> None:
        async with scene() as at:
            await told_and_renewed(at)
            at.clock.advance(90)
            at.at.append(2)
            assert b"event/2" in (await at.receiver.next()).body
            assert hooks(at)

    run(story())


def test_a_renewal_goes_on_where_it_is_and_a_lease_that_is_over_ends_it() -> None:
    async def story() -> None:
        async with scene() as at:
            await told_and_renewed(at, secret=SECRET)
            at.clock.advance(90)
            at.at.append(2)
            told = await at.receiver.next()
            assert b"event/2" in told.body
            assert b"event/1" not in told.body
            assert "x-hub-signature" in told.headers
            at.clock.advance(11)
            at.at.append(3)
            await at.until(lambda: not hooks(at))
            assert at.receiver.calls.empty()
            assert at.books.progress() == {}

    run(story())


@pytest.mark.parametrize(
    ("said", "granted"),
    [
        (None, WEBSUB_LEASE_SECONDS),
        ("1", WEBSUB_LEASE_SECONDS_LEAST),
        ("9" * 30, WEBSUB_LEASE_SECONDS_MOST),
    ],
)
def test_a_lease_is_granted_within_bounds(said: str | None, granted: int) -> None:
    async def story() -> None:
        async with scene() as at:
            question = await asked(at, **({} if said is None else {"lease_seconds": said}))
            assert question.query["hub.lease_seconds"] == str(granted)

    run(story())


def test_who_unsubscribes_is_asked_and_told_no_more() -> None:
    async def story() -> None:
        async with scene() as at:
            await asked(at)
            await at.until(lambda: len(at.at.edge.scheduler))
            question = await asked(at, "unsubscribe")
            assert "hub.lease_seconds" not in question.query
            await at.until(lambda: not hooks(at))
            at.at.append(1)
            await at.call("GET", "/hooks")
            assert at.receiver.calls.empty()

    run(story())


def test_nobody_else_unsubscribes_somebody() -> None:
    """Threat: who knows a callback ends its subscription."""

    async def story() -> None:
        async with scene() as at:
            await asked(at)
            await at.until(lambda: len(at.at.edge.scheduler))
            at.receiver.replies.append(404)
            await at.call("POST", "/websub", 202, data=form(at, "unsubscribe"))
            await at.receiver.next()
            await at.until(lambda: not at.at.edge.websub.verifying)
            at.at.append(1)
            assert (await at.receiver.next()).method == "POST"

    run(story())


def test_a_callback_that_is_gone_ends_it_and_may_come_back() -> None:
    async def story() -> None:
        async with scene() as at:
            await asked(at)
            await at.until(lambda: len(at.at.edge.scheduler))
            at.receiver.replies.append(410)
            at.at.append(1)
            await at.receiver.next()
            await at.until(lambda: not len(at.at.edge.scheduler))
            await asked(at)
            await at.until(lambda: len(at.at.edge.scheduler))
            at.at.append(2)
            told = await at.receiver.next()
            assert (b"event/2" in told.body, b"event/1" in told.body) == (True, False)

    run(story())


@pytest.mark.parametrize(
    "said",
    [
        {"mode": "publish"},
        {"topic": "http://elsewhere.example/streams/test"},
        {"topic": "streams/test"},
        {"topic": "{url}/subscriptions/1"},
        {"topic": "{url}/streams/a/b"},
        {"topic": "{url}/streams/test?format=sse"},
        {"topic": "{url}/streams/test?after=earliest"},
        {"callback": ""},
        {"callback": "http://10.0.0.1/"},
        {"callback": "javascript:alert(1)"},
        {"lease_seconds": "-1"},
        {"secret": "x" * 200},
        {"secret": ""},
    ],
)
def test_what_cannot_be_is_refused_at_once(said: dict[str, str]) -> None:
    async def story() -> None:
        async with scene() as at:
            given = {f"hub.{name}": value.replace("{url}", at.at.url) for name, value in said.items()}
            assert (await at.at.problem("POST", "/websub", data=form(at) | given))["status"] == 400
            assert at.receiver.calls.empty()

    run(story())


def test_a_body_that_is_no_form_is_refused() -> None:
    async def story() -> None:
        async with scene() as at:
            assert (await at.at.problem("POST", "/websub", json={}))["status"] == 415
            large = form(at, secret="x" * WEBSUB_BODY_BYTES)
            assert (await at.at.problem("POST", "/websub", data=large))["status"] == 413

    run(story())


class Known(Authenticator):
    """Knows one who may consume some streams."""

    async def known(self, credential: str) -> Principal | None:
        return Principal.granted("one", ["consume:other"])


def test_who_may_not_consume_the_stream_is_told_that_it_is_denied() -> None:
    async def story() -> None:
        async with scene(change=lambda parts: changed(parts, authenticators=(Known(),))) as at:
            options: dict[str, Any] = {"data": form(at), "headers": {"Authorization": "Bearer x"}}
            await at.call("POST", "/websub", 202, **options)
            told = await at.receiver.next()
            assert (told.method, told.query["hub.mode"]) == ("GET", "denied")
            assert told.query["hub.topic"] == f"{at.at.url}/streams/test"
            assert "consume" in told.query["hub.reason"]
            async with aiohttp.ClientSession() as session, session.post(at.at.url + "/websub", data=form(at)) as other:
                assert other.status == 401

    run(story())
