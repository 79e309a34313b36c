"""Publishes share transactions; each publisher hears exactly what became of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from triplewire.model import END, Event
from triplewire.model.errors import StorageFull, Unavailable
from triplewire.storage.log.group_commit import CommitCounts, GroupCommit
from triplewire.storage.log.ports import Log, Publication
from triplewire.testing import TWIN_KINDS, Crash, Fault, FaultyLog, GatedLog, Twin, open_twin, publication


@pytest.fixture(params=TWIN_KINDS)
def stores(request: pytest.FixtureRequest) -> Iterator[Twin]:
    with open_twin(request.param) as made:
        yield made


async def behind_a_commit(
    commits: GroupCommit, gated: GatedLog, later: list[Publication]
) -> list[Sequence[int] | BaseException]:
    """Publish one, and the later ones while the first is being committed; what each of the later ones heard."""
    first = asyncio.ensure_future(commits.append(publication(0)))
    await asyncio.to_thread(gated.arrived.wait)
    tasks = [asyncio.ensure_future(commits.append(each)) for each in later]
    asyncio.get_running_loop().call_soon(gated.gate.set)
    await first
    return await asyncio.gather(*tasks, return_exceptions=True)


def run(log: Log, story: Callable[[GroupCommit], Awaitable[object]]) -> CommitCounts:
    commits = GroupCommit(log)

    async def told() -> None:
        await story(commits)

    try:
        asyncio.run(told())
    finally:
        commits.close()
    return commits.counts


def test_a_publish_is_answered_with_its_positions(stores: Twin) -> None:
    async def story(commits: GroupCommit) -> None:
        assert await commits.append(publication(1, 2)) == range(1, 3)
        assert await commits.append(publication(3)) == range(3, 4)
        assert stores.log.head() == 3

    assert run(stores.log, story) == CommitCounts(transactions=2, publications=2, events=3)


def test_what_waits_while_a_commit_runs_shares_the_next_one(stores: Twin) -> None:
    gated = GatedLog(stores.log)

    async def story(commits: GroupCommit) -> None:
        heard = await behind_a_commit(commits, gated, [publication(number) for number in range(1, 11)])
        assert heard == [range(at, at + 1) for at in range(2, 12)]

    assert run(gated, story) == CommitCounts(transactions=2, publications=11, events=11)
    stored = stores.log.read(0, END, 20).column("event").to_pylist()
    assert [address.rpartition("/")[2] for address in stored] == [str(number) for number in range(11)]


def test_a_group_ends_where_the_next_publication_would_be_too_much(stores: Twin) -> None:
    gated = GatedLog(stores.log)
    commits = GroupCommit(gated, group=4)
    later = [publication(1, 2, 3), publication(4), publication(5), publication(*range(6, 16)), publication(16)]
    heard = asyncio.run(behind_a_commit(commits, gated, later))
    commits.close()
    assert heard == [range(2, 5), range(5, 6), range(6, 7), range(7, 17), range(17, 18)]
    assert commits.counts.transactions == 1 + 4


def test_a_full_disk_fails_the_whole_group_and_nothing_of_it_is_stored(stores: Twin) -> None:
    gated = GatedLog(FaultyLog(stores.log, [Fault.NONE, Fault.FULL]))

    async def story(commits: GroupCommit) -> None:
        heard = await behind_a_commit(commits, gated, [publication(1), publication(2, 3)])
        assert [type(each) for each in heard] == [StorageFull, StorageFull]
        assert stores.log.head() == 1
        assert await commits.append(publication(4)) == range(2, 3)

    assert run(gated, story).transactions == 2


def test_publishers_are_told_of_an_error_that_nobody_expected_and_the_next_group_goes_on(stores: Twin) -> None:
    async def story(commits: GroupCommit) -> None:
        with pytest.raises(Crash):
            await commits.append(publication(1))
        assert await commits.append(publication(2)) == range(1, 2)

    run(FaultyLog(stores.log, [Fault.CRASH_BEFORE]), story)


def test_a_full_queue_refuses_at_once_and_keeps_what_it_has(stores: Twin) -> None:
    gated = GatedLog(stores.log)
    commits = GroupCommit(gated, queue=2)
    heard = asyncio.run(behind_a_commit(commits, gated, [publication(number) for number in (1, 2, 3)]))
    commits.close()
    assert heard[:2] == [range(2, 3), range(3, 4)]
    assert isinstance(heard[2], Unavailable)
    assert commits.counts.refused == 1
    assert stores.log.head() == 3


def test_the_queue_is_bounded_in_bytes_too_but_takes_one_of_any_size(stores: Twin) -> None:
    gated = GatedLog(stores.log)
    commits = GroupCommit(gated, queue_bytes=10)
    texts = ["x" * 11, "", "y"]
    heard = asyncio.run(behind_a_commit(commits, gated, [Publication("s", [Event("urn:e", text)]) for text in texts]))
    commits.close()
    assert heard[0] == range(2, 3)
    assert [type(each) for each in heard[1:]] == [Unavailable, Unavailable]


def test_what_a_transaction_took_makes_room_in_the_queue(stores: Twin) -> None:
    gated = GatedLog(stores.log)
    commits = GroupCommit(gated, queue_bytes=10)
    small = [Publication("s", [Event(f"urn:{number}", "x" * 4)]) for number in range(3)]
    heard = asyncio.run(behind_a_commit(commits, gated, small))
    commits.close()
    assert [type(each) for each in heard] == [range, range, Unavailable]


def test_closing_commits_what_waits_and_refuses_what_comes_later(stores: Twin) -> None:
    gated = GatedLog(stores.log)
    commits = GroupCommit(gated)

    async def story() -> None:
        first = asyncio.ensure_future(commits.append(publication(1)))
        await asyncio.to_thread(gated.arrived.wait)
        second = asyncio.ensure_future(commits.append(publication(2)))
        asyncio.get_running_loop().call_soon(gated.gate.set)
        assert await first == range(1, 2)
        await asyncio.to_thread(commits.close)
        assert await second == range(2, 3)
        with pytest.raises(Unavailable):
            await commits.append(publication(3))

    asyncio.run(story())
    assert stores.log.head() == 2


def test_a_publisher_that_leaves_takes_nobody_of_its_group_along(stores: Twin) -> None:
    gated = GatedLog(stores.log)

    async def story(commits: GroupCommit) -> None:
        first = asyncio.ensure_future(commits.append(publication(1)))
        await asyncio.to_thread(gated.arrived.wait)
        leaving, staying = (asyncio.ensure_future(commits.append(publication(number))) for number in (2, 3))
        loop = asyncio.get_running_loop()
        loop.call_soon(leaving.cancel)
        loop.call_soon(gated.gate.set)
        assert await first == range(1, 2)
        assert await staying == range(3, 4)
        assert leaving.cancelled()

    assert run(gated, story).transactions == 2


def test_several_event_loops_may_publish_through_one(stores: Twin) -> None:
    commits = GroupCommit(stores.log)

    async def publish(number: int) -> list[Sequence[int]]:
        return [await commits.append(publication(number)) for _ in range(10)]

    with ThreadPoolExecutor(3) as threads:
        heard = list(threads.map(lambda number: asyncio.run(publish(number)), range(3)))
    commits.close()
    assert all(each == sorted(each, key=lambda taken: taken[0]) for each in heard)
    assert sorted(at for each in heard for taken in each for at in taken) == list(range(1, 31))
