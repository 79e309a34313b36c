"""Doors: who is let in, by which token, for how long, and what a policy may say."""

from __future__ import annotations

from contextlib import suppress

import aiohttp

from tests.conformance.deployments.brokers import Broker
from tests.conformance.deployments.checks import Group

AUTH = Group("auth")

_TURTLE = {"Content-Type": "text/turtle"}
_BODY = b"<urn:s> <urn:p> 1 ."


@AUTH.check("nobody comes in without a token, or with one that is not known", closed=True)
async def _(broker: Broker) -> None:
    for token in (None, "tw_0000000000_unknown"):
        async with broker.by(token) as other:
            answer = await other.expect(401, "GET", "/subscriptions")
            assert answer.headers["WWW-Authenticate"].startswith("Bearer"), answer.headers
            await other.expect(401, "POST", f"/streams/{broker.name()}", data=_BODY, headers=_TURTLE)


@AUTH.check("a token opens what it grants, and nothing else", closed=True)
async def _(broker: Broker) -> None:
    stream = broker.name()
    made = await broker.token(f"publish:{stream}")
    async with broker.by(made["token"]) as other:
        await other.publish(stream, _BODY)
        told = await other.problem(403, "POST", f"/streams/{broker.name()}", data=_BODY, headers=_TURTLE)
        assert told["scope"].startswith("publish:"), told
        for path in (f"/streams/{stream}", "/sparql?query=ASK{}", "/tokens", "/policy", "/metrics"):
            await other.problem(403, "GET", path)
    listed = (await broker.expect(200, "GET", "/tokens")).body.decode()
    assert made["id"] in listed, "the token is not listed"
    assert made["token"] not in listed, "a token is told twice"


@AUTH.check("a token that is revoked is good for nothing at once, and its connections are cut", closed=True)
async def _(broker: Broker) -> None:
    stream = broker.name()
    made = await broker.token(f"consume:{stream}")
    async with broker.by(made["token"]) as other, other.opened(f"/streams/{stream}") as response:
        await response.content.readline()
        await broker.expect(204, "DELETE", f"/tokens/{made['id']}")
        await _cut(response)
        await other.expect(401, "GET", f"/streams/{stream}")


@AUTH.check("a token that has expired lets nobody in, and its connections are cut", closed=True)
async def _(broker: Broker) -> None:
    stream = broker.name()
    made = await broker.token(f"consume:{stream}", expires="2s")
    async with broker.by(made["token"]) as other, other.opened(f"/streams/{stream}") as response:
        await _cut(response)
        await other.expect(401, "GET", f"/streams/{stream}")


async def _cut(response: aiohttp.ClientResponse) -> None:
    """Until there is no more of it."""
    with suppress(aiohttp.ClientPayloadError, aiohttp.ClientConnectionError):
        while await response.content.readany():
            pass


@AUTH.check("a policy is checked before it holds, and what is wrong is told with its line")
async def _(broker: Broker) -> None:
    said, path = {"Content-Type": "application/toml"}, "/policy?dry_run=1"
    good = b'[default]\nsee = "allow"\npublish = "allow"\n'
    await broker.expect(200, "PUT", path, data=good, headers=said)
    told = await broker.problem(400, "PUT", path, data=good + b'[[see]]\nname = "x"\nwhom = ["*"]\n', headers=said)
    assert told["line"] >= 4, told
