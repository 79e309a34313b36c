"""Histories of streams: everything that is kept, once and in order, while log and lake move under who reads it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.http.brokers import Broker, broker, observed
from tests.http.harness import data, house, run
from triplewire.client.feeds import SseMessage
from triplewire.http.delivery.options import FORMATS
from triplewire.http.delivery.replay import StreamHistory, TieredHistory
from triplewire.http.formats.messages import MessageFormat
from triplewire.http.formats.sse import SSE
from triplewire.http.ports import ThreadPool
from triplewire.model import END, Erasure, ErasureScope, Event, EventHeaders, format_position
from triplewire.storage.lake.entries import LakeEntries
from triplewire.storage.lake.erasure import LakeErasure
from triplewire.storage.lake.maintenance import MaintenanceContext, compact
from triplewire.storage.lake.retention import LakeRetention, apply_retention
from triplewire.storage.lake.zones import ZoneLayoutStore
from triplewire.storage.log.ports import LogRetention, Publication

BARE = ("messages-turtle", "messages-ntriples")
"""Formats that have no place for what is said of an event."""


def keeper(at: Broker) -> MaintenanceContext:
    return MaintenanceContext(at.lake, at.folder, ZoneLayoutStore(at.folder.with_name("zones")))


def store_and_trim(at: Broker, through: int) -> None:
    at.store()
    at.at.twin.log.trim(LogRetention(size=0), before=through + 1)


def even(at: Broker, after: int = 0) -> list[str]:
    return [format_position(position) for position, number in at.events.items() if number % 2 == 0 and position > after]


def ids(messages: list[SseMessage]) -> list[str | None]:
    return [message.id for message in messages]


def test_earliest_is_everything_from_the_lake_the_log_and_live(tmp_path: Path) -> None:
    async def scene() -> None:
        async with broker(tmp_path / "quads") as at:
            at.publish(10)
            store_and_trim(at, 6)
            at.publish(4)
            async with at.at.listen("/streams/even?after=earliest") as ear:
                past = await ear.take(7)
                at.publish(2)
                events = [*past, await ear.next()]
            assert data(ear.begun[0]) == {"position": format_position(0), "missed": False}
            assert ids(events) == even(at)
            assert [data(message)["event"] for message in events] == [observed(2 * number).id for number in range(8)]

    run(scene())


LAST = b"the last of all"
"""A text, which stands as it is in every format; IRIs may be taken apart."""


@pytest.mark.parametrize("format", [each for each in FORMATS if each.endless], ids=lambda each: each.name)
def test_what_comes_from_the_lake_is_told_as_it_was_from_the_log_headers_included(
    tmp_path: Path, format: MessageFormat
) -> None:
    """The last event stays in the log, so that all of the lake is told before it."""
    path = "/streams/even?after=earliest"
    accept = {"Accept": format.media_type}

    async def heard(at: Broker) -> bytes:
        async with at.at.session.get(at.at.url + path, headers=accept) as response:
            found = b""
            while LAST not in found:
                found += await asyncio.wait_for(response.content.readany(), 10)
            # CloudEvents about the connection itself have an id that is new each time.
            return re.sub(rb"[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}", b"new", found[: found.index(LAST)])

    async def scene() -> None:
        async with broker(tmp_path / "quads") as at:
            headers = [EventHeaders("roof", extensions={"Relay-Path": "a/b, c/d", "X-Said": 'é "so"'}), EventHeaders()]
            events = [replace(observed(number), headers=each) for number, each in enumerate(headers)]
            for each in (*events, Event("urn:last", f'<urn:last>\t<urn:p>\t"{LAST.decode()}"')):
                at.at.twin.log.append([Publication("even", [each])])
            logged = await heard(at)
            assert (b"Relay-Path" in logged) == (format.name not in BARE)
            store_and_trim(at, 2)
            assert at.begin() == 3
            assert await heard(at) == logged
            compact(keeper(at))
            assert await heard(at) == logged

    run(scene())


def test_a_time_and_an_event_are_places_to_begin(tmp_path: Path) -> None:
    async def scene() -> None:
        async with broker(tmp_path / "quads") as at:
            begun = at.at.twin.clock.now()
            at.publish(10)
            store_and_trim(at, 6)
            moment = datetime.fromtimestamp((begun + 4_500_000) / 1_000_000, UTC).isoformat()
            asked = {moment.replace("+00:00", "Z"): 4, moment: 4, observed(2).id: 3, observed(8).id: 9}
            for after, position in asked.items():
                async with at.at.session.get(f"{at.at.url}/streams/even", params={"after": after}) as response:
                    first = (await response.content.readuntil(b"\n\n")).decode()
                    assert f'"position":"{format_position(position)}","missed":false' in first
            problem = await at.at.problem("GET", "/streams/even?after=yesterday")
            assert (problem["status"], "or the absolute IRI of an event" in problem["detail"]) == (400, True)

    run(scene())


def test_what_retention_took_is_told_with_its_ends_and_of_that_stream_alone(tmp_path: Path) -> None:
    async def scene() -> None:
        async with broker(tmp_path / "quads") as at:
            at.publish(10)
            store_and_trim(at, 10)
            now = datetime.fromtimestamp(at.at.twin.clock.now() / 1_000_000, UTC)
            apply_retention(keeper(at), LakeRetention({"even": 5.0}), now)
            at.publish(1)
            async with at.at.listen(f"/streams/even?after={format_position(1)}") as ear:
                gap, *events = await ear.take(3)
            assert data(ear.begun[0]) == {
                "position": format_position(1),
                "missed": True,
                "earliest": format_position(4),
            }
            assert {name: data(gap)[name] for name in ("first", "last")} == {
                "first": format_position(2),
                "last": format_position(3),
            }
            assert ids(events) == [format_position(5), format_position(7)]
            async with at.at.listen(f"/streams/odd?after={format_position(1)}") as ear:
                first = await ear.next()
            assert (data(ear.begun[0])["missed"], first.id) == (False, format_position(2))

    run(scene())


def test_what_is_not_known_here_is_told_and_never_refused() -> None:
    async def scene() -> None:
        async with house() as at:
            at.append(1, 2)
            async with at.listen("/streams/test?after=urn:elsewhere") as ear:
                _, first = await ear.take(2)
            assert data(ear.begun[0]) == {
                "position": format_position(0),
                "missed": True,
                "earliest": format_position(1),
            }
            assert first.id == format_position(1)
            async with at.listen(f"/streams/test?after={format_position(99)}") as ear:
                assert (await ear.next()).event == "gap"
                at.append(3)
                assert (data(ear.begun[0])["position"], (await ear.next()).id) == (
                    format_position(2),
                    format_position(3),
                )

    run(scene())


def test_who_comes_back_is_served_from_memory_and_after_an_erasure_from_the_log() -> None:
    async def scene() -> None:
        async with house() as at:
            async with at.listen("/streams/test") as ear:
                await ear.position()
                at.append(1, 2, 3)
                assert ids(await ear.take(3)) == [format_position(each) for each in (1, 2, 3)]
            at.twin.log.trim(LogRetention(size=0), before=3)
            async with at.listen(f"/streams/test?after={format_position(1)}") as ear:
                events = await ear.take(2)
            assert (data(ear.begun[0])["missed"], ids(events)) == (False, [format_position(2), format_position(3)])
            at.twin.registry.put([("erasure", "e", {})])
            async with at.listen(f"/streams/test?after={format_position(1)}") as ear:
                gap, event = await ear.take(2)
            assert (gap.event, event.id) == ("gap", format_position(3))

    run(scene())


@pytest.mark.parametrize("sieve", ["", "&source=roof"])
def test_a_room_that_the_log_left_behind_sends_its_listeners_back(sieve: str) -> None:
    async def scene() -> None:
        async with house() as at:
            async with at.listen(f"/streams/test?after=now{sieve}") as ear:
                await ear.position()
                at.append(1, 2, 3)
                at.twin.log.trim(LogRetention(size=0), before=3)
                (last,) = await ear.rest()
            assert (last.event, data(last)["position"]) == ("closing", format_position(0))
            async with at.listen(f"/streams/test?after={data(last)['position']}") as ear:
                assert (await ear.next()).id == format_position(3)

    run(scene())


@dataclass
class Walk:
    """A history that is read in small steps, between which something happens."""

    at: Broker
    heard: list[int] = field(default_factory=list)
    gaps: int = 0

    async def through(self, stream: str, between: Callable[[int], None], told: int = 0) -> None:
        log, workers = self.at.at.twin.log, ThreadPool(1, "walk")
        backlog = TieredHistory(log, LakeEntries(self.at.lake))
        history, cursor, step = StreamHistory(stream, backlog, (workers, workers), log.head, 2, told), 0, 0
        while cursor < log.head():
            frames, cursor = await history.step(cursor, SSE)
            self.gaps += sum(b"event: gap" in part for part in frames.parts)
            self.heard += [
                at for at, part in zip(frames.positions, frames.parts, strict=True) if b"event: event" in part
            ]
            between(step)
            step += 1
        workers.close()


def trims(at: Broker, step: int) -> None:
    store_and_trim(at, 2 + 2 * step)


def compacts(at: Broker, step: int) -> None:
    trims(at, step)
    compact(keeper(at))


def erases(at: Broker, step: int) -> None:
    """What was heard already, and what comes of another stream."""
    trims(at, step)
    for name in (observed(0).id, observed(11).id):
        erasure = Erasure(f"e{step}", ErasureScope.EVENT, name, END)
        at.at.twin.log.erase(erasure)
        LakeErasure(keeper(at), erasure).rewrite()


@pytest.mark.parametrize("happens", [trims, compacts, erases])
def test_whatever_moves_between_two_steps_each_event_is_heard_once(
    tmp_path: Path, happens: Callable[[Broker, int], None]
) -> None:
    async def scene() -> None:
        async with broker(tmp_path / "quads") as at:
            at.publish(12)
            walk = Walk(at)
            await walk.through("even", lambda step: happens(at, step))
            assert (walk.heard, walk.gaps) == ([1, 3, 5, 7, 9, 11], 0)

    run(scene())


def test_what_is_erased_before_it_is_read_is_no_gap(tmp_path: Path) -> None:
    async def scene() -> None:
        async with broker(tmp_path / "quads") as at:
            at.publish(8)
            store_and_trim(at, 4)
            for number in (2, 4):
                erasure = Erasure("e", ErasureScope.EVENT, observed(number).id, END)
                at.at.twin.log.erase(erasure)
                LakeErasure(keeper(at), erasure).rewrite()
            at.at.twin.log.trim(LogRetention(size=0), before=8)
            walk = Walk(at)
            await walk.through("even", lambda step: None)
            assert (walk.heard, walk.gaps) == ([1, 7], 0)

    run(scene())


def test_what_is_lost_between_two_steps_is_told_in_between(tmp_path: Path) -> None:
    async def scene() -> None:
        async with broker(tmp_path / "quads") as at:
            at.publish(12)

            def lose(step: int) -> None:
                if step == 1:
                    at.at.twin.log.trim(LogRetention(size=0), before=10)

            walk = Walk(at)
            await walk.through("even", lose)
            assert (walk.heard, walk.gaps) == ([1, 3, 11], 1)

    run(scene())
