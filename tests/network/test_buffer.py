"""What waits between hearing and publishing."""

from __future__ import annotations

import asyncio

import pytest

from tests.http.harness import run
from triplewire.model.errors import Unavailable
from triplewire.network.transit import BoundedBuffer, TransitEvent


def parcel(position: int, size: int = 10) -> TransitEvent:
    return TransitEvent(str(position), f"urn:{position}", "", "x" * size)


def test_it_gives_what_there_is_within_bounds() -> None:
    async def scene() -> None:
        inbox = BoundedBuffer(1_000)
        for number in range(1, 8):
            await inbox.put(parcel(number))
        assert [each.position for each in await inbox.take(3, 100)] == ["1", "2", "3"]
        assert [each.position for each in await inbox.take(9, 25)] == ["4", "5"]
        assert [each.position for each in await inbox.take(9, 1)] == ["6"]

    run(scene())


def test_who_brings_waits_for_room() -> None:
    async def scene() -> None:
        inbox = BoundedBuffer(20)
        await inbox.put(parcel(1))
        await inbox.put(parcel(2, 500))
        bringing = asyncio.create_task(inbox.put(parcel(3)))
        await asyncio.sleep(0)
        assert (len(inbox), bringing.done()) == (2, False)
        assert len(await inbox.take(1, 20)) == 1
        assert len(await inbox.take(1, 20)) == 1
        await bringing
        assert len(inbox) == 1

    run(scene())


def test_a_batch_that_was_intended_is_taken_whole_and_alone() -> None:
    async def scene() -> None:
        inbox = BoundedBuffer(1_000)
        taking = asyncio.create_task(inbox.take(1, 1, through="4"))
        for number in (1, 2, 3):
            await inbox.put(parcel(number))
        assert not taking.done()
        await inbox.put(parcel(5))
        assert [each.position for each in await taking] == ["1", "2", "3"]
        assert len(inbox) == 1

    run(scene())


def test_what_ended_it_is_told_after_what_came_before() -> None:
    async def scene() -> None:
        inbox = BoundedBuffer(1_000)
        await inbox.put(parcel(1))
        await inbox.close(Unavailable("gone"))
        assert len(await inbox.take(9, 100)) == 1
        with pytest.raises(Unavailable, match="gone"):
            await inbox.take(9, 100)

    run(scene())
