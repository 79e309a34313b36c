"""Relays between edges over sockets: what is above comes below, once and in order, whatever happens in between."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import orjson
import pytest

from tests.http.harness import house, run
from tests.network.edges import heard, ids, mirror, records, relayed, rows
from triplewire.model import Event, EventHeaders, format_position
from triplewire.model.errors import Conflict
from triplewire.model.terms import TW
from triplewire.storage.log.ports import LogRetention, Publication
from triplewire.testing import event

NQUADS = {"Content-Type": "application/n-quads"}


def test_a_mirror_has_what_the_source_has(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house() as above, house() as below:
            said = EventHeaders("roof", "app", 1_700_000_000_123_456)
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
            assert relay.statuses[0].events == 3

    run(scene())


def test_a_relay_that_was_stopped_goes_on_where_it_was(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house() as above, house() as below:
            for number in range(5):
                above.append(2 * number, 2 * number + 1)
                async with relayed(mirror(above), tmp_path, below) as relay:
                    await heard(below, 2 * number + 2)
                assert relay.statuses[0].events <= 4
            assert ids(below) == [event(number).id for number in range(10)]

    run(scene())


def test_what_was_published_before_it_was_settled_is_not_published_again(tmp_path: Path) -> None:
    """The relay is cut off between the answer and its note of it, and then there is more than there was."""

    async def scene() -> None:
        async with house() as above, house() as below:
            above.append(1, 2)
            async with relayed(mirror(above), tmp_path, below):
                await heard(below, 2)
            records(tmp_path, after="earliest", intended=format_position(2))
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
            above.twin.log.trim(LogRetention(age=5), before=above.twin.log.head() + 1)
            above.append(4)
            async with relayed(mirror(above), tmp_path, below) as relay:
                await heard(below, 3)
            assert (ids(below)[0], ids(below)[2]) == (event(1).id, event(4).id)
            terms = {term for line in rows(below)[1]["text"].split("\n") for term in line.split("\t")}
            assert terms >= {
                f"<{TW}Gap>",
                f'"{format_position(1)}"',
                f'"{format_position(4)}"',
                f"<{above.url}/streams/test>",
            }
            assert relay.statuses[0].gaps == 1
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
            records(tmp_path, upstream="another", after=format_position(2))
            async with relayed(mirror(above), tmp_path, below) as relay:
                above.append(3)
                await heard(below, 3)
            assert relay.statuses[0].position == format_position(3)

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


def test_the_path_grows_from_edge_to_edge(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house() as top, house() as middle, house() as low:
            said = EventHeaders("roof", extensions={"Weather-Kind": "rain"})
            top.twin.log.append([Publication("test", [Event(event(1).id, event(1).text, said)])])
            upper = mirror(top) + 'stream = "middle"\n'
            async with (
                relayed(upper, tmp_path, middle, "upper"),
                relayed(mirror(middle, "middle"), tmp_path, low, "lower"),
            ):
                await heard(low, 1, "middle")
            (row,) = rows(low, "middle")
            first, second = top.edge.parts.identity, middle.edge.parts.identity
            path = {"Weather-Kind": "rain", "Relay-Path": f"{first}/test {second}/middle"}
            assert (row["source"], orjson.loads(row["extensions"])) == ("roof", path)

    run(scene())


def test_two_edges_that_mirror_each_other_do_not_carry_in_circles(tmp_path: Path) -> None:
    async def scene() -> None:
        async with AsyncExitStack() as open:
            one, two = [await open.enter_async_context(house()) for _ in range(2)]
            to = await open.enter_async_context(relayed(mirror(one), tmp_path, two, "to"))
            back = await open.enter_async_context(relayed(mirror(two), tmp_path, one, "back"))
            one.append(1)
            two.append(2)
            assert sorted(await heard(one, 2)) == sorted(await heard(two, 2)) == [event(1).id, event(2).id]
            # What is carried after them was heard after them: by then they would have come around.
            one.append(3)
            await heard(two, 3)
            two.append(4)
            await heard(one, 4)
            while to.statuses[0].loops + back.statuses[0].loops < 3:
                await heard(two, 4)
            assert len(ids(one)) == len(ids(two)) == 4
            assert to.statuses[0].events + back.statuses[0].events == 4

    run(scene())


def test_an_event_with_another_text_under_the_same_id_is_passed_over(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house() as above, house() as below:
            async with below.session.post(
                f"{below.url}/streams/test", data=f'<urn:a> <urn:b> "1" <{event(2).id}> .', headers=NQUADS
            ) as response:
                assert response.status == 201
            above.append(1, 2, 3)
            async with relayed(mirror(above), tmp_path, below) as relay:
                await heard(below, 3)
            assert ids(below) == [event(number).id for number in (2, 1, 3)]
            assert relay.statuses[0].refused == 1

    run(scene())


def test_one_stream_becomes_several(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house() as above, house() as below:
            for number, source in enumerate(("roof", "cellar", "roof")):
                said = EventHeaders(source=source)
                above.twin.log.append([Publication("test", [Event(event(number).id, event(number).text, said)])])
            text = mirror(above) + "split.up = { source = 'roof' }\nsplit.all = { source = ['roof', 'cellar'] }\n"
            async with relayed(text, tmp_path, below):
                await heard(below, 2, "up")
                await heard(below, 3, "all")
            assert ids(below, "up") == [event(0).id, event(2).id]
            assert ids(below, "all") == [event(number).id for number in range(3)]

    run(scene())


def test_what_comes_after_now_is_not_lost_by_a_cut_before_it(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house() as above, house() as below:
            above.append(1)
            text = mirror(above) + 'after = "now"\n'
            async with relayed(text, tmp_path, below) as relay:
                while not relay.statuses or relay.statuses[0].state == "connecting":
                    async with above.session.get(f"{above.url}/health"):
                        pass
            above.append(2)
            async with relayed(text, tmp_path, below):
                assert await heard(below, 1) == [event(2).id]

    run(scene())


def test_what_a_filter_leaves_out_is_not_read_again(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house() as above, house() as below:
            async with relayed(mirror(above) + "source = 'roof'\n", tmp_path, below) as relay:
                above.append(1, 2, 3)
                while not relay.statuses or relay.statuses[0].position != format_position(3):
                    above.edge.filtered.topic.keep_alive()
                    async with above.session.get(f"{above.url}/health"):
                        pass
            assert (ids(below), relay.statuses[0].batches) == ([], 0)
            (record,) = (tmp_path / "relay.positions").glob("*.json")
            assert orjson.loads(record.read_bytes())["after"] == format_position(3)

    run(scene())
