"""Relays between edges over sockets: what is above comes below, once and in order, whatever happens in between."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.edge.houses import house, run
from tests.relay.edges import heard, ids, mirror, records, relayed, rows
from triplewire.errors import Conflict
from triplewire.log.ports import Publication, Retention
from triplewire.model import Event, Headers, token
from triplewire.model.terms import TW
from triplewire.testing import event


def test_a_mirror_has_what_the_source_has(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house() as above, house() as below:
            said = Headers("roof", "app", 1_700_000_000_123_456)
            above.twin.log.append([Publication("test", [Event(event(1).id, event(1).text, said)])])
            above.append(2, stream="other")
            async with relayed(mirror(above), tmp_path, below) as relay:
                await heard(below, 1)
                above.append(3, 4)
                await heard(below, 3)
            assert ids(below) == [event(number).id for number in (1, 3, 4)]
            (first, *_), (source, *_) = rows(below), rows(above)
            assert all(first[name] == source[name] for name in ("text", "source", "application", "time"))
            assert ids(below, "other") == []
            assert relay.tallies[0].events == 3

    run(scene())


def test_a_relay_that_was_stopped_goes_on_where_it_was(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house() as above, house() as below:
            for number in range(5):
                above.append(2 * number, 2 * number + 1)
                async with relayed(mirror(above), tmp_path, below) as relay:
                    await heard(below, 2 * number + 2)
                assert relay.tallies[0].events <= 4
            assert ids(below) == [event(number).id for number in range(10)]

    run(scene())


def test_what_was_published_before_it_was_settled_is_not_published_again(tmp_path: Path) -> None:
    """The relay is cut off between the answer and its note of it, and then there is more than there was."""

    async def scene() -> None:
        async with house() as above, house() as below:
            above.append(1, 2)
            async with relayed(mirror(above), tmp_path, below):
                await heard(below, 2)
            records(tmp_path, after="earliest", upto=token(2))
            above.append(3)
            async with relayed(mirror(above), tmp_path, below):
                await heard(below, 3)
            assert ids(below) == [event(number).id for number in (1, 2, 3)]

    run(scene())


def test_three_levels_with_a_middle_that_goes_and_comes(tmp_path: Path) -> None:
    async def scene() -> None:
        async with AsyncExitStack() as open:
            top, middle, low = [await open.enter_async_context(house()) for _ in range(3)]
            await open.enter_async_context(relayed(mirror(middle), tmp_path, low, "lower"))
            for number in range(20):
                top.append(number)
                if number % 5 == 0:
                    async with relayed(mirror(top), tmp_path, middle, "upper"):
                        await heard(middle, number + 1)
            async with relayed(mirror(top), tmp_path, middle, "upper"):
                await heard(low, 20)
            assert ids(low) == ids(middle) == ids(top) == [event(number).id for number in range(20)]

    run(scene())


def test_streams_are_joined_and_enriched(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house() as one, house() as two, house() as below:
            one.append(1, stream="x")
            two.append(2, stream="y")
            text = f"""
                [[relay]]
                from = ["{one.url}/streams/x", "{two.url}/streams/y"]
                stream = "both"
                enrich.annotation.turtle = "<> <urn:passed> 'north' . <urn:north> <urn:is> <urn:here> ."
            """
            async with relayed(text, tmp_path, below):
                await heard(below, 2, "both")
            assert sorted(ids(below, "both")) == [event(1).id, event(2).id]
            for row in rows(below, "both"):
                lines = row["text"].split("\n")
                assert lines[-2:] == [f'<{row["event"]}>\t<urn:passed>\t"north"', "<urn:north>\t<urn:is>\t<urn:here>"]
                assert len(lines) == 4

    run(scene())


def test_a_stream_of_the_same_edge_may_be_made_of_another(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house() as at:
            at.append(1, 2)
            text = mirror(at) + 'stream = "derived"\n'
            async with relayed(text, tmp_path, at):
                await heard(at, 2, "derived")
            assert ids(at, "derived") == ids(at)

    run(scene())


def test_a_gap_is_told_below(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house() as above, house() as below:
            above.append(1)
            async with relayed(mirror(above), tmp_path, below):
                await heard(below, 1)
            above.append(2, 3)
            above.twin.clock.advance(10)
            above.twin.log.trim(Retention(age=5), before=above.twin.log.head() + 1)
            above.append(4)
            async with relayed(mirror(above), tmp_path, below) as relay:
                await heard(below, 3)
            assert (ids(below)[0], ids(below)[2]) == (event(1).id, event(4).id)
            terms = {term for line in rows(below)[1]["text"].split("\n") for term in line.split("\t")}
            assert terms >= {f"<{TW}Gap>", f'"{token(1)}"', f'"{token(4)}"', f"<{above.url}/streams/test>"}
            assert relay.tallies[0].gaps == 1
            async with relayed(mirror(above), tmp_path, below):
                above.append(5)
                await heard(below, 4)
            assert ids(below)[3] == event(5).id

    run(scene())


def test_an_edge_that_was_replaced_is_carried_from_its_beginning(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house() as above, house() as below:
            above.append(1, 2)
            async with relayed(mirror(above), tmp_path, below):
                await heard(below, 2)
            records(tmp_path, upstream="another", after=token(2))
            async with relayed(mirror(above), tmp_path, below) as relay:
                above.append(3)
                await heard(below, 3)
            assert relay.tallies[0].position == token(3)

    run(scene())


def test_two_relays_do_not_share_positions(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house() as above, house() as below, relayed(mirror(above), tmp_path, below):
            above.append(1)
            await heard(below, 1)
            with pytest.raises(Conflict, match="another relay"):
                async with relayed(mirror(above), tmp_path, below):
                    pass

    run(scene())


def test_an_edge_is_told_of_its_repeater_and_of_its_end(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house() as above, house() as below:
            text = 'address = "http://public:80"\n' + mirror(above) + mirror(above, "other") + "source = 'roof'\n"
            told: asyncio.Queue[None] = asyncio.Queue()

            async def beat(seconds: float) -> None:
                told.put_nowait(None)
                await asyncio.sleep(0)

            above.append(1)
            async with relayed(text, tmp_path, below, beat=beat):
                await heard(below, 1)
                while not (known := above.edge.repeaters.all()):
                    await told.get()
                (repeater,) = known
                assert repeater.streams == {"test": "http://public:80/streams/test"}
                assert repeater.free > 0
            assert above.edge.repeaters.all() == []

    run(scene())
