"""Subscriptions that went to the slow lane, over sockets: everything once, in order, and nobody else waits."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

import pyarrow as pa

from tests.http.harness import House, house, run
from triplewire.matching.shapes import lift
from triplewire.model import MATCHES, Subscription, format_position
from triplewire.sparql import parse_query
from triplewire.storage.outbox import OutboxLane
from triplewire.storage.registry.subscriptions import LANE, SHAPE, SUBSCRIPTION, subscription_to_value

PATH = "/subscriptions/s1/notifications"


@dataclass
class Road:
    """An edge with both lanes, and a subscription that is too expensive."""

    at: House
    made: Subscription
    batches: int = field(default=0)

    def move(self) -> int:
        (position,) = self.at.twin.registry.put([(LANE, self.made.shape, {"cost": 0.25})])
        return position

    def match(self, *positions: int, slow: bool = False) -> None:
        rows = [{"position": each, "subscription": self.made.since} for each in positions]
        table = pa.Table.from_pylist(rows, schema=MATCHES)
        if slow:
            self.at.outbox.write(self.batches, self.at.twin.log.head(), table, OutboxLane.SLOW)
            self.batches += 1
        else:
            self.at.write(table)

    async def heard(self, count: int, **headers: str) -> list[str]:
        async with self.at.listen(PATH, **headers) as ear:
            return [message.id or "" for message in await ear.take(count)]


@asynccontextmanager
async def road() -> AsyncIterator[Road]:
    async with house() as at:
        yield Road(at, at.subscribe())


def test_each_lane_tells_its_part_though_both_have_more() -> None:
    async def scene() -> None:
        async with road() as on:
            (early,) = on.at.append(1)
            on.match(early)
            moved = on.move()
            (late,) = on.at.append(2)
            on.match(late)
            on.match(early, late, slow=True)
            assert early < moved < late
            assert await on.heard(2) == [format_position(early), format_position(late)]

    run(scene())


def test_who_listens_while_it_is_moved_is_sent_over_and_misses_nothing() -> None:
    async def scene() -> None:
        async with road() as on:
            async with on.at.listen(PATH) as ear:
                (early,) = on.at.append(1)
                on.match(early)
                assert (await ear.next()).id == format_position(early)
                on.move()
                (late,) = on.at.append(2)
                on.match(late)
                assert [each.event for each in await ear.rest()] == ["closing"]
            on.match(late, slow=True)
            assert await on.heard(1, Last_Event_ID=format_position(early)) == [format_position(late)]

    run(scene())


def test_others_do_not_wait_for_the_slow_lane() -> None:
    async def scene() -> None:
        async with road() as on:
            other = on.at.subscribe(id="s2", query=parse_query("ASK { ?s <urn:cheap> ?o }"))
            on.move()
            (position,) = on.at.append(1)
            on.at.match([(position, other.since, None), (position, on.made.since, None)])
            async with on.at.listen("/subscriptions/s2/notifications") as ear:
                assert (await ear.next()).id == format_position(position)
            async with on.at.listen(PATH) as ear:
                on.match(position, slow=True)
                assert (await ear.next()).id == format_position(position)

    run(scene())


def test_the_end_comes_after_what_the_slow_lane_still_had() -> None:
    async def scene() -> None:
        async with road() as on:
            on.move()
            (position,) = on.at.append(1)
            on.match(position)
            async with on.at.listen(PATH) as ear:
                on.at.end("s1")
                on.match(position, slow=True)
                assert [message.event for message in await ear.rest()] == ["notification", "end"]

    run(scene())


def test_a_version_of_another_shape_goes_by_its_own_lane() -> None:
    """Of one that follows ontologies: what each version matched is told, though it came by one lane and the other."""

    async def scene() -> None:
        async with road() as on:
            (first,) = on.at.append(1)
            on.match(first)
            moved = on.move()
            (second,) = on.at.append(2)
            lifted = lift(parse_query("ASK { ?s <urn:cheap> ?o }"), solutions=False)
            shape, made = lifted.shape, on.made
            newer = replace(made, shape=shape.key, constants=lifted.constants, earlier=(made.since,), first=made.since)
            *_, since = on.at.twin.registry.put(
                [(SHAPE, shape.key, shape.to_value()), (SUBSCRIPTION, made.id, subscription_to_value(newer))]
            )
            (third,) = on.at.append(3)
            on.match(second, slow=True)
            on.at.match([(third, since, None)])
            assert await on.heard(3) == [format_position(first), format_position(second), format_position(third)]
            turns = on.at.edge.matches.queries.lane_changes(made.made)
            assert turns == [(0, False), (moved, True), (since, False)]

    run(scene())
