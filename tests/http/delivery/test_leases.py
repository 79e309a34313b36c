"""Leases: a subscription that nobody listens to ends, one that is listened to stays. Time moves when a test says so."""

from __future__ import annotations

import pytest

from tests.http.harness import House, run
from tests.http.resources.test_routes import call, controlled
from triplewire.http.delivery.leases import Leases
from triplewire.http.ports import ThreadPool
from triplewire.model import format_position
from triplewire.storage.registry.subscriptions import EXPIRY, LEASE, SUBSCRIPTION, expiry_key

WISH = {"sparql": "ASK { ?s <urn:p> 1 }", "ttl": 60}


async def made(at: House) -> str:
    found = await call(at, "POST", "/subscriptions", 201, json=WISH)
    assert found["ttl"] == 60
    return str(found["id"])


async def later(at: House, seconds: float, other: Leases | None = None) -> None:
    at.twin.clock.advance(seconds)
    await (other or at.edge.leases).sweep()


async def left(at: House) -> None:
    """When the edge has noticed that the last listener went."""
    while at.edge.topics.count()["subscriptions"]:
        at.edge.matches.topic.keep_alive()
        at.append(1)
        await call(at, "GET", "/health", 503)


def standing(at: House) -> set[str]:
    registry = at.twin.registry
    subscriptions = {change.key for change in registry.list(SUBSCRIPTION)}
    assert {change.key for change in registry.list(LEASE)} == subscriptions
    return subscriptions


def test_one_that_nobody_listens_to_ends_when_its_time_is_over() -> None:
    async def scene() -> None:
        async with controlled() as at:
            id = await made(at)
            found = await call(at, "GET", f"/subscriptions/{id}", 200)
            assert (found["created"], found["expires"]) == ("2023-11-14T22:13:20Z", "2023-11-14T22:14:20Z")
            await later(at, 59)
            assert standing(at) == {id}
            await later(at, 1)
            assert standing(at) == set()
            assert (await at.problem("GET", f"/subscriptions/{id}"))["status"] == 404

    run(scene())


def test_one_that_is_listened_to_stays_and_its_time_begins_when_the_last_goes() -> None:
    async def scene() -> None:
        async with controlled() as at:
            id = await made(at)
            at.twin.clock.advance(50)
            async with at.listen(f"/subscriptions/{id}/notifications") as ear:
                await ear.position()
                for _ in range(5):
                    await later(at, 50)
                assert standing(at) == {id}
            await left(at)
            await later(at, 59)
            assert standing(at) == {id}
            await later(at, 1)
            assert standing(at) == set()

    run(scene())


def test_whoever_listens_is_told_that_it_ended() -> None:
    """Another edge, to which nobody listens, does not know of the listener here before the lease is renewed."""

    async def scene() -> None:
        async with controlled() as at:
            id = await made(at)
            async with at.listen(f"/subscriptions/{id}/notifications") as ear:
                await ear.position()
                other = Leases(at.twin.registry, at.twin.clock, ThreadPool(1, "other"))
                await later(at, 50)
                await later(at, 50, other)
                assert standing(at) == {id}
                await later(at, 60, other)
                assert standing(at) == set()
                assert (await ear.next()).event == "end"

    run(scene())


def test_time_in_which_no_edge_was_there_does_not_count() -> None:
    async def scene() -> None:
        async with controlled() as at:
            id = await made(at)
            at.twin.clock.advance(1_000)
            restarted = Leases(at.twin.registry, at.twin.clock, ThreadPool(1, "restarted"))
            await later(at, 59, restarted)
            assert standing(at) == {id}
            await later(at, 1, restarted)
            assert standing(at) == set()

    run(scene())


def test_it_ends_at_a_position_like_any_other() -> None:
    async def scene() -> None:
        async with controlled() as at:
            id = await made(at)
            await later(at, 60)
            ends = [each for each in at.twin.registry.changes(0, 99) if (each.kind, each.key) == (SUBSCRIPTION, id)]
            assert [each.value is None for each in ends] == [False, True]
            assert format_position(ends[1].position) > format_position(ends[0].position)

    run(scene())


@pytest.mark.parametrize("seconds", [1, 1_000_000])
def test_one_without_a_lease_stays_and_one_that_was_deleted_leaves_nothing(seconds: int) -> None:
    async def scene() -> None:
        async with controlled() as at:
            id = await made(at)
            stays = await call(at, "POST", "/subscriptions", 201, json={"sparql": WISH["sparql"]})
            await call(at, "DELETE", f"/subscriptions/{id}", 204)
            await later(at, seconds)
            assert {change.key for change in at.twin.registry.list(SUBSCRIPTION)} == {stays["id"]}
            assert at.twin.registry.list(LEASE) == []

    run(scene())


def test_nothing_is_read_of_leases_that_are_not_over_and_nothing_is_left_of_those_that_were() -> None:
    async def scene() -> None:
        async with controlled() as at:
            registry, clock = at.twin.registry, at.twin.clock
            ids = [await made(at) for _ in range(3)]
            assert registry.list(EXPIRY, below=expiry_key(clock.now() + 59_000_000)) == []
            await call(at, "DELETE", f"/subscriptions/{ids[0]}", 204)
            head = at.twin.log.head()
            await later(at, 59)
            assert at.twin.log.head() == head
            await later(at, 1)
            assert standing(at) == set()
            assert registry.list(EXPIRY) == []

    run(scene())


def test_renewals_are_few() -> None:
    async def scene() -> None:
        async with controlled() as at:
            id = await made(at)
            async with at.listen(f"/subscriptions/{id}/notifications") as ear:
                await ear.position()
                before = at.twin.log.head()
                for _ in range(120):
                    await later(at, 1)
                # one each half of the time, and twice a look at one whose time would be over
                assert at.twin.log.head() - before < 8

    run(scene())
