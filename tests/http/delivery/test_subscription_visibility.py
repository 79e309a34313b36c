"""Subscriptions of those who see a part of what is published: what they are told, and who else may know of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.http.auth.test_auth import bearer
from tests.http.brokers import Broker, broker, observed
from tests.http.delivery.test_visibility import HEAD, LAST, PEOPLE, POLICY, TOML, end, left_of, quads_of, ward
from tests.http.harness import data, run
from triplewire.security import Verb, parse_policy, visibility_of

NAMED = "SELECT ?s ?n { ?s <urn:name> ?n }"
WEIGHED = "SELECT ?s ?w { ?s <urn:weight> ?w }"
ANYTHING = "SELECT ?p { ?s ?p ?o }"
LIGHT = "SELECT ?s { ?s <urn:name> ?n FILTER NOT EXISTS { ?s <urn:weight> ?w } }"
SEEN = (0, 1, 3, 4)
"""Of the first six events; the others are about cats."""


async def subscribed(at: Broker, name: str, sparql: str | None, kind: str = "bindings", **more: Any) -> dict[str, Any]:  # noqa: ANN401
    wish = {"kind": kind, **({} if sparql is None else {"sparql": sparql}), **more}
    found: dict[str, Any] = await at.call("POST", "/subscriptions", json=wish, headers=bearer(name))
    return found


async def told(at: Broker, made: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """What a subscription told until it was ended."""
    await at.call("DELETE", f"/subscriptions/{made['id']}", headers=bearer(name))
    at.match()
    async with at.at.listen(f"{made['notifications']}?after=earliest", **bearer(name)) as ear:
        return [data(each) for each in await ear.rest() if each.event == "notification"]


async def listening(at: Broker, made: dict[str, Any], name: str) -> None:
    """Somebody has to listen before it ends, so that the edge knows it."""
    async with at.at.listen(made["notifications"], **bearer(name)) as ear:
        await ear.position()


ASKED: list[tuple[str, Sequence[int], Sequence[int]]] = [
    (NAMED, SEEN, range(6)),
    (WEIGHED, (), range(6)),
    (ANYTHING, SEEN, range(6)),
    (LIGHT, SEEN, ()),
    ("SELECT (COUNT(*) AS ?n) { ?s ?p ?o } HAVING (COUNT(*) = 3)", (), range(6)),
    ("SELECT (COUNT(*) AS ?n) { ?s ?p ?o } HAVING (COUNT(*) = 2)", SEEN, ()),
    ("SELECT ?s { ?s a <urn:Cat> }", (), (2, 5)),
]
"""Questions, and the events of which one is told who sees a part, and one who sees everything."""


@pytest.mark.parametrize("kind", ["signal", "bindings", "event"])
def test_a_subscription_is_asked_of_what_is_visible(tmp_path: Path, kind: str) -> None:
    async def scene() -> None:
        async with ward(tmp_path) as at:
            made = [
                (name, await subscribed(at, name, sparql, kind), numbers)
                for sparql, *both in ASKED
                for name, numbers in zip(("ann", "kim"), both, strict=True)
            ]
            for name, each, _ in made:
                await listening(at, each, name)
            at.publish(6)
            for name, each, numbers in made:
                found = await told(at, each, name)
                assert [one["event"] for one in found] == [f"urn:event:{number}" for number in numbers], each
                assert name == "kim" or "urn:weight" not in str(found)
                if kind == "event":
                    visibility = visibility_of(PEOPLE.people[name], Verb.SUBSCRIBE, parse_policy(POLICY))
                    assert quads_of(found) == left_of(map(observed, numbers), visibility)

    run(scene())


def test_streams_that_are_not_granted_are_not_told_of(tmp_path: Path) -> None:
    async def scene() -> None:
        async with broker(tmp_path, PEOPLE) as at:
            made = await subscribed(at, "eve", NAMED, "signal")
            await listening(at, made, "eve")
            at.publish(4)
            at.match()
            assert [each["event"] for each in await told(at, made, "eve")] == ["urn:event:0", "urn:event:2"]

    run(scene())


@pytest.mark.parametrize("kind", ["signal", "bindings", "event"])
@pytest.mark.parametrize("sparql", [ANYTHING, WEIGHED])
def test_a_change_of_policy_holds_from_its_position_on(tmp_path: Path, kind: str, sparql: str) -> None:
    async def scene() -> None:
        async with broker(tmp_path, PEOPLE) as at:
            made = await subscribed(at, "ann", sparql, kind)
            async with at.at.listen(made["notifications"], **bearer("ann")) as ear:
                await ear.position()
                at.publish(3)
                await at.call("PUT", "/policy", data=POLICY, headers={**bearer("root"), **TOML})
                at.publish(3)
                await at.call("DELETE", "/policy", headers=bearer("root"))
                at.publish(1)
                at.match()
                wanted = [0, 1, 2, *(each for each in (3, 4) if sparql != WEIGHED), 6]
                found = [data(each) for each in await ear.take(len(wanted))]
            assert [each["event"] for each in found] == [f"urn:event:{number}" for number in wanted]
            if kind == "event" and sparql != WEIGHED:
                weights = ["urn:weight" in each["body"] for each in found]
                assert weights == [True, True, True, False, False, True]

    run(scene())


def test_what_was_matched_on_something_that_is_hidden_by_now_is_told_no_more(tmp_path: Path) -> None:
    policy = HEAD + '[[see]]\nname = "n"\nwho = ["name:ann"]\ndeny.classes = ["<urn:Cat>"]\n'

    async def scene() -> None:
        async with broker(tmp_path, PEOPLE) as at:
            made = await subscribed(at, "ann", NAMED, "event")
            at.publish(3)
            at.match()
            await at.call("PUT", "/policy", data=policy, headers={**bearer("root"), **TOML})
            await listening(at, made, "ann")
            assert [each["event"] for each in await told(at, made, "ann")] == ["urn:event:0", "urn:event:1"]

    run(scene())


@pytest.mark.parametrize("stored", [False, True])
def test_the_past_is_told_by_what_is_visible_when_it_is_read(tmp_path: Path, stored: bool) -> None:
    async def scene() -> None:
        async with broker(tmp_path, PEOPLE) as at:
            at.publish(6)
            if stored:
                at.store()
                at.match()
                at.trim()
            made = await subscribed(at, "ann", ANYTHING, **{"from": "earliest"})
            await at.call("PUT", "/policy", data=POLICY, headers={**bearer("root"), **TOML})
            async with at.at.listen(made["notifications"], **bearer("ann")) as ear:
                found = [data(each) for each in await ear.take(len(SEEN))]
            assert [each["event"] for each in found] == [f"urn:event:{number}" for number in SEEN]
            assert "urn:weight" not in str(found)

    run(scene())


def test_an_explanation_and_a_rehearsal_tell_of_what_is_visible(tmp_path: Path) -> None:
    async def scene() -> None:
        async with ward(tmp_path) as at:
            at.publish(6)
            made = await subscribed(at, "ann", WEIGHED)
            path = f"/subscriptions/{made['id']}/explain?event=urn:event:0"
            answer = await at.call("GET", path, headers=bearer("ann"))
            assert not answer["matched"]
            hidden = f"/subscriptions/{made['id']}/explain?event=urn:event:"
            problems = [await at.at.problem("GET", hidden + each, headers=bearer("ann")) for each in ("2", "none")]
            assert {each["status"] for each in problems} == {404}
            for name, counts in (("ann", (0, 4)), ("kim", (6, 6))):
                body = {"sparql": WEIGHED}
                tried = await at.call("POST", "/subscriptions?dry_run=1", json=body, headers=bearer(name))
                assert (tried["matched"], tried["of"]) == counts

    run(scene())


def test_a_subscription_is_its_owners_alone(tmp_path: Path) -> None:
    async def scene() -> None:
        async with broker(tmp_path, PEOPLE) as at:
            made = await subscribed(at, "ann", NAMED)
            path = f"/subscriptions/{made['id']}"
            missing = await at.at.problem("GET", "/subscriptions/none", headers=bearer("ben"))
            for method, address in [
                ("GET", path),
                ("DELETE", path),
                ("GET", f"{path}/explain?event=urn:e"),
                ("GET", f"{path}/notifications"),
                ("GET", f"/notifications?subscription={made['id']}"),
            ]:
                refused = await at.at.problem(method, address, headers=bearer("ben"))
                assert refused == {**missing, "detail": f"there is no subscription {made['id']}"}
            for name, count in (("ann", 1), ("ben", 0), ("root", 1)):
                page = await at.call("GET", "/subscriptions", headers=bearer(name))
                assert len(page["subscriptions"]) == count
                assert page["next"] is None
            assert "sharing" not in await at.call("GET", path, headers=bearer("ann"))
            assert "sharing" in await at.call("GET", path, headers=bearer("root"))
            await at.call("DELETE", path, headers=bearer("ann"))

    run(scene())


def test_pages_are_of_ones_own(tmp_path: Path) -> None:
    async def scene() -> None:
        async with broker(tmp_path, PEOPLE) as at:
            made = [await subscribed(at, name, NAMED, "signal") for name in ("ann", "ben") * 3]
            own, cursor = list[str](), "earliest"
            while cursor:
                page = await at.call("GET", f"/subscriptions?limit=2&cursor={cursor}", headers=bearer("ann"))
                own += [each["id"] for each in page["subscriptions"]]
                cursor = page["next"]
            assert own == [each["id"] for each in made[::2]]

    run(scene())


def test_who_is_told_over_one_connection_needs_a_grant_for_each_stream(tmp_path: Path) -> None:
    async def scene() -> None:
        async with broker(tmp_path, PEOPLE) as at:
            refused = await at.at.problem("GET", "/notifications?stream=even&stream=odd", headers=bearer("eve"))
            assert (refused["status"], refused["scope"]) == (403, "consume:odd")
            async with at.at.listen("/notifications?stream=even", **bearer("eve")) as ear:
                await ear.position()
                end(at)
                assert data(await ear.next())["event"] == LAST.id

    run(scene())
