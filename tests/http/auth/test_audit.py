"""Witnesses: who did what, and who was refused, as the audit log has it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from tests.http.auth.harness import bearer
from tests.http.harness import House, body, house, run
from triplewire.http.app import EdgeParts
from triplewire.http.audit import AUDIT_WAITING, AuditMiddleware
from triplewire.http.auth import TokenAuthenticator
from triplewire.http.rate_limits import ClientAddresses
from triplewire.http.resources import access_control, continuous_queries, erasures
from triplewire.http.resources.access_control import TokenManager, TokenRequest
from triplewire.http.resources.continuous_queries import ContinuousQueryManager
from triplewire.http.resources.erasures import Erasures
from triplewire.http.resources.explain import SubscriptionExplainer
from triplewire.http.resources.ontologies import OntologyManager
from triplewire.http.resources.routes import registry_routes
from triplewire.http.resources.subscription_requests import BackfillStarts
from triplewire.http.resources.subscriptions import SubscriptionManager
from triplewire.model.clock import ManualClock
from triplewire.security.audit import AuditLog
from triplewire.storage.registry.security import TokenCache
from triplewire.testing.samples import event

AT = "2023-11-14T22:13:20Z"


@dataclass
class Watched:
    at: House
    witness: AuditMiddleware
    audits: AuditLog
    boss: tuple[str, str]
    """The id and the text of a token for everything."""
    guest: tuple[str, str]

    async def call(self, method: str, path: str, text: str | None = None, **options: Any) -> int:  # noqa: ANN401
        headers = {**(bearer(text or self.boss[1])), **options.pop("headers", {})}
        async with self.at.session.request(method, self.at.url + path, headers=headers, **options) as response:
            await response.read()
            return response.status

    async def told(self) -> list[dict[str, Any]]:
        await self.witness.flush()
        return [{name: each for name, each in record.items() if name != "act"} for record in self.audits.read()]


@asynccontextmanager
async def watched(folder: Path, most_waiting: int = AUDIT_WAITING) -> AsyncIterator[Watched]:
    audits = AuditLog(folder / "audit")
    found: dict[str, Any] = {}

    def whole(parts: EdgeParts) -> EdgeParts:
        assert isinstance(parts.clock, ManualClock)
        tokens = TokenManager(parts.registry, parts.clock)
        for name, allow in (("boss", "*"), ("guest", "consume:home")):
            made, text = tokens.create(TokenRequest(name, (allow,)))
            found[name] = made.id, text
        subscriptions = SubscriptionManager(parts.registry, parts.clock, starts=BackfillStarts(parts.log, parts.clock))
        insights = SubscriptionExplainer(subscriptions, parts.registry, parts.log, parts.clock)
        found["witness"] = AuditMiddleware(audits, parts.clock, ClientAddresses().address, most_waiting)
        served = [
            *registry_routes(subscriptions, OntologyManager(parts.registry), insights),
            *erasures.erasure_routes(Erasures(parts.registry, parts.clock)),
            *access_control.token_routes(tokens),
            *continuous_queries.query_routes(ContinuousQueryManager(parts.registry, parts.clock, lambda stream: True)),
        ]
        knows = TokenAuthenticator(TokenCache(parts.registry, lambda: True), parts.clock)
        return replace(parts, routes=served, audit=found["witness"], authenticators=(knows,))

    async with house(change=whole) as at:
        yield Watched(at, found["witness"], audits, found["boss"], found["guest"])


def line(who: str, what: str, on: str, outcome: str, **others: object) -> dict[str, object]:
    return {"at": AT, "who": who, "what": what, "on": on, "from": "127.0.0.1", "outcome": outcome, **others}


def test_an_act_is_written_down_before_and_after(tmp_path: Path) -> None:
    async def scene() -> None:
        async with watched(tmp_path) as at:
            turtle = {"Content-Type": "text/turtle"}
            assert await at.call("PUT", "/ontologies/pets", data=b"<urn:a> <urn:p> <urn:b> .", headers=turtle) == 200
            who = f"token:{at.boss[0]}"
            on = "/ontologies/pets"
            assert await at.told() == [
                line(who, "loadOntology", on, "begun"),
                line(who, "loadOntology", on, "done", status=200, made=on),
            ]
            first, second = at.audits.read()
            assert first["act"] == second["act"]

    run(scene())


def test_an_act_that_fails_says_so(tmp_path: Path) -> None:
    async def scene() -> None:
        async with watched(tmp_path) as at:
            assert await at.call("DELETE", "/tokens/nothing000") == 404
            assert [(each["outcome"], each.get("status")) for each in await at.told()] == [
                ("begun", None),
                ("failed", 404),
            ]

    run(scene())


def test_an_act_that_cannot_be_written_down_is_not_done(tmp_path: Path) -> None:
    async def scene() -> None:
        async with watched(tmp_path) as at:
            (tmp_path / "audit").write_text("in the way")
            assert await at.call("DELETE", f"/tokens/{at.guest[0]}") == 507
            assert await at.call("GET", "/streams/home?mode=poll&wait=0", at.guest[1]) == 204

    run(scene())


def test_events_are_taken_and_told_though_nothing_can_be_written_down(tmp_path: Path) -> None:
    async def scene() -> None:
        async with watched(tmp_path) as at:
            (tmp_path / "audit").write_text("in the way")
            nquads = {"Content-Type": "application/n-quads"}
            assert await at.call("POST", "/streams/home", data=body(event(1)), headers=nquads) == 201
            assert await at.call("POST", "/subscriptions", json={"sparql": "SELECT * { ?s ?p ?o }"}) == 201
            assert await at.call("GET", "/sparql", params={"query": "ASK {}"}) == 200
            await at.witness.flush()

    run(scene())


def test_subscriptions_and_queries_are_written_down_once(tmp_path: Path) -> None:
    async def scene() -> None:
        async with watched(tmp_path) as at:
            assert await at.call("POST", "/subscriptions", json={"sparql": "SELECT * { ?s ?p ?o }"}) == 201
            (made,) = await at.told()
            assert (made["what"], made["status"]) == ("makeSubscription", 201)
            assert await at.call("DELETE", made["made"]) == 204
            assert await at.call("GET", "/sparql", params={"query": "SELECT * { ?s <urn:private> ?o }"}) == 200
            told = await at.told()
            assert [each["what"] for each in told] == ["makeSubscription", "endSubscription", "query"]
            assert "private" not in str(told)

    run(scene())


def test_continuous_queries_are_written_down_without_their_text(tmp_path: Path) -> None:
    async def scene() -> None:
        async with watched(tmp_path) as at:
            assert await at.call("POST", "/queries", json={"query": "SELECT * { ?s <urn:private> ?o }"}) == 201
            (made,) = await at.told()
            assert (made["what"], made["status"]) == ("registerQuery", 201)
            assert await at.call("GET", made["made"]) == 200
            assert await at.call("DELETE", made["made"]) == 204
            told = await at.told()
            assert [each["what"] for each in told] == ["registerQuery", "endQuery"]
            assert "private" not in str(told)

    run(scene())


def test_what_is_published_consumed_or_looked_at_is_not(tmp_path: Path) -> None:
    async def scene() -> None:
        async with watched(tmp_path) as at:
            nquads = {"Content-Type": "application/n-quads"}
            assert await at.call("POST", "/streams/home", data=body(event(1)), headers=nquads) == 201
            assert await at.call("GET", "/streams/home?mode=poll&wait=0&after=earliest") == 200
            assert await at.call("GET", "/tokens") == 200
            assert await at.told() == []

    run(scene())


def test_refusals_are_written_down(tmp_path: Path) -> None:
    async def scene() -> None:
        async with watched(tmp_path) as at:
            assert await at.call("DELETE", "/tokens/x", "tw_wrong") == 401
            assert await at.call("DELETE", "/tokens/x", at.guest[1]) == 403
            unknown, known = await at.told()
            assert unknown == line(
                "nobody", "revokeToken", "/tokens/x", "refused", status=401, why="the token is unknown"
            )
            assert (known["who"], known["status"]) == (f"token:{at.guest[0]}", 403)

    run(scene())


def test_what_is_erased_is_not_named(tmp_path: Path) -> None:
    async def scene() -> None:
        async with watched(tmp_path) as at:
            assert await at.call("DELETE", "/events/urn:person:ann") == 202
            begun, done = await at.told()
            assert begun["on"] == done["on"] == f"/events/sha256:{sha256(b'urn:person:ann').hexdigest()}"
            assert done["made"].startswith("/erasures/")
            assert await at.call("DELETE", "/events?subject=urn:person:ann") == 202
            assert await at.call("DELETE", "/events/urn:person:ann", "tw_wrong") == 401
            assert "ann" not in str(await at.told())

    run(scene())


def test_a_flood_of_refusals_is_counted_and_fills_no_memory(tmp_path: Path) -> None:
    async def scene() -> None:
        async with watched(tmp_path, most_waiting=3) as at:
            await at.witness.flush()
            for _ in range(8):
                at.witness._note("refusals", {"at": AT, "outcome": "refused"})
            told = await at.told()
            assert [each["outcome"] for each in told] == ["refused"] * 3 + ["omitted"]
            assert told[-1]["count"] == 5

    run(scene())
